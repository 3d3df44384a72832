//! Calls of tools that are known by name and have fixed fields.

use serde_json::Value;

use super::{
    CallFacts, CallTraits, Class, CommandForm, Fields, ShellCommand, Tool, TouchSource, Touches,
    fields, shows_by_class,
};

/// Fields next to a command that do not change what it does.
const BESIDE_COMMAND: &[&str] = &[
    "description",
    "timeout",
    "timeout_ms",
    "run_in_background",
    "is_background",
    "commandActions",
    "parsedCmd",
];

/// Fields with the directory of a command.
const DIRECTORY: &[&str] = &["cwd", "directory", "dir_path", "workdir"];

/// The name decides. The kind is the fallback, and can only make the call more dangerous. `read` says what
/// a call of that class with these fields touches, and which class it then has.
pub(crate) fn by_name(
    facts: &CallFacts<'_>,
    tool: Option<&Tool>,
    read: impl Fn(Class, TouchSource, &Fields) -> (Class, Touches),
) -> CallTraits {
    let by_kind = Class::of_kind(facts.kind.unwrap_or_default());
    let (by_name, shows) = match tool {
        Some(tool) => (tool.class, tool.shows),
        None => (by_kind, shows_by_class(by_kind)),
    };
    let is_command = matches!(shows, TouchSource::Command(_));
    let (by_name, touches) = match (shows, fields(facts.input)) {
        (TouchSource::Nothing, _) => (by_name, Touches::Nothing),
        (_, Some(fields)) => match read(by_name, shows, &fields) {
            (class, Touches::Unclear) if is_command => (class, shown(facts)),
            traits => traits,
        },
        (_, None) if by_name == Class::Shell => (by_name, shown(facts)),
        (_, None) => (by_name, Touches::Unclear),
    };
    let is_worse = matches!(by_kind, Class::Shell | Class::Delete | Class::Move);
    let is_certain = by_name == by_kind || by_name == Class::Delete || !is_worse;
    let class = if is_certain { by_name } else { Class::Unknown };
    CallTraits {
        class,
        suspects: vec![by_name, by_kind],
        touches,
        is_named: true,
        ..CallTraits::default()
    }
}

/// A command that cannot be read exactly can still be denied by its display text.
pub(crate) fn shown(facts: &CallFacts<'_>) -> Touches {
    let title = facts.title.filter(|title| !title.is_empty());
    title.map_or(Touches::Unclear, |title| Touches::Command(unsure(title)))
}

/// A command of which only the display text is known.
pub(crate) fn unsure(text: &str) -> ShellCommand {
    ShellCommand { text: text.to_owned(), form: CommandForm::Unsure, directory: None }
}

/// What a call with these fields touches, and which class it then has.
pub(crate) fn touched(class: Class, shows: TouchSource, fields: &Fields) -> (Class, Touches) {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let here = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Some("."),
        Some(value) => value.as_str(),
    };
    let path = match shows {
        TouchSource::Path(field) => text(field),
        TouchSource::PathOrHere(field) => here(field),
        TouchSource::PathAndPattern(field, pattern) => {
            let stays = |pattern: &str| {
                !pattern.starts_with(['/', '~'])
                    && !pattern.contains("..")
                    && !pattern.contains('\\')
            };
            here(field).filter(|_| text(pattern).is_some_and(stays))
        }
        TouchSource::Address(field) => return addressed(class, text(field)),
        TouchSource::Command(field) => {
            let command = shell_command(field, fields, &[]);
            return (class, command.map_or(Touches::Unclear, Touches::Command));
        }
        TouchSource::Guess
        | TouchSource::Nothing
        | TouchSource::Unclear
        | TouchSource::Changes(_) => None,
    };
    (class, path.map_or(Touches::Unclear, file))
}

fn file(path: impl Into<String>) -> Touches {
    Touches::Files { paths: vec![path.into()], are_all: true }
}

/// The command in that field. `beside` are the agent's own fields that do not change it.
pub(crate) fn shell_command(field: &str, fields: &Fields, beside: &[&str]) -> Option<ShellCommand> {
    let (text, mut form) = match fields.get(field)? {
        Value::String(text) => (text.clone(), CommandForm::Shell),
        Value::Array(list) => {
            let words = list.iter().map(|word| word.as_str().map(str::to_owned));
            let words = words.collect::<Option<Vec<String>>>()?;
            (words.join(" "), CommandForm::Words(words))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let is_beside = |name: &str| BESIDE_COMMAND.contains(&name) || beside.contains(&name);
    let mut directory = None;
    for (name, value) in fields {
        match (name.as_str(), value) {
            (name, _) if name == field || is_beside(name) => {}
            (_, Value::Null) | ("dangerouslyDisableSandbox", Value::Bool(false)) => {}
            ("kind", Value::String(kind)) if kind == "command" => {}
            (name, Value::String(path)) if DIRECTORY.contains(&name) && directory.is_none() => {
                directory = Some(path.clone());
            }
            // Something that may change what the command does, or that asks for more than the command.
            _ => form = CommandForm::Unsure,
        }
    }
    Some(ShellCommand { text, form, directory })
}

/// What an address leads to. A file address is a path, never a host.
fn addressed(class: Class, address: Option<&str>) -> (Class, Touches) {
    match address.map(|address| (address, file_address(address))) {
        Some((_, Some(path))) => (Class::Read, path.map_or(Touches::Unclear, file)),
        Some((address, None)) => (class, host(address).map_or(Touches::Unclear, Touches::Host)),
        None => (class, Touches::Unclear),
    }
}

/// The host of a web address, if there is only one way to read it.
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

/// Whether a text is an address with a scheme, such as `vscode-remote://host/a`. `a.rs:12` is a place in a
/// file.
pub(crate) fn has_scheme(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.trim_start().split_once(':').is_some_and(|(scheme, rest)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(is_part)
            && rest.starts_with(|c: char| !c.is_ascii_digit())
    })
}

/// The path in a file address; `None` if it is not a file address, `Some(None)` if there is more than one
/// way to read its path.
pub(crate) fn file_address(address: &str) -> Option<Option<String>> {
    let trimmed = address.trim_start();
    let rest = trimmed.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let rest = rest.and_then(|_| trimmed.get(5..))?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    let is_plain = path.starts_with('/') && !path.contains(['%', '?', '#', '\\', '\0']);
    Some(is_plain.then(|| path.to_owned()))
}
