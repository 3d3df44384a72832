//! Turns loose JSON into strict JSON, so that a line on which parsers differ can still be read. The
//! original line is stored unchanged; only the reading uses the repaired text.

use std::borrow::Cow;

use super::scan::{Document, Fault, Kind, LOOSE, Node, Scanner};

/// The same value as text that every strict parser accepts: lone surrogates become U+FFFD, the last of
/// duplicate keys wins, and values that are out of range or too deep become strings.
pub fn repair(text: &str) -> Result<String, Fault> {
    let mut scanner = Scanner::new();
    let document = scanner.scan_tolerant(text)?;
    let mut out = String::with_capacity(text.len());
    write(document, 0, &mut out);
    Ok(out)
}

fn write(document: Document<'_>, index: usize, out: &mut String) {
    let Some(node) = document.nodes.get(index) else { return };
    let text = slice(document, node);
    match node.kind {
        Kind::String if node.flags & LOOSE != 0 => out.push_str(&replace_lone_surrogates(text)),
        Kind::Number if node.flags & LOOSE != 0 => quote(text, out),
        Kind::Deep => quote(text, out),
        Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String => out.push_str(text),
        Kind::Array => write_array(document, index, node, out),
        Kind::Object => write_object(document, index, node, out),
    }
}

fn write_array(document: Document<'_>, index: usize, node: &Node, out: &mut String) {
    out.push('[');
    let mut at = index + 1;
    while at < node.next as usize {
        if at > index + 1 {
            out.push(',');
        }
        write(document, at, out);
        at = next(document, at);
    }
    out.push(']');
}

fn write_object(document: Document<'_>, index: usize, node: &Node, out: &mut String) {
    let mut fields: Vec<(String, usize)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut at = index + 1;
    while at < node.next as usize {
        let mut key = String::new();
        write(document, at, &mut key);
        // Two spellings of one key are one key.
        let name = serde_json::from_str::<String>(&key).unwrap_or_else(|_| key.clone());
        match places.get(&name).and_then(|place: &usize| fields.get_mut(*place)) {
            Some(field) => field.1 = at + 1,
            None => {
                places.insert(name, fields.len());
                fields.push((key, at + 1));
            }
        }
        at = next(document, at + 1);
    }
    out.push('{');
    for (count, (key, value)) in fields.iter().enumerate() {
        if count > 0 {
            out.push(',');
        }
        out.push_str(key);
        out.push(':');
        write(document, *value, out);
    }
    out.push('}');
}

fn next(document: Document<'_>, index: usize) -> usize {
    document.nodes.get(index).map_or(usize::MAX, |node| node.next as usize)
}

fn slice<'d>(document: Document<'d>, node: &Node) -> &'d str {
    document.text.get(node.start as usize..node.end as usize).unwrap_or_default()
}

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()));
}

/// JSON without lone surrogates: each becomes U+FFFD. Everything else stays as it is.
pub fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    // Few texts have any surrogate at all.
    let has_any = memchr::memmem::find_iter(text.as_bytes(), b"\\u")
        .any(|at| text.as_bytes().get(at + 2).is_some_and(|digit| matches!(digit, b'd' | b'D')));
    if has_any { Cow::Owned(replace_lone_surrogates(text)) } else { Cow::Borrowed(text) }
}

/// Replaces each lone surrogate escape in a JSON text with that of U+FFFD.
fn replace_lone_surrogates(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = |from: usize| {
            escape.get(from..from + 6).filter(|text| text.starts_with("\\u"))?;
            u32::from_str_radix(escape.get(from + 2..from + 6)?, 16).ok()
        };
        let length = match (unit(0), unit(6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        out.push_str(escape.get(..length).unwrap_or(escape));
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let text = r#"{"a":"\\ud83d \ud83d\ude00 \ud83d","b":[1e400,"\uDE00\u00e9"],"\ud83d\n":1}"#;
        let mended =
            r#"{"a":"\\ud83d \ud83d\ude00 \ufffd","b":[1e400,"\ufffd\u00e9"],"\ufffd\n":1}"#;
        assert_eq!(without_lone_surrogates(text), mended);
        assert!(matches!(without_lone_surrogates(r#"{"a":"\u00e9"}"#), Cow::Borrowed(_)));
    }
}
