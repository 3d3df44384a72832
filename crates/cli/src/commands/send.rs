//! `agentwire send`: sends a prompt to a session that a server runs or can resume.

use agentwire_client::Session;
use agentwire_protocol::{SessionState, SessionSummary};
use serde_json::json;

use super::run::prompt;
use crate::args::{Global, Send};
use crate::drive::{Drive, Signals};
use crate::failure::Failure;
use crate::screen::{Screen, Shape};
use crate::source::{self, Events};
use crate::terminal::Terminal;
use crate::{format, print};

pub(crate) fn run(global: &Global, args: &Send) -> Result<(), Failure> {
    let text = prompt::read(args.prompt.as_deref(), "> ", None)?;
    source::open(global, &args.at, async |source| {
        let id = source.find(&args.session).await?;
        let summary = source.summary(&id).await?;
        let session = source.reach(&id).await?.session()?;
        let is_over = summary.state == SessionState::Ended;
        match args.wait {
            true => watch(&session, &summary, text).await,
            false => {
                let message = give(&session, &summary, text).await?;
                let short = format::short(id.as_str());
                if args.json {
                    let resumed = is_over;
                    print::json(
                        &json!({ "sessionId": id, "messageId": message, "resumed": resumed }),
                    )?;
                }
                print::done(&match is_over {
                    true => format!("session {short} resumed; follow it: agentwire attach {short}"),
                    false => format!("sent; follow it: agentwire attach {short}"),
                });
                Ok(())
            }
        }
    })
}

/// Delivers the prompt exactly once, even if it is sent again. Returns its id, if known.
async fn give(
    session: &Session,
    summary: &SessionSummary,
    text: String,
) -> Result<Option<String>, Failure> {
    if summary.state == SessionState::Ended {
        session.client().resume(summary.id.clone(), text).await?;
        return Ok(None);
    }
    Ok(Some(session.prompt(text).await?))
}

/// Sends the prompt and shows its turn.
async fn watch(session: &Session, summary: &SessionSummary, text: String) -> Result<(), Failure> {
    let screen = Screen::new(Shape::Talk);
    let terminal = if screen.is_seen() { Terminal::open() } else { None };
    let signals = Signals::new()?;
    let message = give(session, summary, text).await?;
    let events = Events::Stream(session.updates_after(summary.last_seq));
    let drive = Drive::new(events, summary.last_seq, screen, signals);
    drive.answering(session.clone(), terminal).for_turn_of(message).run().await.verdict
}
