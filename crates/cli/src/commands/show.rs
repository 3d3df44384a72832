//! `agentwire show`: prints everything about a session.

use std::io::{self, Write};

use agentwire_client::{OpenRequest, SessionDetails};
use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{Json, SessionConfig, SessionState, SessionSummary, TokenUsage};
use serde::Serialize;

use crate::args::{Global, Show};
use crate::commands::ls;
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::print;
use crate::source::{self, Source};

/// The JSON output.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    session: SessionSummary,
    config: SessionConfig,
    /// The events that raised the open requests.
    requests: Vec<Json<'static>>,
}

pub(crate) fn run(global: &Global, args: &Show) -> Result<(), Failure> {
    let (details, asked, raised) =
        source::open(global, &args.at, async |source| look(source, &args.session).await)?;
    if args.json {
        let SessionDetails { summary: session, config } = details;
        return Ok(print::json(&Answer { session, config, requests: raised })?);
    }
    Ok(write(&mut print::stdout(), &details, &asked, Paint::stdout())?)
}

/// The session, its open requests, and the events that raised them.
async fn look(
    source: &Source,
    session: &str,
) -> Result<(SessionDetails, Vec<OpenRequest>, Vec<Json<'static>>), Failure> {
    let id = source.find(session).await?;
    let details = source.details(&id).await?;
    let mut asked = source.requests(Some(&id)).await?;
    asked.sort_by_key(|open| open.seq);
    let mut raised = Vec::new();
    for open in &asked {
        raised.extend(source.event(&id, open.seq).await?);
    }
    Ok((details, asked, raised))
}

fn write(
    out: &mut impl Write,
    details: &SessionDetails,
    asked: &[OpenRequest],
    paint: Paint,
) -> io::Result<()> {
    let SessionDetails { summary: session, config } = details;
    let list = |words: &Option<Vec<String>>| words.as_ref().map(|words| words.join(", "));
    let name = |value: &Json<'_>| value.get().trim_matches('"').to_owned();
    let when = |time: &str| format!("{time} ({} ago)", format::age(time));
    let agent = [Some(session.agent_type.as_str()), session.agent_version.as_deref()];
    let fields = [
        ("session", Some(session.id.to_string())),
        ("state", Some(ls::state(session).to_owned())),
        ("error", session.error.clone()),
        ("title", session.title.clone()),
        ("tags", (!session.tags.is_empty()).then(|| session.tags.join(", "))),
        ("pinned", session.pinned.then(|| "yes".to_owned())),
        ("agent", Some(agent.into_iter().flatten().collect::<Vec<_>>().join(" "))),
        ("driver", session.driver.clone()),
        ("agentwire", session.gateway_version.clone()),
        ("model", session.model.clone()),
        ("approval", session.approval_mode.map(|mode| name(&Json::of(&mode)))),
        ("mode", config.permission_mode.clone()),
        ("sandbox", config.sandbox_mode.map(|mode| name(&Json::of(&mode)))),
        ("allowed", list(&config.allowed_tools)),
        ("blocked", list(&config.blocked_tools)),
        ("directory", session.working_directory.clone()),
        ("started", Some(when(&session.created_at))),
        ("last event", Some(when(&session.updated_at))),
        ("events", Some(session.last_seq.to_string())),
        ("turns", Some(session.turns.to_string())),
        ("tokens", Some(tokens(&session.usage))),
        ("cost", session.cost_usd.map(format::dollars)),
        ("agent's id", session.native_session_id.clone()),
    ];
    let widest = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in fields {
        if let Some(value) = value {
            let name = format::pad(name, widest);
            writeln!(out, "{}  {}", paint.dim(&name), format::line(&value))?;
        }
    }
    for open in asked {
        writeln!(out)?;
        write_request(out, &open.request, paint)?;
    }
    writeln!(out, "\n{}", next(session))
}

/// Prints a request in full, so that no one answers a part of it.
fn write_request(
    out: &mut impl Write,
    request: &RequestRaised<'_>,
    paint: Paint,
) -> io::Result<()> {
    let kind = Json::of(&request.kind);
    let what = [&request.tool_name, &request.name, &request.title];
    let what = what.into_iter().flatten().next().map(|text| format::line(&text.decode()));
    let heading = format!(
        "pending: {} {}",
        kind.get().trim_matches('"'),
        what.as_deref().unwrap_or_default()
    );
    let id = format::line(&request.request_id.decode());
    writeln!(out, "{}  {}", paint.yellow(heading.trim_end()), paint.dim(&id))?;
    if let Some(message) = &request.message {
        writeln!(out, "  {}", indented(&message.decode()))?;
    }
    for question in &request.questions {
        writeln!(out, "  {}", indented(&question.question.decode()))?;
        for (number, option) in (1..).zip(&question.options) {
            writeln!(out, "    {number}. {}", format::line(&option.label.decode()))?;
        }
    }
    if request.questions.is_empty()
        && let Some(input) = &request.input
    {
        let pretty = serde_json::from_str::<serde_json::Value>(input.get());
        let text = pretty.map_or_else(|_| input.get().to_owned(), |value| format!("{value:#}"));
        writeln!(out, "  {}", indented(&text))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    format::harmless(text).trim_end().replace('\n', "\n  ")
}

/// What the user can do next.
fn next(session: &SessionSummary) -> String {
    let id = format::short(session.id.as_str());
    match (session.state, &session.native_session_id) {
        (SessionState::Ended, Some(_)) => {
            format!("resume: agentwire run --resume {id} PROMPT")
        }
        (SessionState::Ended, None) => {
            "cannot be resumed: the agent never reported its own session id".to_owned()
        }
        (SessionState::WaitingPermission | SessionState::WaitingQuestion, _) => {
            format!("answer: agentwire attach {id}, or agentwire permit")
        }
        (
            SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::Stalled,
            _,
        ) => format!("follow: agentwire attach {id}"),
    }
}

/// Token counts; the ones that the agent does not report are left out.
pub(crate) fn tokens(usage: &TokenUsage) -> String {
    let mut text = format!("{} in, {} out", usage.input_tokens, usage.output_tokens);
    let more = [
        (usage.cached_tokens, "from cache"),
        (usage.cache_creation_tokens, "to cache"),
        (usage.reasoning_tokens, "reasoning"),
    ];
    for (count, what) in more {
        if let Some(count) = count {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    format!("{text}; {} total", usage.total_tokens)
}
