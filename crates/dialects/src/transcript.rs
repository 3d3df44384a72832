//! Transcripts: both sides of a conversation with an agent, one `{"dir":"in"|"out","t_ms":N,"line":…}` per
//! line. A line that is not JSON is in `"raw":"…"`.

use std::borrow::Cow;

use crate::json::{Document, Fault, Scanner, repair};

/// The exact text that the agent wrote, if this line of a transcript records that.
pub fn agent_line(scanner: &mut Scanner, line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?.trim();
    match scanner.scan(text) {
        Ok(document) => written(document),
        // Parsers differ on the inner line: it is cut out verbatim. Text that is not JSON has no such form,
        // and is read from the repaired line.
        Err(Fault::Loose) => {
            let entry = scanner.scan_tolerant(text).ok()?;
            if entry.root().get("line").is_some() {
                return written(entry);
            }
            let mended = repair(text).ok()?;
            written(scanner.scan(&mended).ok()?)
        }
        Err(Fault::Syntax) => None,
    }
}

/// Whether this is a line of a transcript, of either side.
pub fn is_entry(scanner: &mut Scanner, line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).unwrap_or_default().trim();
    scanner.scan_tolerant(text).is_ok_and(|document| {
        let entry = document.root();
        let told = entry.get("line").or(entry.get("raw"));
        told.is_some() && entry.get("dir").is_some_and(|dir| dir.is("in") || dir.is("out"))
    })
}

fn written(document: Document<'_>) -> Option<Vec<u8>> {
    let entry = document.root();
    if !entry.get("dir")?.is("out") {
        return None;
    }
    match entry.read::<Cow<'_, str>>("raw") {
        Some(raw) => Some(raw.into_owned().into_bytes()),
        None => Some(entry.get("line")?.json().get().as_bytes().to_vec()),
    }
}
