//! Transcripts: both sides of a conversation with an agent, `{"dir":"in"|"out","t_ms":N,"line":…}` a
//! line. A line that is not JSON stands as `"raw":"…"`.

use std::borrow::Cow;

use crate::json::{Fault, Scanner, Value};

/// The exact text of what the agent wrote, if this line of a transcript tells of that.
///
/// A `line` in which parsers differ (doubled keys, lone surrogates) is cut out by its place, since
/// mending the transcript would mend the line too.
pub fn agent_line(scanner: &mut Scanner, line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?.trim();
    match scanner.scan(text) {
        Ok(document) => read(document.root()),
        Err(Fault::Loose) => cut(text).map(|line| line.as_bytes().to_vec()),
        Err(Fault::Syntax) => None,
    }
}

fn read(entry: Value<'_>) -> Option<Vec<u8>> {
    if !entry.get("dir")?.is("out") {
        return None;
    }
    match entry.read::<Cow<'_, str>>("raw") {
        Some(raw) => Some(raw.into_owned().into_bytes()),
        None => Some(entry.get("line")?.json().get().as_bytes().to_vec()),
    }
}

/// `line` is the last field of an entry.
fn cut(entry: &str) -> Option<&str> {
    let (head, rest) = entry.split_once("\"line\":")?;
    let head: String = head.split_whitespace().collect();
    head.contains("\"dir\":\"out\"").then(|| rest.strip_suffix('}').map(str::trim))?
}
