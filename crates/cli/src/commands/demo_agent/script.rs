//! Parses a prompt as a script: lines that start with `/` are directives.

use std::time::Duration;

use serde_json::{Value, json};

use super::usage::Usage;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Text with placeholders.
    Say(String),
    /// Thinking with placeholders.
    Think(String),
    /// Text without placeholders.
    Tell(String),
    Pad(usize),
    Repeat(u64, String),
    Tool(String, Value),
    /// A question; its answer is repeated as text.
    Ask(Value),
    Sleep(Duration),
    Hang,
    Usage(Usage),
    Stderr(String),
    Raw(String),
    Fail(String),
    Exit(u8),
}

/// The directives: name, arguments, and what each does.
pub(super) const DIRECTIVES: [(&str, &str, &str); 21] = [
    ("say", "TEXT", "Say TEXT in word-sized pieces"),
    ("think", "TEXT", "Think TEXT"),
    ("pad", "BYTES", "Say one text block of BYTES letters B"),
    ("tool", "NAME JSON", "Call any tool by name"),
    ("sleep", "MS", "Wait"),
    ("hang", "", "Wait until interrupted"),
    ("read", "PATH", "Read a file"),
    ("bash", "COMMAND", "Run a command, if permitted"),
    ("write", "PATH TEXT", "Write a file, if permitted"),
    ("edit", "PATH | OLD | NEW", "Edit a file, if permitted"),
    ("ask", "QUESTION | OPTION | OPTION…", "Ask a question and say the answer back"),
    ("task", "LABEL", "Run the directives up to /end in a subagent"),
    ("end", "", "End a subagent's directives"),
    ("plan", "ITEM | ITEM…", "Show a todo list"),
    ("repeat", "N TEXT", "Say TEXT N times, one delta each"),
    ("blob", "BYTES", "Call a tool with a result of BYTES bytes"),
    ("usage", "IN OUT CACHE_READ CACHE_CREATE", "Report this usage for the turn"),
    ("stderr", "TEXT", "Write a line to stderr"),
    ("raw", "LINE", "Write LINE to stdout, unchanged"),
    ("fail", "MESSAGE", "End the turn with an error"),
    ("exit", "CODE", "Exit at once"),
];

/// The steps of a prompt; none if it has no directive.
pub(super) fn parse(prompt: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut found = false;
    let mut lines = prompt.split('\n');
    while let Some(line) = lines.next() {
        let Some((name, rest)) = directive(line) else { continue };
        found = true;
        match name {
            "task" => steps.push(task(rest, &mut lines)),
            // An unmatched `/end`.
            "end" => {}
            _ => steps.push(step(name, rest).unwrap_or_else(Step::Tell)),
        }
    }
    found.then_some(steps)
}

/// The usage that the script sets, if any.
pub(super) fn usage(steps: &[Step]) -> Option<Usage> {
    steps.iter().rev().find_map(|step| match step {
        Step::Usage(usage) => Some(*usage),
        _ => None,
    })
}

fn directive(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start().strip_prefix('/')?;
    let (name, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    Some((name.trim_end_matches('\r'), rest))
}

/// The lines up to the matching `/end` are the subagent's prompt.
fn task<'p>(label: &str, lines: &mut impl Iterator<Item = &'p str>) -> Step {
    let mut depth = 1_usize;
    let mut prompt = Vec::new();
    for line in lines {
        match directive(line).map(|(name, _)| name) {
            Some("task") => depth += 1,
            Some("end") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        prompt.push(line);
    }
    let label = label.trim();
    let label = if label.is_empty() { "Subagent" } else { label };
    let input = json!({
        "description": label,
        "prompt": prompt.join("\n"),
        "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    Step::Tool("Task".to_owned(), input)
}

/// On an error, the agent says the message instead.
fn step(name: &str, rest: &str) -> Result<Step, String> {
    // Unchanged, including a carriage return.
    if name == "raw" {
        return Ok(Step::Raw(rest.to_owned()));
    }
    let text = rest.trim_end_matches('\r');
    let word = text.trim();
    let tool = |name: &str, input| Ok(Step::Tool(name.to_owned(), input));
    let wrong = || {
        let usage = DIRECTIVES.iter().find(|(known, ..)| *known == name);
        match usage {
            Some((_, arguments, _)) => format!("invalid /{name}: expected {arguments}"),
            None => format!("unknown directive /{name}"),
        }
    };
    let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
    let size = |word: &str| word.parse::<usize>().map_err(|_| wrong());
    match name {
        "say" => Ok(Step::Say(text.to_owned())),
        "think" => Ok(Step::Think(text.to_owned())),
        "pad" => size(word).map(Step::Pad),
        "blob" => tool("Blob", json!({ "bytes": size(word)? })),
        "tool" => {
            let (tool, input) = word.split_once([' ', '\t']).unwrap_or((word, "{}"));
            let input = serde_json::from_str::<Value>(input).ok().filter(Value::is_object);
            match input {
                Some(input) if !tool.is_empty() => Ok(Step::Tool(tool.to_owned(), input)),
                _ => Err(wrong()),
            }
        }
        "sleep" => number(word).map(|ms| Step::Sleep(Duration::from_millis(ms))),
        "hang" => Ok(Step::Hang),
        "read" if !word.is_empty() => tool("Read", json!({ "file_path": word })),
        "bash" if !word.is_empty() => tool("Bash", json!({ "command": word })),
        "write" if !word.is_empty() => {
            let (path, content) = text.trim_start().split_once(' ').unwrap_or((word, ""));
            tool("Write", json!({ "file_path": path, "content": unescaped(content) }))
        }
        "edit" => match text.splitn(3, '|').map(str::trim).collect::<Vec<_>>().as_slice() {
            [path, old, new] if !path.is_empty() => tool(
                "Edit",
                json!({
                    "file_path": path,
                    "old_string": unescaped(old),
                    "new_string": unescaped(new),
                    "replace_all": false,
                }),
            ),
            _ => Err(wrong()),
        },
        "ask" if !word.is_empty() => {
            let mut parts = word.split('|').map(str::trim);
            let question = parts.next().unwrap_or_default();
            let options = parts.map(|label| json!({ "label": label, "description": "" }));
            let options: Vec<Value> = options.collect();
            Ok(Step::Ask(json!({ "questions": [{
                "question": question,
                "header": "Question",
                "options": options,
                "multiSelect": false,
            }] })))
        }
        "plan" if !word.is_empty() => {
            let items = word.split('|').map(str::trim).filter(|item| !item.is_empty());
            let todos = items.enumerate().map(|(at, item)| {
                let status = if at == 0 { "in_progress" } else { "pending" };
                json!({ "content": item, "status": status, "activeForm": item })
            });
            tool("TodoWrite", json!({ "todos": todos.collect::<Vec<_>>() }))
        }
        "repeat" => {
            let (count, text) = text.trim_start().split_once(' ').unwrap_or((word, ""));
            Ok(Step::Repeat(number(count)?, unescaped(text)))
        }
        "usage" => {
            let counts = word.split_whitespace().map(number).collect::<Result<Vec<_>, _>>()?;
            match counts.as_slice() {
                [input, output, rest @ ..] if rest.len() <= 2 => Ok(Step::Usage(Usage {
                    input: *input,
                    output: *output,
                    cache_read: rest.first().copied().unwrap_or(0),
                    cache_creation: rest.get(1).copied().unwrap_or(0),
                })),
                _ => Err(wrong()),
            }
        }
        "stderr" => Ok(Step::Stderr(text.to_owned())),
        "fail" => Ok(Step::Fail(if word.is_empty() { "failed" } else { word }.to_owned())),
        "exit" if word.is_empty() => Ok(Step::Exit(0)),
        "exit" => word.parse().map(Step::Exit).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// `\n` is a newline and `\\` a backslash.
fn unescaped(text: &str) -> String {
    filled(text, |_| None)
}

/// Replaces escapes and placeholders. Values are not expanded again.
pub(super) fn filled(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{']) {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        let name = special.strip_prefix('{').and_then(|name| name.split_once('}'));
        let filled = name.and_then(|(name, after)| Some((value(name)?, after)));
        rest = if let Some(after) = special.strip_prefix("\\n") {
            out.push('\n');
            after
        } else if let Some(after) = special.strip_prefix("\\\\") {
            out.push('\\');
            after
        } else if let Some((value, after)) = filled {
            out.push_str(&value);
            after
        } else {
            let mut letters = special.chars();
            out.extend(letters.next());
            letters.as_str()
        };
    }
    out + rest
}
