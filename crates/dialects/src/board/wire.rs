//! The wire format: one envelope, and the payload of each type.

use agentwire_protocol::{Event, Json, Text};
use serde::Serialize;

use crate::digest::{digest, uuid};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'t, P: Serialize> {
    id: String,
    session_id: &'t str,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: P,
    timestamp: &'t str,
}

/// `plan` and `error`.
#[derive(Serialize)]
pub(super) struct Message<'p> {
    pub(super) message: &'p str,
}

#[derive(Serialize)]
struct Line<'p> {
    line: &'p str,
}

#[derive(Serialize)]
pub(super) struct Diff<'p> {
    pub(super) file: &'p Text<'p>,
    pub(super) diff: &'p str,
}

#[derive(Serialize)]
pub(super) struct Action<'p> {
    pub(super) tool: &'p str,
    pub(super) args: &'p Json<'p>,
}

#[derive(Serialize)]
pub(super) struct ToolResult<'p> {
    pub(super) tool: &'p str,
    pub(super) success: bool,
    pub(super) output: &'p str,
}

/// `cancelled`
#[derive(Serialize)]
pub(super) struct Empty {}

/// Sends messages for one event. Each gets its own id, which is the same on every rendering.
pub(super) struct MessageWriter<'v> {
    event: &'v Event<'v>,
    count: u32,
    say: &'v mut dyn FnMut(Json<'static>),
}

impl<'v> MessageWriter<'v> {
    pub(super) fn new(event: &'v Event<'v>, say: &'v mut dyn FnMut(Json<'static>)) -> Self {
        Self { event, count: 0, say }
    }

    pub(super) fn write(&mut self, kind: &'static str, payload: impl Serialize) {
        self.count += 1;
        let (session_id, timestamp) = (&*self.event.session_id, &*self.event.timestamp);
        let of = format!("board\n{session_id}\n{}\n{}", self.event.seq, self.count);
        let id = uuid(digest(&of));
        (self.say)(Json::of(&Envelope { id, session_id, kind, payload, timestamp }));
    }

    pub(super) fn log(&mut self, line: &str) {
        self.write("log", Line { line });
    }

    /// Sends each line separately, without its line end.
    pub(super) fn lines(&mut self, text: &str) {
        text.split('\n').for_each(|line| self.log(line));
    }
}
