//! Short forms of a tool call's input and result.

use agentwire_protocol::Json;
use serde_json::Value;

use super::numbers;

const SUMMARY_LIMIT: usize = 160;

/// The fields that describe a call best, best first.
const TELLING: [&str; 14] = [
    "command",
    "cmd",
    "file_path",
    "absolute_path",
    "path",
    "notebook_path",
    "url",
    "query",
    "pattern",
    "dir_path",
    "description",
    "prompt",
    "title",
    "name",
];

pub(crate) fn summary(
    arguments: Option<&Json<'_>>,
    title: Option<&str>,
    directory: Option<&str>,
) -> String {
    let arguments = arguments.and_then(|json| json.read::<Value>().ok()).unwrap_or_default();
    let telling = TELLING.iter().find_map(|field| text(arguments.get(*field)?));
    let telling = telling.or_else(|| changed_paths(&arguments, directory));
    let question = || text(arguments.get("questions")?.get(0)?.get("question")?);
    let whole = || match &arguments {
        Value::Object(fields) if !fields.is_empty() && !fields.contains_key("todos") => {
            Some(arguments.to_string())
        }
        _ => None,
    };
    let words = telling
        .or_else(question)
        .or_else(|| title.map(str::to_owned))
        .or_else(whole)
        .unwrap_or_default();
    first_line(near(&words, directory))
}

/// A command as one string; other strings unchanged.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(words) if !words.is_empty() => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    }
}

fn changed_paths(arguments: &Value, directory: Option<&str>) -> Option<String> {
    let changes = arguments.get("changes")?.as_array()?;
    let path =
        |change: &Value| change.get("path")?.as_str().map(|path| near(path, directory).to_owned());
    let paths: Vec<String> = changes.iter().filter_map(path).collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

/// The path relative to the session's directory.
pub(crate) fn near<'p>(path: &'p str, directory: Option<&str>) -> &'p str {
    let inside = directory.and_then(|directory| path.strip_prefix(directory));
    inside.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty()).unwrap_or(path)
}

fn first_line(text: &str) -> String {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = numbers::cut(first, SUMMARY_LIMIT);
    match rest.lines().count() {
        0 => first.into_owned(),
        more => format!("{first}  {}", numbers::more(more)),
    }
}

/// A tool's result as text.
pub(crate) fn result(result: &Json<'_>) -> String {
    match result.read::<Value>() {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(blocks)) => blocks.iter().map(block).collect::<Vec<_>>().join("\n"),
        Ok(Value::Object(fields)) => {
            let telling = ["output", "stdout", "text", "content", "message"];
            let telling = telling.iter().find_map(|name| fields.get(*name)?.as_str());
            telling.map_or_else(|| result.get().to_owned(), str::to_owned)
        }
        Ok(Value::Null) => String::new(),
        Ok(_) | Err(_) => result.get().to_owned(),
    }
}

fn block(block: &Value) -> String {
    let inner = block.get("content").filter(|inner| inner.is_object()).unwrap_or(block);
    let field = |name: &str| inner.get(name).and_then(Value::as_str);
    match (field("text"), field("type")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(kind)) => format!("[{kind}]"),
        (None, None) => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &str) -> String {
        summary(Some(&Json::parse(arguments).unwrap()), None, Some("/w"))
    }

    #[test]
    fn a_call_in_few_words() {
        assert_eq!(of(r#"{"command":"ls -la","description":"List"}"#), "ls -la");
        assert_eq!(of(r#"{"command":["bash","-lc","ls"]}"#), "bash -lc ls");
        assert_eq!(of(r#"{"file_path":"/w/src/a.rs"}"#), "src/a.rs");
        assert_eq!(of(r#"{"file_path":"/wide/a.rs"}"#), "/wide/a.rs");
        assert_eq!(of(r#"{"command":"a\nb\nc"}"#), "a  … 2 more lines");
        assert_eq!(of(r#"{"changes":[{"path":"/w/a"},{"path":"b"}]}"#), "a, b");
        assert_eq!(of(r#"{"x":1}"#), r#"{"x":1}"#);
        assert_eq!(of("{}"), "");
    }

    #[test]
    fn a_result_as_text() {
        let of = |json: &str| result(&Json::parse(json).unwrap());
        assert_eq!(of(r#""a\nb""#), "a\nb");
        assert_eq!(of(r#"[{"type":"text","text":"a"},{"type":"image","data":"x"}]"#), "a\n[image]");
        assert_eq!(of(r#"[{"type":"content","content":{"type":"text","text":"a"}}]"#), "a");
        assert_eq!(of(r#"{"output":"a"}"#), "a");
        assert_eq!(of(r#"{"a":1}"#), r#"{"a":1}"#);
    }
}
