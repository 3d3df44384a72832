//! `agentwire ls`: sessions, newest first.

use std::io::{self, Write};
use std::path::Path;

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::reply::SessionList;
use agentwire_protocol::{ListQuery, SessionState, SessionSummary};
use serde_json::json;

use crate::args::{Global, Ls};
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::print;
use crate::source::{self, Source};

/// The minimum width of a column of free text.
const NARROW: usize = 12;

pub(crate) fn run(global: &Global, args: &Ls) -> Result<(), Failure> {
    let limit = if args.all { usize::MAX } else { args.limit };
    let (sessions, more) = source::open(global, &args.at, async |source| match chosen(args) {
        Some(query) => listed(source, query, limit).await,
        None => sessions(source, limit).await,
    })?;
    if args.json {
        return Ok(print::json(&json!({ "sessions": sessions }))?);
    }
    if sessions.is_empty() && !more && chosen(args).is_some() {
        print::note("no session fits");
        return Ok(());
    }
    if sessions.is_empty() && !more {
        print::note("no sessions yet; start one with `agentwire run`");
        return Ok(());
    }
    if !sessions.is_empty() {
        write(&mut print::stdout(), &sessions, Paint::stdout(), print::columns())?;
    }
    if more {
        print::note(&format!("showing the last {limit}; --all shows all"));
    }
    Ok(())
}

/// The filters and the order, if any are given.
fn chosen(args: &Ls) -> Option<ListQuery> {
    let directory = args.dir.as_deref().map(|directory| {
        // As the log has it, if it still exists.
        let known = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        known.to_string_lossy().into_owned()
    });
    let query = ListQuery {
        state: args.state,
        agent: args.agent,
        directory,
        q: (!args.words.is_empty()).then(|| args.words.join(" ")),
        sort: args.sort,
        ..ListQuery::default()
    };
    (query != ListQuery::default()).then_some(query)
}

/// The first sessions that fit, and whether there are more.
async fn listed(
    source: &Source,
    mut query: ListQuery,
    limit: usize,
) -> Result<(Vec<SessionSummary>, bool), Failure> {
    let mut found = Vec::new();
    loop {
        query.limit = Some(limit.saturating_sub(found.len()).clamp(1, SessionList::LIMIT));
        let page = source.list(query.clone()).await?;
        found.extend(page.sessions);
        let has_more = found.len() > limit || page.next.is_some();
        found.truncate(limit);
        match page.next {
            Some(next) if found.len() < limit => query.after = Some(next),
            Some(_) | None => return Ok((found, has_more)),
        }
    }
}

/// Running sessions, then the others, each newest first; and whether there are more.
async fn sessions(source: &Source, limit: usize) -> Result<(Vec<SessionSummary>, bool), Failure> {
    let mut shown = source.sessions(true, None).await?;
    // Enough to know whether there are more.
    let enough = limit.checked_add(shown.len()).and_then(|enough| enough.checked_add(1));
    let all = source.sessions(false, enough).await?;
    shown.extend(all.into_iter().filter(|session| session.state == SessionState::Ended));
    let more = shown.len() > limit;
    shown.truncate(limit);
    Ok((shown, more))
}

fn write(
    out: &mut impl Write,
    sessions: &[SessionSummary],
    paint: Paint,
    columns: Option<usize>,
) -> io::Result<()> {
    let head = ["ID", "STATE", "AGENT", "AGE", "TURNS", "COST", "TITLE", "DIRECTORY"];
    let rows: Vec<[String; 8]> = sessions.iter().map(row).collect();
    let [id, state, agent, age, turns, cost, title, directory] =
        format::widths(std::iter::once(&head.map(str::to_owned)).chain(&rows));
    // A mark, and two spaces before each column but the first.
    let fixed = 2 + id + state + agent + age + turns + cost + 2 * 7;
    let free = columns.map(|columns| columns.saturating_sub(fixed));
    let (title, directory) = match free {
        Some(free) if title + directory > free => {
            let directory = directory.min((free / 2).max(NARROW));
            (free.saturating_sub(directory).max(NARROW), directory)
        }
        _ => (title, directory),
    };
    let line = |mark: &str, cells: [&str; 8]| {
        let [c_id, c_state, c_agent, c_age, c_turns, c_cost, c_title, c_directory] = cells;
        let right = |text: &str, width| format!("{text:>width$}");
        let cells = [
            format::pad(c_id, id),
            format::pad(c_state, state),
            format::pad(c_agent, agent),
            right(c_age, age),
            right(c_turns, turns),
            right(c_cost, cost),
            format::pad(&format::cut(c_title, title), title),
            format::cut(c_directory, directory).into_owned(),
        ];
        format!("{mark} {}", cells.join("  ")).trim_end().to_owned()
    };
    writeln!(out, "{}", paint.dim(&line(" ", head)))?;
    for (session, row) in sessions.iter().zip(&rows) {
        let live = session.state != SessionState::Ended;
        let text = line(if live { "●" } else { " " }, row.each_ref().map(String::as_str));
        let text = match session.state {
            SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::Stalled => paint.green(&text),
            SessionState::WaitingPermission | SessionState::WaitingQuestion => paint.yellow(&text),
            SessionState::Ended => match session.reason {
                Some(SessionEndReason::Failed | SessionEndReason::Timeout) => paint.red(&text),
                Some(SessionEndReason::Completed | SessionEndReason::Cancelled) | None => {
                    text.as_str().into()
                }
            },
        };
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn row(session: &SessionSummary) -> [String; 8] {
    let directory = session.working_directory.as_deref().unwrap_or_default();
    [
        format::line(format::short(session.id.as_str())),
        state(session).to_owned(),
        session.agent_type.as_str().to_owned(),
        format::age(&session.created_at),
        session.turns.to_string(),
        session.cost_usd.map(format::dollars).unwrap_or_default(),
        format::line(&title(session)),
        format::line(&at_home(directory)),
    ]
}

/// The title, marked if the session is pinned, and its tags.
fn title(session: &SessionSummary) -> String {
    let mut text = String::new();
    if session.pinned {
        text.push_str("★ ");
    }
    text.push_str(session.title.as_deref().unwrap_or_default());
    for tag in &session.tags {
        text.push_str(&format!(" #{tag}"));
    }
    text
}

/// The state in a word or two; for an ended session, how it ended.
pub(crate) fn state(session: &SessionSummary) -> &'static str {
    match session.state {
        SessionState::Starting => "starting",
        SessionState::Idle => "idle",
        SessionState::Working => "working",
        SessionState::WaitingPermission => "needs permission",
        SessionState::WaitingQuestion => "needs an answer",
        SessionState::Stalled => "stalled",
        SessionState::Ended => match session.reason {
            Some(SessionEndReason::Completed) | None => "ended",
            Some(SessionEndReason::Failed) => "failed",
            Some(SessionEndReason::Cancelled) => "cancelled",
            Some(SessionEndReason::Timeout) => "timed out",
        },
    }
}

/// Shortens the home directory to `~`.
fn at_home(directory: &str) -> String {
    let inside = std::env::home_dir()
        .filter(|home| home.parent().is_some())
        .and_then(|home| Path::new(directory).strip_prefix(home).ok().map(Path::to_owned));
    match inside {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.to_owned(),
    }
}
