//! Parses the client's lines.

use agentwire_protocol::{Json, Prompt};
use serde::Deserialize;

use super::answers::Answer;
use super::control::{Control, Fields};
use super::prompt;
use crate::json::repair;

pub(super) enum ClientMessage {
    Prompt(Prompt, Option<Json<'static>>),
    Control(Control, Fields),
    Answer(Answer),
    /// Heartbeats, withdrawn requests, and messages of newer clients.
    Nothing,
}

/// A line that cannot be read.
pub(super) struct UnreadableLine {
    pub(super) why: String,
    /// It was meant to be a prompt: somebody waits for its result.
    pub(super) is_prompt: bool,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
}

/// Reads a line. One that only some parsers accept, such as one with half a surrogate pair, is repaired
/// first.
pub(super) fn read(
    text: &str,
    replays: bool,
    keeps_form: bool,
) -> Result<ClientMessage, UnreadableLine> {
    strict(text, replays, keeps_form).or_else(|unread| match repair(text) {
        Ok(mended) => strict(&mended, replays, keeps_form),
        Err(_) => Err(unread),
    })
}

fn strict(text: &str, replays: bool, keeps_form: bool) -> Result<ClientMessage, UnreadableLine> {
    let unread = |why| UnreadableLine { why, is_prompt: false };
    let head: Head = serde_json::from_str(text)
        .map_err(|error| unread(format!("failed to read the line: {error}")))?;
    Ok(match head.kind.as_str() {
        "user" => {
            let prompt = prompt::read(text, keeps_form)
                .map_err(|why| UnreadableLine { why, is_prompt: true })?;
            let replay = if replays { prompt::message(text) } else { None };
            ClientMessage::Prompt(prompt, replay)
        }
        "control_request" => {
            let (control, fields) = Control::read(text).map_err(unread)?;
            ClientMessage::Control(control, fields)
        }
        "control_response" => ClientMessage::Answer(Answer::control(text).map_err(unread)?),
        "callback.response" => ClientMessage::Answer(Answer::callback(text).map_err(unread)?),
        _ => ClientMessage::Nothing,
    })
}
