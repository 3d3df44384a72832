//! Decides which of Claude's own lines pass.

use std::borrow::Cow;

use agentwire_protocol::json::on_one_line;
use agentwire_protocol::{Native, NativeLine, Stream, Text};

use crate::claude::agent::NAME;
use crate::json::{Scanner, Value};
use crate::tape::bare;

/// What a line means to the renderer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Control, or nothing that a client reads as a message: left to the front.
    Withheld,
    /// `stream_event`, and the lines that come with it
    Partial,
    /// `system/init`
    Init,
    /// `result`
    Result,
    /// `command_lifecycle`: what became of a message with an id
    Lifecycle,
    /// Any other message.
    Message,
}

/// Whether Claude wrote it for the program that drives it.
pub(super) fn is_claude(native: &Native<'_>) -> bool {
    native.dialect == NAME && native.stream == Stream::Stdout
}

/// The text on one line, and what it is. A line on which parsers differ is JSON to most readers, and passes
/// too.
pub(super) fn read<'n>(
    scanner: &mut Scanner,
    line: &'n NativeLine<'_>,
) -> (Cow<'n, str>, LineKind) {
    match line {
        NativeLine::Json(json) => {
            let text = json.get();
            (Cow::Borrowed(text), known(text).unwrap_or_else(|| kind(scanner, text)))
        }
        NativeLine::Text(text) => {
            let text = bare(text);
            (on_one_line(text), kind(scanner, text))
        }
        NativeLine::Bytes(_) => (Cow::Borrowed(""), LineKind::Withheld),
    }
}

/// Most lines are checked JSON that starts with its type. For these, only the type is looked at.
fn known(text: &str) -> Option<LineKind> {
    let (name, _) = text.strip_prefix("{\"type\":\"")?.split_once('"')?;
    match name {
        "stream_event" => Some(LineKind::Partial),
        "assistant" | "user" => Some(LineKind::Message),
        _ => None,
    }
}

fn kind(scanner: &mut Scanner, text: &str) -> LineKind {
    let Ok(document) = scanner.scan_tolerant(text) else { return LineKind::Withheld };
    let message = document.root();
    if !message.is_object() {
        return LineKind::Withheld;
    }
    // Most readers take the last of duplicate names.
    let word = |name| message.fields().filter(|(key, _)| key == name).last()?.1.string();
    match word("type").as_deref() {
        Some("stream_event") => LineKind::Partial,
        Some("result") => LineKind::Result,
        Some("system") => match word("subtype").as_deref() {
            Some("init") => LineKind::Init,
            Some("session_state_changed") => LineKind::Withheld,
            // Claude sends it only to clients that also get partial messages.
            Some("status") if word("status").as_deref() == Some("requesting") => LineKind::Partial,
            _ => LineKind::Message,
        },
        Some("command_lifecycle") => LineKind::Lifecycle,
        Some("keep_alive") => LineKind::Withheld,
        Some(name) if name.starts_with("control_") || name.starts_with("callback.") => {
            LineKind::Withheld
        }
        _ => LineKind::Message,
    }
}

/// The line with the mode that its event reports: if the gateway applies a mode that approves, Claude
/// reports the mode that asks.
pub(super) fn in_mode<'n>(text: Cow<'n, str>, told: Option<&Text<'_>>) -> Cow<'n, str> {
    // Inside a string, the quotes would be escaped.
    const ASKING: &str = r#""permissionMode":"default""#;
    match told
        .map(Text::decode)
        .filter(|mode| matches!(&**mode, "acceptEdits" | "bypassPermissions"))
    {
        Some(mode) if text.contains(ASKING) => {
            Cow::Owned(text.replace(ASKING, &format!(r#""permissionMode":"{mode}""#)))
        }
        Some(_) | None => text,
    }
}

/// The session's id in one of Claude's lines.
pub(super) fn session_id(scanner: &mut Scanner, text: &str) -> Option<String> {
    let document = scanner.scan_tolerant(text).ok()?;
    document.root().get("session_id").and_then(Value::string).map(Cow::into_owned)
}

/// Whether a `result` line reports an error.
pub(super) fn is_error(scanner: &mut Scanner, text: &str) -> Option<bool> {
    let document = scanner.scan_tolerant(text).ok()?;
    let result = document.root();
    let failed = result.get("subtype").and_then(Value::string).is_some_and(|s| s != "success");
    Some(result.read("is_error").unwrap_or(failed))
}

/// The message that a line is about.
pub(super) fn command_uuid(scanner: &mut Scanner, text: &str) -> Option<String> {
    let document = scanner.scan_tolerant(text).ok()?;
    document.root().get("command_uuid").and_then(Value::string).map(Cow::into_owned)
}
