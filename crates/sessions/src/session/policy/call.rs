//! What an agent asks for, in the policy's words: the class of the tool, and what it would touch.

use agentwire_protocol::AgentType;
use agentwire_protocol::event::ToolKind;
use serde_json::{Map, Value};

use super::table::{self, Class, Shows, Tool};
use super::{Asked, input, shell, told};

/// What an agent asks for.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) class: Class,
    /// The classes it may be of: what denies one of them denies the call.
    pub(super) suspects: Vec<Class>,
    /// The agent's name of the tool.
    pub(super) name: Option<&'a str>,
    /// What it is called, where that may be somebody else's word for it: it denies, and allows nothing.
    pub(super) titled: Option<&'a str>,
    /// Of an MCP tool: its server and its own name, as far as they are known.
    pub(super) mcp: Option<(&'a str, &'a str)>,
    pub(super) touches: Touches,
    /// The agent may have left its directory.
    pub(super) moved: bool,
}

/// What a call would touch.
#[derive(Debug)]
pub(super) enum Touches {
    /// Nothing that has to be known.
    Nothing,
    /// It cannot be told with certainty.
    Unclear,
    /// These files; at least one.
    Files(Vec<String>),
    /// What this command touches.
    Command(ShellCommand),
    /// This host.
    Host(String),
}

/// A command to run.
#[derive(Debug)]
pub(super) struct ShellCommand {
    /// All that was said of it.
    pub(super) text: String,
    /// Its words, if it is one simple command beyond doubt.
    pub(super) words: Option<Vec<String>>,
    /// Where it runs; in the working directory, if nothing is said.
    pub(super) directory: Option<String>,
}

pub(super) type Fields = Map<String, Value>;

/// Fields of a command that change nothing of what it does.
const BESIDE_COMMAND: &[&str] = &[
    "description",
    "timeout",
    "timeout_ms",
    "run_in_background",
    "is_background",
    "commandActions",
    "parsedCmd",
];

/// Fields that say where a command runs.
const DIRECTORY: &[&str] = &["cwd", "directory", "dir_path", "workdir"];

impl<'a> Call<'a> {
    pub(super) fn of(agent: AgentType, asked: &Asked<'a>) -> Self {
        let called = asked.tool_name.filter(|name| !name.is_empty());
        let server = asked.server.filter(|server| !server.is_empty());
        // A server may give its tool any name, so that this comes before the table.
        let full = called.and_then(|name| name.strip_prefix("mcp__")?.split_once("__"));
        if server.is_some() || full.is_some() || asked.kind == Some(ToolKind::Mcp) {
            let mcp = full.or_else(|| server.zip(called));
            let is_taken = |name: &&str| table::find(agent, name).is_some();
            let name = called.filter(|name| !asked.is_title && !is_taken(name));
            let (class, touches) = (Class::Mcp, Touches::Unclear);
            let (moved, suspects) = (asked.moved, vec![class]);
            return Self { class, suspects, name, titled: called, mcp, touches, moved };
        }
        // Codex asks for a call of an MCP tool without its kind, under the name that its server gave it.
        let is_vague = agent == AgentType::Codex && asked.kind.is_none();
        let is_sure = !asked.is_title && !is_vague;
        let name = called.filter(|_| is_sure);
        let tool = called.filter(|_| !asked.is_title).and_then(|name| table::find(agent, name));
        let (class, suspects, touches) = match agent {
            AgentType::Gemini | AgentType::Acp => told::judge(agent, asked, tool),
            AgentType::Claude | AgentType::Codex | AgentType::Demo => judge(agent, asked, tool),
        };
        // A call that is not what its name says is not what a rule of that name allows.
        let is_other = tool.is_some_and(|tool| {
            class != tool.class && (class == Class::Unknown || tool.class == Class::Network)
        });
        let name = name.filter(|_| !is_other);
        let moved = asked.moved;
        Self { class, suspects, name, titled: called, mcp: None, touches, moved }
    }

    /// Whether nobody knows from where that path leads.
    pub(super) fn is_adrift(&self, path: &str) -> bool {
        self.moved && !path.starts_with(['/', '~'])
    }

    /// Whether it reaches what is below the paths that it names, or may.
    pub(super) fn reaches_below(&self) -> bool {
        let reaches = |class: &Class| matches!(class, Class::Search | Class::Delete | Class::Move);
        reaches(&self.class) || (self.class == Class::Unknown && self.suspects.iter().any(reaches))
    }

    /// Whether that is what it is called, by whomever.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == Some(name) || self.titled == Some(name)
    }

    /// Whether it is a server's tool whose name is that of one of the agent's own.
    pub(super) fn only_sounds_like(&self, name: &str) -> bool {
        self.class == Class::Mcp && self.name != Some(name)
    }
}

fn judge(
    agent: AgentType,
    asked: &Asked<'_>,
    tool: Option<&'static Tool>,
) -> (Class, Vec<Class>, Touches) {
    let by_kind = Class::of_kind(asked.kind.unwrap_or_default());
    let (by_name, shows) = match tool {
        Some(tool) => (tool.class, tool.shows),
        None => (by_kind, table::shows_by_class(agent, by_kind)),
    };
    let fields = input::fields(asked.input);
    let (by_name, touches) = match (shows, &fields) {
        (Shows::Nothing, _) => (by_name, Touches::Nothing),
        (Shows::Command(field), fields) => {
            let command = fields.as_ref().and_then(|fields| command(agent, field, fields));
            (by_name, or_title(command, asked))
        }
        (_, None) if by_name == Class::Shell => (by_name, or_title(None, asked)),
        (_, None) => (by_name, Touches::Unclear),
        (_, Some(fields)) => touched(by_name, shows, fields),
    };
    let class = if is_certain(agent, asked, by_name, by_kind) { by_name } else { Class::Unknown };
    (class, vec![by_name, by_kind], touches)
}

/// The name decides; the kind is the fall-back, and can only make it more dangerous.
fn is_certain(agent: AgentType, asked: &Asked<'_>, by_name: Class, by_kind: Class) -> bool {
    // A call of an MCP tool that cannot be told from another comes without its kind, and under the
    // name that its server gave it; and a path that Codex wants is wanted with all below it, for good.
    let is_vague =
        agent == AgentType::Codex && (asked.kind.is_none() || asked.blocked_path.is_some());
    let is_worse = matches!(by_kind, Class::Shell | Class::Delete | Class::Move);
    !is_vague && (by_name == by_kind || by_name == Class::Delete || !is_worse)
}

/// What cannot be read exactly can still be denied by what is shown of it.
pub(super) fn or_title(command: Option<ShellCommand>, asked: &Asked<'_>) -> Touches {
    let title = || Some(asked.title?.to_owned()).filter(|title| !title.is_empty());
    let said = |text| ShellCommand { text, words: None, directory: None };
    command.or_else(|| title().map(said)).map_or(Touches::Unclear, Touches::Command)
}

fn touched(class: Class, shows: Shows, fields: &Fields) -> (Class, Touches) {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let here = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Some("."),
        Some(value) => value.as_str(),
    };
    let file = |path: Option<&str>| path.map(|path| vec![path.to_owned()]);
    let files = match shows {
        Shows::Path(field) => file(text(field)),
        Shows::PathOrHere(field) => file(here(field)),
        Shows::PathAndPattern(field, pattern) => {
            let stays = |pattern: &str| {
                !pattern.starts_with(['/', '~'])
                    && !pattern.contains("..")
                    && !pattern.contains('\\')
            };
            file(here(field).filter(|_| text(pattern).is_some_and(stays)))
        }
        Shows::Changes(field) => return changes(class, field, fields),
        Shows::Address(field) => return addressed(class, text(field)),
        Shows::Guess | Shows::Nothing | Shows::Unclear | Shows::Command(_) => None,
    };
    (class, files.map_or(Touches::Unclear, Touches::Files))
}

/// Codex lists what it changes. One that deletes is a deletion, and one that moves is a move, whatever
/// else it does. A field beside the list asks for more, or warns.
fn changes(class: Class, field: &str, fields: &Fields) -> (Class, Touches) {
    let mut class = class;
    let mut files = Vec::new();
    if fields.iter().any(|(name, value)| name != field && !value.is_null()) {
        return (class, Touches::Unclear);
    }
    for change in fields.get(field).and_then(Value::as_array).into_iter().flatten() {
        let path = change.get("path").and_then(Value::as_str);
        let kind = change.get("kind").and_then(|kind| kind.get("type")).and_then(Value::as_str);
        let moved = change.get("kind").and_then(|kind| kind.get("move_path"));
        let (Some(path), Some(kind @ ("add" | "update" | "delete"))) = (path, kind) else {
            return (class, Touches::Unclear);
        };
        if kind == "delete" {
            class = Class::Delete;
        }
        files.push(path.to_owned());
        match moved {
            None | Some(Value::Null) => {}
            Some(Value::String(moved)) => {
                if class != Class::Delete {
                    class = Class::Move;
                }
                files.push(moved.clone());
            }
            Some(_) => return (class, Touches::Unclear),
        }
    }
    (class, if files.is_empty() { Touches::Unclear } else { Touches::Files(files) })
}

pub(super) fn command(agent: AgentType, field: &str, fields: &Fields) -> Option<ShellCommand> {
    let (text, words) = match fields.get(field)? {
        Value::String(text) => {
            let words = shell::words(text);
            // Codex says how it starts the shell; from others it is a command like any other.
            let inner = words.as_deref().filter(|_| agent == AgentType::Codex);
            let inner = inner.and_then(shell::unwrapped).map(shell::words);
            (text.clone(), inner.unwrap_or(words))
        }
        Value::Array(list) => {
            let words = list.iter().map(|word| word.as_str().map(str::to_owned));
            let words = words.collect::<Option<Vec<String>>>()?;
            let text = words.join(" ");
            let read = match shell::unwrapped(&words) {
                Some(inner) => shell::words(inner),
                // Whether these are run as they are or joined for a shell, they are the same.
                None => shell::words(&text).filter(|read| *read == words),
            };
            (text, read)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let mut words = words;
    let mut directory = None;
    for (name, value) in fields {
        match (name.as_str(), value) {
            (name, _) if name == field || BESIDE_COMMAND.contains(&name) => {}
            (_, Value::Null) | ("dangerouslyDisableSandbox", Value::Bool(false)) => {}
            ("kind", Value::String(kind)) if kind == "command" => {}
            // A rule that Codex would keep; it is never told to.
            ("proposedExecpolicyAmendment", _) if agent == AgentType::Codex => {}
            (name, Value::String(path)) if DIRECTORY.contains(&name) && directory.is_none() => {
                directory = Some(path.clone());
            }
            // Something that may change what the command does, or that asks for more than it.
            _ => words = None,
        }
    }
    Some(ShellCommand { text, words, directory })
}

/// What an address leads to. One of a file is a path, and never a host.
fn addressed(class: Class, address: Option<&str>) -> (Class, Touches) {
    match address.map(|address| (address, told::file_address(address))) {
        Some((_, Some(path))) => {
            (Class::Read, path.map_or(Touches::Unclear, |path| Touches::Files(vec![path])))
        }
        Some((address, None)) => (class, host(address).map_or(Touches::Unclear, Touches::Host)),
        None => (class, Touches::Unclear),
    }
}

/// The host of a web address, if it can be read in one way only.
fn host(address: &str) -> Option<String> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = match host.split_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        Some(_) => return None,
        None => host,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty() && host.bytes().all(plain) && !address.contains('\\')).then_some(host)
}
