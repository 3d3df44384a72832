//! What Codex's tools are, and what its requests say they touch. docs/policy.md shows the table; a test
//! compares them.

use agentwire_protocol::{ApprovalMode, Json};
use serde_json::Value;

use crate::describe::{
    AgentTools, CallFacts, CallTraits, Class, CommandForm, Description, Fields, ShellCommand, Tool,
    TouchSource, Touches, by_name, fields, shell_command, tool, touched,
};

/// Codex's tools. It applies an allowed change, and runs an allowed command again, outside its sandbox.
pub(super) const TOOLS: AgentTools =
    AgentTools { known: KNOWN, leaves_sandbox: true, shell_moves: false, describe, own_mode };

const KNOWN: &[Tool] = &[
    tool("command_execution", Class::Shell, TouchSource::Command("command")),
    tool("file_change", Class::Edit, TouchSource::Changes("changes")),
    tool("image_view", Class::Read, TouchSource::Path("path")),
    tool("web_search", Class::Network, TouchSource::Unclear),
    tool("request_permissions", Class::Unknown, TouchSource::Unclear),
];

/// The input field that says what the call started as, if the request asks for something else.
pub(super) const STARTED_AS: &str = "startedAs";

/// A rule that Codex would store; it is never told to.
const PROPOSED: &[&str] = &["proposedExecpolicyAmendment"];

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    Description::of(facts, KNOWN, |tool| call_traits(facts, tool)).contradicted(others(facts.input))
}

fn call_traits(facts: &CallFacts<'_>, tool: Option<&Tool>) -> CallTraits {
    let traits = by_name(facts, tool, |class, shows, fields| match shows {
        TouchSource::Changes(field) => changes(class, field, fields),
        TouchSource::Command(field) => (class, command(field, fields)),
        _ => touched(class, shows, fields),
    });
    // If Codex asks about an MCP call that cannot be told apart from another, the request has no kind, and
    // has the name that the server gave. A path that Codex asks for includes everything below it,
    // permanently.
    match facts.kind.is_none() || facts.blocked_path.is_some() {
        true => CallTraits { class: Class::Unknown, is_named: facts.kind.is_some(), ..traits },
        false => traits,
    }
}

/// Codex says how it starts the shell.
fn command(field: &str, fields: &Fields) -> Touches {
    let started = |command: ShellCommand| match command.form {
        CommandForm::Shell => ShellCommand { form: CommandForm::Started, ..command },
        CommandForm::Started | CommandForm::Words(_) | CommandForm::Unsure => command,
    };
    let command = shell_command(field, fields, PROPOSED).map(started);
    command.map_or(Touches::Unclear, Touches::Command)
}

/// Codex lists its changes. A list with a deletion is a deletion, and one with a move is a move, whatever
/// else it contains. A field next to the list asks for more, or warns.
fn changes(class: Class, field: &str, fields: &Fields) -> (Class, Touches) {
    let mut class = class;
    let mut paths = Vec::new();
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
        paths.push(path.to_owned());
        match moved {
            None | Some(Value::Null) => {}
            Some(Value::String(moved)) => {
                if class != Class::Delete {
                    class = Class::Move;
                }
                paths.push(moved.clone());
            }
            Some(_) => return (class, Touches::Unclear),
        }
    }
    let touches = match paths.is_empty() {
        true => Touches::Unclear,
        false => Touches::Files { paths, are_all: true },
    };
    (class, touches)
}

/// What a call said that it does, if its request asks for something else. The translator puts it next to
/// what is asked for.
fn others(input: Option<&Json<'_>>) -> Vec<Description<'static>> {
    let fields = fields(input.filter(|input| input.get().contains(STARTED_AS)));
    let started = fields.as_ref().and_then(|fields| fields.get(STARTED_AS)?.as_array());
    let read = |value: &Value| {
        let input = value.get("input").map(Json::of);
        let facts = CallFacts {
            tool_name: value.get("tool").and_then(Value::as_str),
            server: value.get("server").and_then(Value::as_str),
            input: input.as_ref(),
            ..CallFacts::default()
        };
        Description::of(&facts, KNOWN, |tool| call_traits(&facts, tool)).into_owned()
    };
    started.into_iter().flatten().map(read).collect()
}

/// `never` relies on the sandbox, but allowed calls leave it.
fn own_mode(mode: &str) -> ApprovalMode {
    match mode {
        "acceptEdits" => ApprovalMode::AutoEdit,
        "bypassPermissions" => ApprovalMode::AutoAll,
        "on-request" | "never" => ApprovalMode::AskDangerous,
        _ => ApprovalMode::Ask,
    }
}
