//! The open requests, and the short ids that name them.

use std::collections::BTreeMap;
use std::io::Write as _;

use agentwire_client::OpenRequest;
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{
    AgentType, ErrorCode, Event, EventKind, GatewayError, MAIN_AGENT, SessionId, SessionSummary,
};
use serde::Serialize;

use crate::commands::logs::read;
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::source::{EventUpdate, Source};
use crate::{print, view};

/// Minimum length of an id as shown, and as accepted.
const SHOWN: usize = 8;
const TAKEN: usize = 4;

/// How many events to search for the settlement of a request.
const BACK: u64 = 2000;

/// A request in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'l> {
    session_id: &'l SessionId,
    agent_type: Option<AgentType>,
    agent_id: &'l str,
    raised_at: &'l str,
    seq: u64,
    #[serde(flatten)]
    request: &'l agentwire_protocol::event::RequestRaised<'static>,
}

#[derive(Serialize)]
struct Inbox<'l> {
    requests: Vec<Listed<'l>>,
}

pub(super) async fn list(source: &Source, is_json: bool) -> Result<(), Failure> {
    let requests = source.requests(None).await?;
    let mut sessions = BTreeMap::new();
    for open in &requests {
        if !sessions.contains_key(&open.session_id) {
            sessions.insert(open.session_id.clone(), source.summary(&open.session_id).await?);
        }
    }
    if is_json {
        let listed = requests.iter().map(|open| Listed {
            session_id: &open.session_id,
            agent_type: sessions.get(&open.session_id).map(|session| session.agent_type),
            agent_id: &open.agent_id,
            raised_at: &open.raised_at,
            seq: open.seq,
            request: &open.request,
        });
        return Ok(print::json(&Inbox { requests: listed.collect() })?);
    }
    if requests.is_empty() {
        print::note("no pending requests");
        return Ok(());
    }
    write(&requests, &sessions)
}

fn write(
    requests: &[OpenRequest],
    sessions: &BTreeMap<SessionId, SessionSummary>,
) -> Result<(), Failure> {
    let head = ["RID", "SESSION", "AGENT", "AGE", "REQUEST"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head)
        .chain(
            requests
                .iter()
                .zip(names(requests))
                .map(|(open, name)| row(open, name, sessions.get(&open.session_id))),
        )
        .collect();
    let [w_name, w_session, w_agent, w_age, _] = format::widths(&rows);
    let taken = w_name + w_session + w_agent + w_age + 2 * 4;
    let room = print::columns().map_or(usize::MAX, |columns| columns.saturating_sub(taken).max(20));
    let paint = Paint::stdout();
    let mut out = print::stdout();
    for (number, row) in rows.iter().enumerate() {
        let [name, session, agent, age, asks] = row;
        let line = format!(
            "{}  {}  {}  {age:>w_age$}  {}",
            format::pad(name, w_name),
            format::pad(session, w_session),
            format::pad(agent, w_agent),
            format::cut(asks, room)
        );
        let line = if number == 0 { paint.dim(&line) } else { line.as_str().into() };
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(open: &OpenRequest, name: String, session: Option<&SessionSummary>) -> [String; 5] {
    let directory = session.and_then(|session| session.working_directory.as_deref());
    let agent = session.map(|session| session.agent_type.as_str()).unwrap_or_default();
    let agent = match open.agent_id == MAIN_AGENT {
        true => agent.to_owned(),
        false => format!("{agent}, subagent"),
    };
    let about = format::line(&view::about(&open.request, directory));
    let asks = match open.request.kind {
        RequestKind::Question => {
            let options = open.request.questions.first().map_or(&[][..], |first| &first.options);
            let options: String = (1..)
                .zip(options)
                .map(|(number, option)| {
                    format!("  {number}. {}", format::line(&option.label.decode()))
                })
                .collect();
            let more = match open.request.questions.len() {
                0 | 1 => String::new(),
                count => format!("  (1 of {count} questions)"),
            };
            format!("{about}{options}{more}")
        }
        RequestKind::Permission => about,
        RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
            format!("{about} (for the program that drives the session)").trim_start().to_owned()
        }
    };
    [
        name,
        format::line(format::short(open.session_id.as_str())),
        agent,
        format::age(&open.raised_at),
        asks,
    ]
}

/// A unique prefix of each id. If two sessions have the same id, the session goes before it.
fn names(requests: &[OpenRequest]) -> Vec<String> {
    let ids: Vec<String> = requests.iter().map(id).collect();
    let name = |(place, own): (usize, &String)| {
        let others = || ids.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, id)| id);
        if others().any(|other| other == own) {
            let session = requests.get(place).map(|open| open.session_id.as_str());
            return format!("{}/{own}", format::short(session.unwrap_or_default()));
        }
        let is_own = |length: &usize| {
            own.get(..*length)
                .is_some_and(|begins| !others().any(|other| other.starts_with(begins)))
        };
        let length = (SHOWN..own.len()).find(is_own).unwrap_or(own.len());
        own.get(..length).unwrap_or(own).to_owned()
    };
    let names = ids.iter().enumerate().map(name);
    names.map(|name| format::line(&name)).collect()
}

fn id(open: &OpenRequest) -> String {
    open.request.request_id.to_string()
}

/// Finds the open request with this id or prefix.
pub(super) async fn find(source: &Source, name: &str) -> Result<OpenRequest, Failure> {
    let requests = source.requests(None).await?;
    let (session, begins) = match name.split_once('/') {
        Some((session, request)) => (session, request),
        None => ("", name),
    };
    // An id may contain a `/`.
    let fits = |open: &&OpenRequest| {
        let own = id(open);
        let is_whole = own == name;
        let is_of = open.session_id.as_str().starts_with(session);
        is_whole || (is_of && (own == begins || own.starts_with(begins)))
    };
    let fitting: Vec<&OpenRequest> = requests.iter().filter(fits).collect();
    let whole: Vec<&OpenRequest> =
        fitting.iter().copied().filter(|open| id(open) == begins || id(open) == name).collect();
    match (fitting.as_slice(), whole.as_slice()) {
        (_, [one]) => Ok((*one).clone()),
        ([one], _) if begins.len() >= TAKEN => Ok((*one).clone()),
        ([_, _, ..], _) if begins.len() >= TAKEN => {
            let message =
                format!("several requests start with {name}; give more of the id, or SESSION/RID");
            Err(GatewayError::new(ErrorCode::InvalidMessage, message).into())
        }
        (_, _) => Err(missing(source, name, begins).await?.into()),
    }
}

/// Why there is no such request: it is settled, or it never existed.
async fn missing(source: &Source, name: &str, begins: &str) -> Result<GatewayError, Failure> {
    let looked =
        if begins.len() >= TAKEN { source.sessions(true, None).await? } else { Vec::new() };
    for session in looked {
        let after = session.last_seq.saturating_sub(BACK);
        let mut events = source.events(&session.id, after, false).await?;
        let mut settled = None;
        while events.position() < session.last_seq
            && let Some(EventUpdate::Events(batch)) = events.next().await?
        {
            for (_, line) in batch.events() {
                if let Ok(Event { kind: EventKind::RequestSettled(how), .. }) = read(line)
                    && how.request_id.decode().starts_with(begins)
                {
                    let client = how.client.as_ref().map(ToString::to_string);
                    let by = client.unwrap_or_else(|| how.by.as_str().to_owned());
                    settled = Some(format!("{} by {by}", how.outcome.as_str()));
                }
            }
        }
        if let Some(how) = settled {
            let short = format::short(session.id.as_str());
            let message = format!("request {name} of session {short} is already settled: {how}");
            return Ok(GatewayError::new(ErrorCode::RequestSettled, message));
        }
    }
    let message = format!("no pending request {name}; `agentwire permit ls` lists them");
    Ok(GatewayError::new(ErrorCode::InvalidMessage, message))
}

#[cfg(test)]
mod tests {
    use agentwire_protocol::event::RequestRaised;
    use agentwire_protocol::reply::RequestState;

    use super::*;

    fn open(session: &str, request: &'static str) -> OpenRequest {
        OpenRequest {
            session_id: SessionId::from(session),
            agent_id: MAIN_AGENT.to_owned(),
            parent_agent_id: None,
            raised_at: String::new(),
            seq: 1,
            state: RequestState::Open,
            request: RequestRaised::new(request, RequestKind::Permission, None),
        }
    }

    #[test]
    fn names_tell_requests_apart() {
        let requests = [
            open("11111111-a", "0f1e2d3c4b5a"),
            open("11111111-a", "request-0001"),
            open("11111111-a", "request-0002"),
            open("11111111-a", "7"),
            open("22222222-b", "7"),
            open("22222222-b", "request-00021"),
        ];
        let expected = [
            "0f1e2d3c",
            "request-0001",
            "request-0002",
            "11111111/7",
            "22222222/7",
            "request-00021",
        ];
        assert_eq!(names(&requests), expected);
    }
}
