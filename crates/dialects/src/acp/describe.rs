//! What a call of an ACP agent touches, combined from its input, the changes it shows, the locations it
//! names and the kinds it reports. A call that contradicts itself is unknown.

mod hints;
mod paths;

use agentwire_protocol::ApprovalMode;
use serde_json::{Value, json};

use super::modes::gateway_mode;
use super::wire;
use crate::describe::{
    AgentTools, CallFacts, CallTraits, Class, CommandForm, Description, Fields, ShellCommand, Tool,
    TouchSource, Touches, file_address, has_scheme, shell_command, shown, shows_by_class, unsure,
    value,
};
use paths::NamedFiles;
pub(super) use paths::PATH;

/// The tools of an agent about which only the kinds of calls are known. It always asks: modes with
/// approving names are modes of the gateway.
pub(crate) const TOOLS: AgentTools =
    AgentTools { known: &[], leaves_sandbox: false, shell_moves: false, describe, own_mode };

/// The fields of ACP's tool call, which holds what the input does not contain.
const ACP_CALL: &[&str] = &[
    "toolCallId",
    "name",
    "status",
    "title",
    "content",
    "locations",
    "kind",
    "kinds",
    "rawInput",
    "rawOutput",
    "_meta",
];

/// The key under `_meta` of a judged call for the fields whose effect is unknown.
const UNKNOWN: &str = "unknownFields";

/// Moves the fields that ACP does not define, and that may change what the call does, under its `_meta`.
/// Returns whether there are any.
pub(super) fn set_aside(call: &mut Fields) -> bool {
    let mut unknown = call.clone();
    unknown.retain(|name, _| !ACP_CALL.contains(&name.as_str()));
    let mut classes = Vec::new();
    hints::classes(&unknown, &mut classes);
    if classes.is_empty() && NamedFiles::of(Class::Unknown, &unknown).is_empty() {
        return false;
    }
    call.retain(|name, _| ACP_CALL.contains(&name.as_str()));
    call.insert("_meta".to_owned(), json!({ UNKNOWN: unknown }));
    true
}

pub(super) fn may_be_file(address: &str) -> bool {
    let is_web = |scheme: &str| matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https");
    has_scheme(address) && !address.trim_start().split(':').next().is_some_and(is_web)
}

/// Everything that is known about a call.
struct ReportedCall<'f> {
    /// The call itself, if it is given as the input.
    call: Option<&'f Fields>,
    /// The tool's arguments.
    raw: Option<&'f Fields>,
    /// The arguments, if they are not an object: their meaning is unknown.
    odd: Option<&'f Value>,
    /// The input looks like a call, but is not this one.
    is_forged: bool,
}

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    // The model may have written the title, and a title does not say where a command runs.
    Description::of(facts, &[], |tool| call_traits(facts, tool, |_| None))
}

fn own_mode(mode: &str) -> ApprovalMode {
    gateway_mode(mode).unwrap_or_default()
}

/// Examines all of a call. `directory` returns where the title runs, if it is a command.
pub(crate) fn call_traits(
    facts: &CallFacts<'_>,
    tool: Option<&'static Tool>,
    directory: fn(&Fields) -> Option<String>,
) -> CallTraits {
    let input = value(facts.input);
    let call = ReportedCall::of(input.as_ref(), facts.call_id);
    let (started, said) = (facts.kind.map(Class::of_kind), call.kind());
    let by_kind = match (started, said) {
        (Some(started), Some(said)) if started != Class::Unknown && rank(said) > rank(started) => {
            said
        }
        (started, said) => started.or(said).unwrap_or(Class::Unknown),
    };
    let class = tool.map_or(by_kind, |tool| tool.class);
    let shows = match (tool, by_kind) {
        (Some(tool), _) => tool.shows,
        (None, Class::Read | Class::Search | Class::Edit | Class::Delete) => TouchSource::Guess,
        (None, class) => shows_by_class(class),
    };
    let mut suspects = vec![class, by_kind];
    suspects.extend(started.into_iter().chain(said).chain(call.kinds()));
    suspects.extend(call.shown_classes());
    let mut is_certain = suspects.iter().all(|suspect| includes(class, *suspect, tool.is_some()))
        && !call.shows_unknown()
        && call.odd.is_none()
        && call.unknown().is_none();
    let command = || call.command(directory).map_or_else(|| shown(facts), Touches::Command);
    let touches = match (shows, &input) {
        (TouchSource::Nothing, _) => {
            let names_paths = call.names_paths(class);
            // Unless the tool is known by its name, only text is certain to touch nothing.
            let is_text = tool.is_some() || call.raw.is_none_or(paths::is_only_text);
            is_certain &= !names_paths && is_text;
            let names_files = names_paths && call.odd.is_none();
            if names_files { call.files(class, false) } else { Touches::Nothing }
        }
        _ if class == Class::Shell => command(),
        (_, Some(_)) if class == Class::Network => match call.address(facts.title) {
            Some(path) => {
                suspects.push(Class::Read);
                is_certain = false;
                path.map_or(Touches::Unclear, |path| Touches::Files {
                    paths: vec![path],
                    are_all: true,
                })
            }
            None => Touches::Unclear,
        },
        (TouchSource::Guess, _) => call.files(class, true),
        // Which fields name files is not certain, but a rule can deny the files that are found.
        (_, _) if names_files(class) => call.files(class, false),
        (_, _) => Touches::Unclear,
    };
    // A command next to something else can still be denied for what it is.
    let touches = match touches {
        Touches::Unclear | Touches::Nothing if suspects.contains(&Class::Shell) => command(),
        other => other,
    };
    // No rule and no mode answers a question.
    let is_certain = is_certain || class == Class::Question;
    let class = if is_certain { class } else { Class::Unknown };
    CallTraits { class, suspects, touches, is_named: true, ..CallTraits::default() }
}

fn rank(class: Class) -> u8 {
    match class {
        // Unknown calls are always asked about.
        Class::Unknown | Class::Question | Class::Think => 0,
        Class::Read => 1,
        Class::Search => 2,
        Class::Network | Class::Agent | Class::Mcp | Class::Mode => 3,
        Class::Edit => 4,
        Class::Move => 5,
        Class::Delete => 6,
        Class::Shell => 7,
    }
}

fn names_files(class: Class) -> bool {
    matches!(class, Class::Read | Class::Search | Class::Edit | Class::Move | Class::Delete)
}

/// Whether a call of `class` may also look like one of `other`. A tool that is known by its name may have
/// no kind, or one that only reads.
fn includes(class: Class, other: Class, is_named: bool) -> bool {
    match other {
        _ if other == class => true,
        Class::Think | Class::Read | Class::Search => is_named || rank(other) <= rank(class),
        Class::Unknown => is_named,
        Class::Edit
        | Class::Delete
        | Class::Move
        | Class::Shell
        | Class::Network
        | Class::Agent
        | Class::Question
        | Class::Mcp
        | Class::Mode => false,
    }
}

impl<'f> ReportedCall<'f> {
    /// The model writes the arguments, and may add fields to make them look like a call. An input with any
    /// other field, or with another call's id, is not a call.
    fn of(input: Option<&'f Value>, call_id: Option<&str>) -> Self {
        let is_odd = |value: &&Value| !value.is_object() && !value.is_null();
        let fields = input.and_then(Value::as_object);
        let id = fields.and_then(|fields| fields.get("toolCallId")?.as_str());
        let is_call = id.is_some_and(|id| call_id.is_none_or(|own| own == id))
            && fields.is_some_and(|it| it.keys().all(|name| ACP_CALL.contains(&name.as_str())));
        match fields {
            Some(call) if is_call => {
                let raw = call.get("rawInput");
                let odd = raw.filter(is_odd);
                Self {
                    call: Some(call),
                    raw: raw.and_then(Value::as_object),
                    odd,
                    is_forged: false,
                }
            }
            raw => Self { call: None, raw, odd: input.filter(is_odd), is_forged: id.is_some() },
        }
    }

    /// The kind that the call shows: the most dangerous one reported.
    fn kind(&self) -> Option<Class> {
        class_of(self.call?.get("kind")?.as_str()?)
    }

    /// Every kind reported, if they contradict each other.
    fn kinds(&self) -> impl Iterator<Item = Class> {
        self.list("kinds").map(|kind| kind.as_str().and_then(class_of).unwrap_or(Class::Unknown))
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'f Value> {
        self.call.and_then(|call| call.get(name)?.as_array()).into_iter().flatten()
    }

    fn diffs(&self) -> impl Iterator<Item = &'f Value> {
        self.list("content").filter(|it| it.get("type").and_then(Value::as_str) == Some("diff"))
    }

    /// Files that the shown content links to.
    fn links(&self) -> impl Iterator<Item = &'f str> {
        let address = |piece: &'f Value| {
            let content = piece.get("content")?;
            content.get("resource").unwrap_or(content).get("uri")?.as_str()
        };
        self.list("content").filter_map(address).filter(|it| may_be_file(it))
    }

    /// The classes that the call's content and input suggest.
    fn shown_classes(&self) -> Vec<Class> {
        let mut classes = Vec::new();
        for piece in self.list("content") {
            match piece.get("type").and_then(Value::as_str) {
                Some("diff") if deletes(piece) => classes.push(Class::Delete),
                Some("diff") => classes.push(Class::Edit),
                Some("terminal") => classes.push(Class::Shell),
                _ => {}
            }
        }
        if let Some(raw) = self.raw {
            hints::classes(raw, &mut classes);
        }
        if let Some(unknown) = self.unknown() {
            hints::classes(unknown, &mut classes);
            classes.push(Class::Unknown);
        }
        // More than one word may be a command.
        if self.odd.is_some_and(|odd| hints::texts(odd).split_whitespace().nth(1).is_some()) {
            classes.push(Class::Shell);
        }
        classes
    }

    /// Fields that ACP does not define and that may change what the call does.
    fn unknown(&self) -> Option<&'f Fields> {
        self.call?.get("_meta")?.get(UNKNOWN)?.as_object()
    }

    /// Whether it shows content of an unknown type.
    fn shows_unknown(&self) -> bool {
        let is_known = |piece: &Value| {
            let kind = piece.get("type").and_then(Value::as_str);
            matches!(kind, Some("content" | "diff" | "terminal"))
        };
        !self.list("content").all(is_known)
    }

    fn named(&self, class: Class) -> NamedFiles {
        match (self.raw, self.odd) {
            (Some(raw), _) => NamedFiles::of(class, raw),
            (None, Some(odd)) => NamedFiles::anywhere(class, odd),
            (None, None) => NamedFiles::default(),
        }
    }

    fn names_paths(&self, class: Class) -> bool {
        self.diffs().chain(self.list("locations")).next().is_some()
            || self.links().next().is_some()
            || !self.named(class).is_empty()
    }

    /// All files that the call names. If there may be others, or they contradict each other, `are_all` is
    /// false: rules still deny the known ones, and nothing allows the call without asking.
    fn files(&self, class: Class, mut is_certain: bool) -> Touches {
        let path = |item: &Value| item.get("path").and_then(Value::as_str).and_then(plain);
        let changed: Vec<_> = self.diffs().map(path).collect();
        let places = self.list("locations").map(path).chain(self.links().map(plain));
        let named = self.named(class);
        is_certain &= !named.is_unclear && !self.is_forged;
        let is_shown = |own: &String| {
            let own = plain(own);
            let tail = own.as_ref().map(|own| format!("/{}", own.trim_start_matches("./")));
            let ends = |path: &String| tail.as_ref().is_some_and(|tail| path.ends_with(tail));
            changed.iter().flatten().any(|path| Some(path) == own.as_ref() || ends(path))
        };
        is_certain &= changed.is_empty() || named.known.iter().all(is_shown);
        let mut files = named.files;
        for file in places.chain(changed.iter().cloned()) {
            match file {
                Some(file) if !files.contains(&file) => files.push(file),
                Some(_) => {}
                None => is_certain = false,
            }
        }
        if files.is_empty() {
            return Touches::Unclear;
        }
        Touches::Files { paths: files, are_all: is_certain }
    }

    /// The path, if an address in the call is that of a file; `Some(None)` if it cannot be read.
    fn address(&self, title: Option<&str>) -> Option<Option<String>> {
        let raw = self.raw.map(hints::texts_of).or_else(|| self.odd.map(hints::texts));
        let places = self.list("locations").filter_map(|it| it.get("path")?.as_str());
        let shown = self.call.and_then(|call| call.get("title")?.as_str());
        let all =
            raw.as_deref().into_iter().chain(places).chain(self.links()).chain(shown).chain(title);
        let mut words = all.flat_map(str::split_whitespace);
        words.find_map(|word| file_address(word.trim_matches(['"', '\'', '<', '(', ')', ','])))
    }

    fn command(&self, directory: fn(&Fields) -> Option<String>) -> Option<ShellCommand> {
        let mut command = match (self.raw, self.odd, self.call) {
            (Some(raw), _, _) => shell_command(hints::command(raw)?, raw, &[])?,
            (None, Some(odd), _) => unsure(&hints::texts(odd)),
            (None, None, Some(call)) => {
                let text = call.get("title")?.as_str()?.to_owned();
                let directory = directory(call);
                let form =
                    if directory.is_some() { CommandForm::Shell } else { CommandForm::Unsure };
                ShellCommand { text, form, directory }
            }
            (None, None, None) => return None,
        };
        // A location next to a command is where it runs, or something that is not understood.
        for place in self.list("locations").chain(self.diffs()) {
            match place.get("path").and_then(Value::as_str).and_then(plain) {
                Some(path) if command.directory.is_none() => command.directory = Some(path),
                Some(path) if command.directory.as_ref() == Some(&path) => {}
                _ => command.form = CommandForm::Unsure,
            }
        }
        Some(command)
    }
}

/// Whether a change deletes the file.
pub(super) fn deletes(diff: &Value) -> bool {
    let kind = diff.get("_meta").and_then(|meta| meta.get("kind")?.as_str());
    kind == Some("delete") || !diff.get("newText").is_some_and(Value::is_string)
}

fn class_of(kind: &str) -> Option<Class> {
    wire::kind(kind).map(Class::of_kind)
}

/// A path as written, or the path of a file address. Other addresses have none.
fn plain(path: &str) -> Option<String> {
    file_address(path).unwrap_or_else(|| (!has_scheme(path)).then(|| path.to_owned()))
}
