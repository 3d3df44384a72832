//! Parses the steps of a script from a prompt.

mod marker_reader;

use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::response_plan::{Failure, Stop};
use crate::usage::Usage;
use marker_reader::MarkerReader;

/// Every step and what it does, for help texts and error messages. With `TIMES n` a fault occurs only in
/// the first n attempts.
pub const STEPS: [(&str, &str); 15] = [
    ("say TEXT", "text, streamed word by word"),
    ("think TEXT", "thinking, streamed in the same way"),
    ("repeat N TEXT", "a text of N deltas, each TEXT"),
    ("pad BYTES", "a text of that many letters B"),
    (
        "tool NAME JSON",
        "calls a tool and ends the response; the next steps see its result. The input of a tool that \
      takes text is a JSON string",
    ),
    ("tools NAME JSON ;; NAME JSON", "calls several tools at once"),
    (
        "stop [REASON]",
        "ends the response: end_turn, max_tokens, refusal, or a reason in the API's own format",
    ),
    (
        "usage IN OUT CACHE_READ CACHE_CREATE",
        "sets the usage that this response reports; missing numbers are 0",
    ),
    ("header NAME VALUE", "adds a header to the answer"),
    ("slow MS", "pauses before each of the following deltas"),
    ("fail STATUS [TYPE] [TIMES n] [MESSAGE]", "sends an API error; after text, inside the stream"),
    ("ratelimit [TIMES n] [RETRY-AFTER s]", "sends the error for status 429, with its headers"),
    ("hang [TIMES n]", "sends what came before, then nothing until the client disconnects"),
    ("cut [TIMES n]", "sends what came before, then cuts the connection"),
    ("garbage [TIMES n]", "sends an event that is not JSON"),
];

/// The placeholders in a TEXT, and their values. `{{` is a brace, `\n` a newline, `\]` a bracket.
pub const PLACEHOLDERS: [(&str, &str); 5] = [
    ("{result}", "the text of the last tool results"),
    ("{prompt}", "the user's last text"),
    ("{model}", "the requested model"),
    ("{system}", "the system prompt"),
    ("{tools}", "the names of the offered tools"),
];

/// The size limit of a response's text.
pub(crate) const LONGEST: usize = 64 * 1024 * 1024;
/// The limit of deltas in one step.
const MOST: usize = 100_000;

/// Headers that mark the end of a body.
const FRAMING: [HeaderName; 3] = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];

/// The steps of each response, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Script {
    pub(crate) responses: Vec<Vec<Step>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say(String),
    Think(String),
    Repeat {
        count: usize,
        text: String,
    },
    Pad(usize),
    Tools(Vec<(String, Box<RawValue>)>),
    Stop(Stop),
    Usage(Usage),
    Header(HeaderName, HeaderValue),
    Slow(Duration),
    /// Only in the first `times` attempts, if set.
    Fault {
        fault: Fault,
        times: Option<u32>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    Fail(Failure),
    Hang,
    Cut,
    Garbage,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Script {
    /// Parses a text; `None` if it has no markers. A marker is `[[` and a lower-case letter, so shell
    /// conditions are text.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Failure> {
        let mut responses = vec![Vec::new()];
        let mut found = false;
        let mut rest = text;
        while let Some((_, inner)) = rest.split_once("[[") {
            if !inner.starts_with(|first: char| first.is_ascii_lowercase()) {
                rest = inner;
                continue;
            }
            found = true;
            let mut marker = MarkerReader::new(inner);
            let step = read(&mut marker).map_err(|reason| parse_error(inner, &reason))?;
            rest = marker.rest();
            let ends = matches!(step, Step::Tools(_) | Step::Stop(_));
            if let Some(response) = responses.last_mut() {
                response.push(step);
            }
            if ends {
                responses.push(Vec::new());
            }
        }
        if responses.last().is_some_and(Vec::is_empty) {
            responses.pop();
        }
        Ok(found.then_some(Self { responses }))
    }
}

fn read(marker: &mut MarkerReader<'_>) -> Result<Step, String> {
    let name = marker.name();
    let step = match name {
        "say" => return marker.text().map(Step::Say),
        "think" => return marker.text().map(Step::Think),
        "repeat" => {
            let count = marker.number("how often")?;
            if count > MOST {
                return Err(format!("more than {MOST} deltas"));
            }
            return Ok(Step::Repeat { count, text: marker.text()? });
        }
        "pad" => match marker.number("how many bytes")? {
            bytes if bytes <= LONGEST => Step::Pad(bytes),
            _ => return Err("more than 64 MiB of text".to_owned()),
        },
        "tool" => Step::Tools(vec![tool_call(marker)?]),
        "tools" => {
            let mut calls = vec![tool_call(marker)?];
            while marker.consume(";;") {
                calls.push(tool_call(marker)?);
            }
            Step::Tools(calls)
        }
        "stop" => Step::Stop(match marker.word().unwrap_or("end_turn") {
            "end_turn" => Stop::End,
            "max_tokens" => Stop::MaxTokens,
            "refusal" => Stop::Refusal,
            other => Stop::Other(other.to_owned()),
        }),
        "usage" => Step::Usage(Usage {
            input: marker.number("tokens read")?,
            output: marker.number_or("tokens written", 0)?,
            cache_read: marker.number_or("tokens from the cache", 0)?,
            cache_create: marker.number_or("tokens into the cache", 0)?,
        }),
        "header" => {
            let name = marker.word().ok_or("the header's name is missing")?;
            let name = name.parse().map_err(|_| format!("`{name}` is not a header name"))?;
            if FRAMING.contains(&name) {
                return Err(format!("only the server may set `{name}`"));
            }
            let value = marker.text()?;
            let value = value.parse().map_err(|_| format!("`{value}` is not a header value"))?;
            return Ok(Step::Header(name, value));
        }
        "slow" => Step::Slow(Duration::from_millis(marker.number("milliseconds")?)),
        "fail" => {
            let status: u16 = marker.number("the status")?;
            if !(400..600).contains(&status) {
                return Err(format!("{status} is not an error status; use 400 to 599"));
            }
            let mut times = marker.times()?;
            let kind = marker.kind();
            if times.is_none() {
                times = marker.times()?;
            }
            let message = marker.text()?;
            let message = if message.is_empty() { "scripted failure".to_owned() } else { message };
            let fail = Failure { status, kind, message, retry_after: None };
            return Ok(Step::Fault { fault: Fault::Fail(fail), times });
        }
        "ratelimit" => {
            let times = marker.times()?;
            let seconds =
                if marker.consume("RETRY-AFTER") { marker.number("seconds to wait")? } else { 1 };
            let times = if times.is_none() { marker.times()? } else { times };
            let mut fail = Failure::new(429, "scripted rate limit");
            fail.retry_after = Some(seconds);
            Step::Fault { fault: Fault::Fail(fail), times }
        }
        "hang" => Step::Fault { fault: Fault::Hang, times: marker.times()? },
        "cut" => Step::Fault { fault: Fault::Cut, times: marker.times()? },
        "garbage" => Step::Fault { fault: Fault::Garbage, times: marker.times()? },
        other => return Err(format!("unknown step `{other}`")),
    };
    marker.close()?;
    Ok(step)
}

fn tool_call(marker: &mut MarkerReader<'_>) -> Result<(String, Box<RawValue>), String> {
    let name = marker.word().ok_or("the tool's name is missing")?.to_owned();
    Ok((name, marker.json()?))
}

fn parse_error(text: &str, reason: &str) -> Failure {
    const SHOWN: usize = 60;
    let end = text.find("]]").map_or(text.len(), |end| end + 2);
    let shown: String = text.get(..end).unwrap_or(text).chars().take(SHOWN).collect();
    let more = if shown.len() < end { "…" } else { "" };
    let steps: Vec<&str> = STEPS.iter().map(|(form, _)| *form).collect();
    Failure::new(
        400,
        format!(
            "failed to read the marker `[[{shown}{more}`: {reason}. Steps are: {}",
            steps.join(" · ")
        ),
    )
}

#[cfg(test)]
mod tests;
