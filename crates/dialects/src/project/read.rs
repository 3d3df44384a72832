//! What a project file would run, as far as its text can be read.

use serde_json::Value;

use super::FileFormat;
use super::markdown::unknown_fields;

/// How many characters of one text are shown.
const SHOWN: usize = 2000;

/// How many lines of a file are shown.
const LINES: usize = 100;

/// How deep settings are searched for commands.
const DEPTH: usize = 16;

/// Fields whose text is a command.
const COMMANDS: &[&str] = &[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "bash",
    "callCommand",
    "command",
    "discoveryCommand",
    "gcpAuthRefresh",
    "headersHelper",
    "notify",
    "otelHeadersHelper",
    "powershell",
    "statusLine",
    "toolCallCommand",
    "toolDiscoveryCommand",
];

/// Fields whose text is the address of a server.
const ADDRESSES: &[&str] = &["base_url", "httpUrl", "url"];

/// Fields with secrets: only their names are shown.
const SECRETS: &[&str] =
    &["bearer_token", "env", "experimental_bearer_token", "headers", "http_headers"];

/// What a file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it would run or set, one entry per line.
    pub runs: Vec<String>,
    /// Words of its commands. Some may be the names of scripts.
    pub words: Vec<String>,
    /// Whether the file counts on its own.
    pub counts: bool,
}

pub(super) fn read(form: FileFormat, text: &str) -> Reading {
    let mut reading = Reading { counts: true, ..Reading::default() };
    match form {
        FileFormat::Json => match serde_json::from_str(&without_comments(text)) {
            Ok(settings) => reading.settings(&settings),
            Err(error) => reading.line(format!("cannot be read as JSON: {error}")),
        },
        FileFormat::Toml => match toml::from_str::<toml::Table>(text).map(serde_json::to_value) {
            Ok(Ok(settings)) => reading.settings(&settings),
            Ok(Err(_)) | Err(_) => reading.line("cannot be read as TOML".to_owned()),
        },
        FileFormat::Variables => reading.line(format!("sets {}", variables(text))),
        FileFormat::Markdown => {
            reading.markdown(text);
            reading.counts = !reading.runs.is_empty();
        }
        FileFormat::Prompt => {
            reading.prompt(text);
            reading.counts = !reading.runs.is_empty();
        }
        FileFormat::Opaque => {}
        FileFormat::Script => reading.counts = false,
    }
    let more = reading.runs.len().saturating_sub(LINES);
    if more > 0 {
        reading.runs.truncate(LINES);
        reading.runs.push(format!("… and {more} more; read the file"));
    }
    reading
}

impl Reading {
    /// Every top-level field is shown: the commands in it, or else the field itself.
    fn settings(&mut self, settings: &Value) {
        let Value::Object(fields) = settings else {
            return self.line(format!("is {}", shown(settings)));
        };
        for (name, value) in fields {
            let before = self.runs.len();
            self.search(name, name, value, DEPTH);
            if self.runs.len() == before {
                let value = match SECRETS.contains(&name.as_str()) {
                    true => names(value),
                    false => shown(&masked(value, DEPTH)),
                };
                self.line(format!("{name}: {value}"));
            }
        }
    }

    /// Finds commands and addresses. `path` says where they are.
    fn search(&mut self, path: &str, name: &str, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return self.line(format!("{path}: is too deep to show"));
        };
        let is_command = COMMANDS.contains(&name);
        match value {
            Value::String(text) if is_command => self.run(path, text),
            Value::String(text) if ADDRESSES.contains(&name) => {
                self.line(format!("{path}: connects to {text}"));
            }
            Value::Array(words) if is_command && words.iter().all(Value::is_string) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                self.argv(path, &words);
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.search(path, name, item, depth));
            }
            Value::Object(fields) => self.object(path, fields, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, path: &str, fields: &serde_json::Map<String, Value>, depth: usize) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        // A program and its arguments are one command.
        let args = fields.get("args").and_then(Value::as_array);
        let is_program = text("command").is_some() && args.is_some();
        if let (Some(command), Some(args)) = (text("command"), args) {
            let args = args.iter().filter_map(Value::as_str);
            self.argv(path, &std::iter::once(command).chain(args).collect::<Vec<_>>());
        }
        for (name, value) in fields {
            let is_told = is_program && matches!(name.as_str(), "command" | "args");
            if is_told || SECRETS.contains(&name.as_str()) {
                continue;
            }
            match name.as_str() {
                "command" | "hooks" => self.search(path, name, value, depth),
                _ => self.search(&format!("{path}.{name}"), name, value, depth),
            }
        }
        let is_server = ["command", "url", "httpUrl"].iter().any(|name| text(name).is_some());
        for name in SECRETS {
            if let Some(value) = fields.get(*name).filter(|_| is_server) {
                self.line(format!("{path}.{name}: {}", names(value)));
            }
        }
    }

    fn markdown(&mut self, text: &str) {
        if let Some(head) = unknown_fields(text) {
            if head.is_empty() {
                self.line("has fields that cannot be read".to_owned());
            }
            for line in head {
                self.words.extend(words(line));
                self.line(line.to_owned());
            }
        }
        for command in between(text, "!`", '`') {
            self.run("runs", command);
        }
        // A block whose first line says so runs as a whole.
        if text.contains("```!") {
            self.line("runs the blocks that start with ```!".to_owned());
        }
        self.braces(text);
    }

    /// A Gemini command. Everything that is not text for the model is shown.
    fn prompt(&mut self, text: &str) {
        let Ok(fields) = toml::from_str::<toml::Table>(text) else {
            return self.line("cannot be read as TOML".to_owned());
        };
        for (name, value) in &fields {
            match (name.as_str(), value) {
                ("prompt" | "description", toml::Value::String(text)) => self.braces(text),
                (_, value) => {
                    let value = serde_json::to_value(value).unwrap_or_default();
                    self.line(format!("{name}: {}", shown(&value)));
                }
            }
        }
    }

    /// Commands and files in braces.
    fn braces(&mut self, text: &str) {
        for (mark, path) in [("!{", "runs"), ("@{", "inserts")] {
            let before = self.runs.len();
            for inner in between(text, mark, '}') {
                self.run(path, inner);
            }
            if self.runs.len() == before && text.contains(mark) {
                self.line(format!("has an unclosed {mark}"));
            }
        }
    }

    fn run(&mut self, path: &str, command: &str) {
        self.words.extend(words(command));
        self.line(format!("{path}: {command}"));
    }

    fn argv(&mut self, path: &str, argv: &[&str]) {
        self.words.extend(argv.iter().flat_map(|word| words(word)));
        self.words.extend(argv.iter().map(|word| (*word).to_owned()));
        self.line(format!("{path}: {}", argv.join(" ")));
    }

    fn line(&mut self, text: String) {
        self.runs.push(cut(text));
    }
}

/// A value on one line.
fn shown(value: &Value) -> String {
    cut(value.to_string())
}

/// A value without its possible secrets.
fn masked(value: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::from("…") };
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match SECRETS.contains(&name.as_str()) {
                true => (name.clone(), Value::from(names(value))),
                false => (name.clone(), masked(value, depth)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| masked(item, depth)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The names of an object's fields, without their values.
fn names(value: &Value) -> String {
    let names = value.as_object().into_iter().flat_map(serde_json::Map::keys);
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { "…".to_owned() } else { names.join(", ") }
}

/// The names of the variables that the lines set.
fn variables(text: &str) -> String {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.split_once(['=', ':']).map(|(name, _)| name.trim())
    });
    let names: Vec<&str> = names.filter(|name| !name.starts_with('#')).collect();
    names.join(", ")
}

/// The words of a command that may be file names, split roughly as a shell does.
fn words(command: &str) -> impl Iterator<Item = String> {
    let is_cut = |letter: char| letter.is_whitespace() || "`;|&()<>=,".contains(letter);
    let is_quote = |letter| matches!(letter, '"' | '\'');
    command
        .split(is_cut)
        .map(move |word| word.replace(is_quote, ""))
        .filter(|word| !word.is_empty())
}

/// The texts between two marks.
fn between<'t>(text: &'t str, start: &'t str, end: char) -> impl Iterator<Item = &'t str> {
    text.split(start).skip(1).filter_map(move |rest| rest.split_once(end).map(|(inner, _)| inner))
}

/// Cuts a long text, and says so.
fn cut(text: String) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text;
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{head}… ({} more characters; read the file)", length - SHOWN)
}

/// JSON without `//` and `/* */` comments.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut in_string = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('"', _) => in_string = !in_string,
            ('\\', Some(_)) if in_string => {
                plain.push(letter);
                plain.extend(letters.next());
                continue;
            }
            ('/', Some('/')) if !in_string => {
                while letters.next_if(|letter| *letter != '\n').is_some() {}
                continue;
            }
            ('/', Some('*')) if !in_string => {
                let mut last = ' ';
                letters.next();
                for letter in letters.by_ref() {
                    if last == '*' && letter == '/' {
                        break;
                    }
                    last = letter;
                }
                continue;
            }
            (_, _) => {}
        }
        plain.push(letter);
    }
    plain
}
