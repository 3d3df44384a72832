//! What a call would do, combined from all its updates: the newest input and content, the most dangerous
//! kind, and every path.

use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{Json, Text};
use serde_json::{Map, Value as Object, json};

use super::super::describe::{PATH, deletes, may_be_file, set_aside};
use super::super::wire::ToolCall;
use super::tool_content::TEXT_LIMIT;
use super::tools::{ToolState, kind, name_in_id};
use crate::describe::value;
use crate::json::Value;
use crate::tape::UnaskedCall;

/// How many paths of a call are stored. A call with more is never treated as known.
const PATHS_LIMIT: usize = 256;

/// Represents the paths beyond the limit. It lies outside every session directory.
const TOO_MANY: &str = "/\u{2026}";

/// What a call would do.
#[derive(Debug, Default)]
pub(super) struct CallEffects {
    /// The most dangerous kind reported, if any.
    kind: Option<ToolKind>,
    kinds: Vec<ToolKind>,
    /// The kind reported to clients when the call started.
    pub(super) reported_kind: ToolKind,
    /// Every path reported, oldest first.
    paths: Vec<String>,
    /// The newest content with file changes, unless it is too long to store.
    changes: Option<Json<'static>>,
    title: Option<String>,
    raw: Option<Json<'static>>,
    /// Counts the changes that affect what the call would do.
    version: u64,
    /// The version in the latest permission request.
    pub(super) asked_version: Option<u64>,
    /// The version last reported as running.
    pub(super) run_version: Option<u64>,
}

impl CallEffects {
    /// Adds one more update of the call.
    pub(super) fn update(&mut self, call: &ToolCall<'_>, name: Option<&str>) {
        let before = self.paths.len();
        if let Some(reported) = call.kind.as_deref() {
            self.is_of(kind(Some(reported), name));
        }
        let mut has_changes = false;
        for piece in call.content.into_iter().flat_map(Value::items) {
            match piece.get("type").and_then(Value::string).as_deref() {
                Some("diff") if piece.json().read().is_ok_and(|diff| deletes(&diff)) => {
                    self.is_of(ToolKind::Delete);
                }
                Some("content" | "diff") | None => {}
                Some("terminal") => self.is_of(ToolKind::Execute),
                Some(_) => self.is_of(ToolKind::Other),
            }
            if let Some(path) = piece.get("path").and_then(Value::string) {
                has_changes = true;
                self.add(&path);
                // Whatever kind it reports, it changes files.
                self.is_of(ToolKind::Edit);
            }
            let content = piece.get("content");
            let resource = content.and_then(|content| content.get("resource")).or(content);
            let address = resource.and_then(|resource| resource.get("uri")?.string());
            if let Some(address) = address.filter(|address| may_be_file(address)) {
                self.add(&address);
            }
        }
        for location in call.locations.into_iter().flat_map(Value::items) {
            if let Some(path) = location.get("path").and_then(Value::string) {
                self.add(&path);
            }
        }
        self.version += u64::from(self.paths.len() > before);
        if let Some(content) = call.content.filter(|_| has_changes).map(Value::json) {
            let content = Some(content.into_owned()).filter(|it| it.get().len() <= TEXT_LIMIT);
            self.version += u64::from(content.is_none() || content != self.changes);
            self.changes = content;
        }
        if let Some(raw) = call.raw_input.filter(|input| !input.is_null()) {
            let raw = Some(raw.json().into_owned());
            self.version += u64::from(raw != self.raw);
            self.raw = raw;
        }
        if let Some(title) = call.title.as_ref().map(|title| title.to_string()) {
            // Without input, only the title can be judged.
            let is_other = self.title.as_ref().is_some_and(|known| *known != title);
            self.version += u64::from(is_other && self.raw.is_none());
            self.title = Some(title);
        }
    }

    fn is_of(&mut self, kind: ToolKind) {
        if self.kinds.contains(&kind) {
            return;
        }
        let is_worse = self.kind.is_none_or(|known| rank(kind) > rank(known));
        let contradicts = self.kind.is_some_and(|known| !includes(known, kind));
        self.version += u64::from(self.kind.is_some() && (is_worse || contradicts));
        self.kinds.push(kind);
        if is_worse {
            self.kind = Some(kind);
        }
    }

    fn add(&mut self, path: &str) {
        if self.paths.iter().any(|known| known == path) {
            return;
        }
        match self.paths.len() {
            ..PATHS_LIMIT => self.paths.push(path.to_owned()),
            PATHS_LIMIT => self.paths.push(TOO_MANY.to_owned()),
            _ => {}
        }
    }

    /// Whether the input is not an object, so that its meaning is unknown.
    fn is_odd(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| !raw.get().starts_with('{'))
    }

    /// Whether the call has shown paths but no raw input.
    pub(super) fn shows_changes(&self) -> bool {
        self.raw.is_none() && !self.paths.is_empty()
    }

    /// The newest title, unless it is empty.
    pub(super) fn title(&self) -> Option<&str> {
        self.title.as_deref().filter(|title| !title.is_empty())
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn kind(&self) -> ToolKind {
        // The kind that is reported for an MCP tool says nothing.
        let is_worse = |kind: &ToolKind| {
            self.reported_kind != ToolKind::Mcp && rank(*kind) > rank(self.reported_kind)
        };
        self.kind.filter(is_worse).unwrap_or(self.reported_kind)
    }

    fn contradicts_itself(&self) -> bool {
        let kind = self.kind();
        self.reported_kind != ToolKind::Mcp
            && self.kinds.iter().any(|reported| !includes(kind, *reported))
    }
}

impl ToolState {
    /// A call that is known from this one update.
    pub(super) fn of(id: &str, call: &ToolCall<'_>) -> Self {
        let name = call.name.as_ref().map(Text::to_string);
        let named = name.or_else(|| name_in_id(id).map(str::to_owned));
        let mut effects = CallEffects::default();
        effects.update(call, named.as_deref());
        effects.reported_kind = kind(call.kind.as_deref(), named.as_deref());
        let mut tool = Self::default();
        tool.input = effects.raw.clone().filter(|_| !effects.is_odd());
        tool.effects = effects;
        tool.is_named = named.is_some();
        tool.name = named.unwrap_or_default();
        tool
    }

    /// The call, for the session to judge when it runs.
    pub(super) fn unasked(&self, id: &str) -> UnaskedCall {
        UnaskedCall {
            tool_id: id.to_owned(),
            tool_name: self.is_named.then(|| self.name.clone()),
            kind: self.effects.kind(),
            input: self.judged(id, None),
            title: self.effects.title().map(str::to_owned),
            server: self.server.clone(),
        }
    }

    /// What is judged and shown of the call. `own` is the call as the request gives it. What the input does
    /// not contain is added next to it, so that the digest covers everything that is judged.
    pub(super) fn judged(&self, id: &str, own: Option<Value<'_>>) -> Option<Json<'static>> {
        let own = own.map(|quirks| quirks.json().into_owned());
        let contradicts = self.effects.contradicts_itself();
        let mut call: Fields =
            own.as_ref().and_then(|quirks| quirks.read().ok()).unwrap_or_default();
        call.remove("_meta");
        let is_known = !set_aside(&mut call)
            && rank(self.effects.kind()) <= rank(self.effects.reported_kind)
            && !contradicts
            && !self.effects.is_odd();
        let names_all = |named: &dyn Fn(&Fields) -> Vec<&str>, input: &Json<'_>| {
            let fields = input.read::<Fields>().ok().filter(|_| is_known);
            fields.is_some_and(|fields| {
                let named = named(&fields);
                self.effects.paths.iter().all(|path| named.contains(&path.as_str()))
            })
        };
        // A request that reports a less dangerous kind must not hide what was reported before.
        let reported =
            call.get("kind").and_then(Object::as_str).map(|reported| kind(Some(reported), None));
        let plays_down = self.effects.reported_kind != ToolKind::Mcp
            && reported.is_some_and(|reported| rank(reported) < rank(self.effects.kind()));
        match (&self.input, &own) {
            (Some(input), _) if names_all(&path_fields, input) => return Some(input.clone()),
            (None, Some(own)) if !plays_down && names_all(&shown_paths, own) => {
                return Some(own.clone());
            }
            _ => {}
        }
        call.remove("kinds");
        call.insert("toolCallId".to_owned(), json!(id));
        call.insert("title".to_owned(), json!(self.effects.title));
        call.insert("kind".to_owned(), json!(word(self.effects.kind())));
        if contradicts {
            let kinds: Vec<_> = self.effects.kinds.iter().map(|kind| word(*kind)).collect();
            call.insert("kinds".to_owned(), json!(kinds));
        }
        if let Some(raw) = self.effects.raw.as_ref().or(self.input.as_ref()) {
            // JSON that can be read in two ways is shown as written.
            let raw = value(Some(raw)).unwrap_or_else(|| json!(raw.get()));
            call.insert("rawInput".to_owned(), raw);
        }
        if !call.contains_key("content")
            && let Some(changes) = &self.effects.changes
        {
            call.insert("content".to_owned(), changes.read().unwrap_or_default());
        }
        let shown = shown_paths(&call);
        let missing = self.effects.paths.iter().filter(|path| !shown.contains(&path.as_str()));
        let missing: Vec<Object> = missing.map(|path| json!({ "path": path })).collect();
        match call.get_mut("locations").and_then(Object::as_array_mut) {
            Some(locations) => locations.extend(missing),
            None => drop(call.insert("locations".to_owned(), json!(missing))),
        }
        Some(Json::of(&call))
    }
}

type Fields = Map<String, Object>;

fn path_fields(input: &Fields) -> Vec<&str> {
    PATH.iter().filter_map(|name| input.get(*name)?.as_str()).collect()
}

/// The paths in the fields where a call normally shows them.
fn shown_paths(call: &Fields) -> Vec<&str> {
    let list = |name: &str| call.get(name).and_then(Object::as_array).into_iter().flatten();
    let changed = list("content").filter(|piece| piece.get("type") == Some(&json!("diff")));
    let linked = list("content").filter_map(|piece| {
        let content = piece.get("content")?;
        content.get("resource").unwrap_or(content).get("uri")?.as_str()
    });
    let places = changed.chain(list("locations")).filter_map(|item| item.get("path")?.as_str());
    places.chain(linked).collect()
}

fn rank(kind: ToolKind) -> u8 {
    match kind {
        ToolKind::Think | ToolKind::Question => 0,
        ToolKind::Read | ToolKind::Search => 1,
        ToolKind::Agent
        | ToolKind::Mcp
        | ToolKind::SwitchMode
        | ToolKind::Fetch
        | ToolKind::Other => 2,
        ToolKind::Edit => 3,
        ToolKind::Move => 4,
        ToolKind::Delete => 5,
        ToolKind::Execute => 6,
    }
}

/// Whether a call of the first kind may also be reported as the second.
fn includes(kind: ToolKind, other: ToolKind) -> bool {
    let only_looks =
        matches!(other, ToolKind::Think | ToolKind::Question | ToolKind::Read | ToolKind::Search);
    kind == other || (only_looks && rank(other) <= rank(kind))
}

fn word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Think | ToolKind::Question => "think",
        ToolKind::Read => "read",
        ToolKind::Search => "search",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        ToolKind::Edit => "edit",
        ToolKind::Move => "move",
        ToolKind::Delete => "delete",
        ToolKind::Execute => "execute",
        ToolKind::Agent | ToolKind::Mcp | ToolKind::Other => "other",
    }
}
