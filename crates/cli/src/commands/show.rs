//! `agentwire show`: all that is known of a session.

use std::io::{self, Write};

use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{
    Event, EventKind, Json, SessionConfig, SessionState, SessionSummary, TokenUsage,
};
use agentwire_sessions::Hub;
use agentwire_sessions::store::Record;
use serde::Serialize;

use crate::args::{Global, Show};
use crate::commands::ls;
use crate::engine;
use crate::failure::Failure;
use crate::print;
use crate::shown::{self, Paint};

/// The answer for programs.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    session: SessionSummary,
    config: SessionConfig,
    /// The events that raised what is open.
    requests: Vec<Json<'static>>,
}

pub(crate) fn run(global: &Global, args: &Show) -> Result<(), Failure> {
    let (record, raised) = engine::reading(global, async |hub| look(hub, &args.session).await)?;
    if args.json {
        return Ok(print::json(&Answer {
            session: record.summary,
            config: record.config.shown(),
            requests: raised,
        })?);
    }
    Ok(write(&mut print::stdout(), &record, &raised, Paint::stdout())?)
}

/// The session, and the events that raised what is open in it.
async fn look(hub: &Hub, session: &str) -> Result<(Record, Vec<Json<'static>>), Failure> {
    let id = hub.find(session).await?;
    let record = hub.record(&id).await?;
    let mut seqs: Vec<u64> = record.open.requests.values().filter_map(|open| open.seq).collect();
    seqs.sort_unstable();
    let mut raised = Vec::new();
    for seq in seqs {
        let Some(batch) = hub.events(&id, seq.saturating_sub(1)).await?.next().await? else {
            break;
        };
        let line = batch.events().find(|(at, _)| *at == seq).map(|(_, line)| line);
        let text = line.and_then(|line| std::str::from_utf8(line).ok());
        raised.extend(text.and_then(|text| Json::parse(text).ok()).map(Json::into_owned));
    }
    Ok((record, raised))
}

fn write(
    out: &mut impl Write,
    record: &Record,
    raised: &[Json<'static>],
    paint: Paint,
) -> io::Result<()> {
    let session = &record.summary;
    let config = &record.config;
    let list = |words: &Option<Vec<String>>| words.as_ref().map(|words| words.join(", "));
    let name = |value: &Json<'_>| value.get().trim_matches('"').to_owned();
    let when = |time: &str| format!("{time} ({} ago)", shown::age(time));
    let agent = [Some(session.agent_type.as_str()), session.agent_version.as_deref()];
    let fields = [
        ("session", Some(session.id.to_string())),
        ("state", Some(ls::state(session).to_owned())),
        ("error", session.error.clone()),
        ("title", session.title.clone()),
        ("agent", Some(agent.into_iter().flatten().collect::<Vec<_>>().join(" "))),
        ("driver", session.driver.clone()),
        ("model", session.model.clone()),
        ("approval", session.approval_mode.map(|mode| name(&Json::of(&mode)))),
        ("mode", config.permission_mode.clone()),
        ("sandbox", config.sandbox_mode.map(|mode| name(&Json::of(&mode)))),
        ("allowed", list(&config.allowed_tools)),
        ("blocked", list(&config.blocked_tools)),
        ("directory", session.working_directory.clone()),
        ("began", Some(when(&session.created_at))),
        ("last event", Some(when(&session.updated_at))),
        ("events", Some(session.last_seq.to_string())),
        ("turns", Some(session.turns.to_string())),
        ("tokens", Some(tokens(&session.usage))),
        ("cost", session.cost_usd.map(shown::dollars)),
        ("agent's id", session.native_session_id.clone()),
    ];
    let widest = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in fields {
        if let Some(value) = value {
            let name = shown::pad(name, widest);
            writeln!(out, "{}  {}", paint.dim(&name), shown::line(&value))?;
        }
    }
    for event in raised {
        if let Ok(Event { kind: EventKind::RequestRaised(request), .. }) =
            Event::from_json(event.get())
        {
            writeln!(out)?;
            write_request(out, &request, paint)?;
        }
    }
    writeln!(out, "\n{}", next(session))
}

/// What is asked, whole: nobody should answer what was cut.
fn write_request(
    out: &mut impl Write,
    request: &RequestRaised<'_>,
    paint: Paint,
) -> io::Result<()> {
    let kind = Json::of(&request.kind);
    let what = [&request.tool_name, &request.name, &request.title];
    let what = what.into_iter().flatten().next().map(|text| shown::line(&text.decode()));
    let heading =
        format!("waits: {} {}", kind.get().trim_matches('"'), what.as_deref().unwrap_or_default());
    let id = shown::line(&request.request_id.decode());
    writeln!(out, "{}  {}", paint.yellow(heading.trim_end()), paint.dim(&id))?;
    if let Some(message) = &request.message {
        writeln!(out, "  {}", indented(&message.decode()))?;
    }
    for question in &request.questions {
        writeln!(out, "  {}", indented(&question.question.decode()))?;
        for (number, option) in (1..).zip(&question.options) {
            writeln!(out, "    {number}. {}", shown::line(&option.label.decode()))?;
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
    shown::harmless(text).trim_end().replace('\n', "\n  ")
}

/// What can be done with it now.
fn next(session: &SessionSummary) -> String {
    let id = shown::short(session.id.as_str());
    match (session.state, &session.native_session_id) {
        (SessionState::Ended, Some(_)) => {
            format!("go on with it: agentwire run --resume {id} PROMPT")
        }
        (SessionState::Ended, None) => {
            "it cannot be resumed: its agent never told its own id of it".to_owned()
        }
        (
            SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled,
            _,
        ) => format!("watch it: agentwire attach {id}"),
    }
}

/// Tokens in words; what the agent does not count is left out.
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
    format!("{text}; {} in all", usage.total_tokens)
}
