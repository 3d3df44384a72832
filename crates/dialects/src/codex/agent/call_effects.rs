//! What calls do, as their items report it. Codex may start a call without asking, and may ask for
//! something other than its item says: the session judges all of it.

use agentwire_protocol::event::{ToolKind, ToolStarted};
use agentwire_protocol::{Json, JsonObject, Text};
use serde_json::{Value as Object, json};

use super::super::app_wire::{Item, RequestParams};
use super::items::collab_tool;
use super::tools::ToolState;
use super::{Translator, pick};
use crate::digest::digest;
use crate::json::Value;
use crate::tape::{Agent, Out, UnaskedCall};

/// How many different effects of one call are stored; later ones are judged immediately.
const LIMIT: usize = 16;

/// What one item says about its call.
#[derive(Debug)]
pub(super) struct CallEffect {
    call: UnaskedCall,
    /// The command, the changes or the arguments, exactly.
    what: String,
    directory: Option<String>,
}

impl CallEffect {
    /// `None` if the item does not say what the call does.
    pub(super) fn of(kind: &str, id: &str, value: Value<'_>, item: &Item<'_>) -> Option<Self> {
        let raw = |value: Value<'_>| value.json().get().to_owned();
        let what = match kind {
            "commandExecution" => item.command.as_ref().map(Text::to_string)?,
            "fileChange" => item.changes.map(raw)?,
            "mcpToolCall" | "dynamicToolCall" => {
                item.tool.as_ref()?;
                item.arguments.map(raw).unwrap_or_default()
            }
            _ => String::new(),
        };
        let start = describe(kind, id, value, item);
        let call = UnaskedCall {
            tool_id: id.to_owned(),
            tool_name: Some(start.tool_name.to_string()),
            kind: start.kind,
            // The query of a search is known only at its end, and no rule is about it.
            input: start.arguments.filter(|_| kind != "webSearch").map(Json::into_owned),
            title: start.title.as_ref().map(Text::to_string),
            server: start.server.as_ref().map(Text::to_string),
        };
        let directory = value.get("cwd").and_then(Value::string).map(|cwd| cwd.into_owned());
        Some(Self { call, what, directory })
    }

    fn key(&self) -> String {
        let name = self.call.tool_name.as_deref().unwrap_or_default();
        let server = self.call.server.as_deref().unwrap_or_default();
        digest(&json!([self.call.tool_id, name, server, self.what]).to_string())
    }

    fn is_asked(&self, method: &str, ask: &RequestParams<'_>, params: Value<'_>) -> bool {
        let name = self.call.tool_name.as_deref();
        match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => {
                name == Some("command_execution")
                    && ask.command.and_then(Value::string).as_deref() == Some(&self.what)
                    && params.get("cwd").and_then(Value::string).as_deref()
                        == self.directory.as_deref()
            }
            // The request names the item, and the item has the changes.
            "item/fileChange/requestApproval" => {
                name == Some("file_change") && params.get("changes").is_none()
            }
            _ => false,
        }
    }

    fn json(&self) -> Object {
        let UnaskedCall { tool_name, input, server, .. } = &self.call;
        let input: Option<Object> = input.as_ref().and_then(|input| input.read().ok());
        let fields =
            [("tool", json!(tool_name)), ("server", json!(server)), ("input", json!(input))];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        fields.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Translator {
    /// Records what an item says that its call does, and has it judged if the item shows that it runs.
    pub(super) fn watch(&mut self, said: CallItem<'_>, complete: bool, out: &mut Out<'_>) {
        if out.is_recording() {
            return;
        }
        let CallItem { kind, id, value, item } = said;
        let effect = CallEffect::of(kind, id, value, item);
        let Some(tool) = self.ledger.tools.get(id) else {
            // The call has ended, and still runs or runs again.
            if let Some(effect) = effect.filter(|_| !complete || has_run(item, false)) {
                self.judge(&effect, out);
            }
            return;
        };
        let memo = &mut tool.memo;
        let is_new =
            |effect: &CallEffect| memo.effects.iter().all(|known| known.key() != effect.key());
        let mut beyond = None;
        let mut is_changed = false;
        if let Some(effect) = effect.filter(is_new) {
            is_changed = kind == "fileChange" && !complete && !memo.effects.is_empty();
            match memo.effects.len() {
                ..LIMIT => memo.effects.push(effect),
                _ => beyond = Some(effect),
            }
        }
        let runs = match complete {
            true => has_run(item, memo.is_refused),
            false => never_waits(kind, item),
        };
        if is_changed {
            self.deny_changed(id, out);
        }
        if runs {
            self.runs(id, out);
        }
        if let Some(effect) = beyond {
            self.judge(&effect, out);
        }
    }

    /// Updates the growing patch of a file change. A patch that was asked about must not change: an answer
    /// to the old patch does not apply to the new one.
    pub(super) fn rewrite(&mut self, id: &str, changes: Value<'_>, out: &mut Out<'_>) {
        let Some(tool) = self.ledger.tools.get(id) else { return };
        let changes = changes.json().get().to_owned();
        let is_changed = tool.memo.changes.as_ref() != Some(&changes);
        if let Some(effect) = tool.memo.effects.last_mut() {
            let input = JsonObject::new().raw("changes", &Json::trusted(changes.as_str()));
            effect.call.input = Some(input.finish());
            effect.what.clone_from(&changes);
        }
        tool.memo.changes = Some(changes);
        if is_changed {
            self.deny_changed(id, out);
        }
    }

    /// The call runs. The session judges it even if it was asked about: what was allowed is not denied now,
    /// unless the call does something else.
    pub(super) fn runs(&mut self, id: &str, out: &mut Out<'_>) {
        if out.is_recording() {
            return;
        }
        let Some(tool) = self.ledger.tools.get(id) else { return };
        let effects = std::mem::take(&mut tool.memo.effects);
        effects.iter().for_each(|effect| self.judge(effect, out));
        if let Some(tool) = self.ledger.tools.get(id) {
            tool.memo.effects = effects;
        }
    }

    /// The agent's turn ends: its calls that have no end and wait for no answer have run.
    pub(super) fn all_ran(&mut self, agent: &Agent<'_>, out: &mut Out<'_>) {
        let waits = |id: &str| {
            self.ledger.requests.iter().any(|request| request.memo.tool.as_deref() == Some(id))
        };
        let open = self.ledger.tools.iter().filter(|tool| agent.id == tool.agent.id);
        let open = open.filter(|tool| !tool.memo.is_refused && !waits(&tool.id));
        let open: Vec<String> = open.map(|tool| tool.id.clone()).collect();
        open.iter().for_each(|id| self.runs(id, out));
    }

    /// Judges each effect of a call once.
    fn judge(&mut self, effect: &CallEffect, out: &mut Out<'_>) {
        let key = effect.key();
        if !self.judged.has(&key) {
            self.judged.add(&key);
            out.unasked(effect.call.clone());
        }
    }

    /// What the call of a request says elsewhere that it does, if the request asks for something else.
    pub(super) fn started_as(
        &mut self,
        method: &str,
        ask: &RequestParams<'_>,
        params: Value<'_>,
        tool: &str,
    ) -> Option<String> {
        let is_call = matches!(
            method,
            "item/commandExecution/requestApproval"
                | "item/fileChange/requestApproval"
                | "execCommandApproval"
                | "applyPatchApproval"
        );
        let memo = &self.ledger.tools.get(tool).filter(|_| is_call)?.memo;
        let newest = memo.effects.len().checked_sub(1)?;
        let is_file = method == "item/fileChange/requestApproval";
        let effects = memo.effects.iter().enumerate();
        let others = effects.filter(|(at, effect)| {
            // Of several versions of a file change, the newest is shown.
            !effect.is_asked(method, ask, params) || (is_file && *at != newest)
        });
        let others: Vec<Object> = others.map(|(_, effect)| effect.json()).collect();
        (!others.is_empty()).then(|| json!(others).to_string())
    }

    /// A request about the call was denied, so it must not run. If it is not known which MCP call was
    /// meant, all calls of that server are marked.
    pub(super) fn refuse(&mut self, tool: Option<&str>, server: Option<&str>) {
        let of_server = |call: &ToolState| {
            let called = call.mcp.as_ref().map(|called| called.server.as_str());
            tool.is_none() && server.is_some() && called == server
        };
        let calls = self.ledger.tools.iter_mut();
        let calls = calls.filter(|call| tool == Some(&*call.id) || of_server(&call.memo));
        calls.for_each(|call| call.memo.is_refused = true);
    }
}

#[derive(Clone, Copy)]
pub(super) struct CallItem<'s> {
    pub(super) kind: &'s str,
    pub(super) id: &'s str,
    pub(super) value: Value<'s>,
    pub(super) item: &'s Item<'s>,
}

/// Whether a completed call ran. A refused call fails or is declined, and shows no sign of a run.
fn has_run(item: &Item<'_>, is_refused: bool) -> bool {
    let says = |json: &Json<'_>| json.get() != "null";
    let shows = item.exit_code.is_some()
        || item.aggregated_output.as_ref().is_some_and(says)
        || item.result.is_some_and(|result| says(&result.json()));
    match item.status.as_deref() {
        _ if shows => true,
        Some("declined") => false,
        Some("failed") => !is_refused,
        _ => true,
    }
}

/// Whether a call that starts does not wait for an answer. A command that waits is reported as the agent's,
/// one that runs as a process.
fn never_waits(kind: &str, item: &Item<'_>) -> bool {
    match kind {
        "commandExecution" => {
            item.source.as_deref().is_some_and(|source| source.starts_with("unifiedExec"))
        }
        "fileChange" | "mcpToolCall" | "dynamicToolCall" => false,
        _ => true,
    }
}

pub(super) fn describe<'a>(
    kind: &str,
    id: &'a str,
    value: Value<'a>,
    item: &'a Item<'a>,
) -> ToolStarted<'a> {
    let tool = item.tool.as_deref();
    let arguments = item.arguments.filter(|arguments| arguments.is_object()).map(Value::json);
    match kind {
        "commandExecution" => ToolStarted {
            arguments: pick(value, &["command", "cwd", "commandActions"]),
            title: item.command.clone(),
            ..ToolStarted::new(id, "command_execution", ToolKind::Execute)
        },
        "fileChange" => ToolStarted {
            arguments: pick(value, &["changes"]),
            ..ToolStarted::new(id, "file_change", ToolKind::Edit)
        },
        "mcpToolCall" => ToolStarted {
            arguments,
            server: item.server.as_deref().map(Text::from),
            ..ToolStarted::new(id, tool.unwrap_or("mcp_tool_call"), ToolKind::Mcp)
        },
        "dynamicToolCall" => ToolStarted {
            arguments,
            server: item.namespace.clone(),
            ..ToolStarted::new(id, tool.unwrap_or("dynamic_tool_call"), ToolKind::Other)
        },
        "collabAgentToolCall" => {
            let name = collab_tool(tool.unwrap_or("collab_tool_call"));
            let names = ["prompt", "model", "reasoningEffort", "receiverThreadIds"];
            ToolStarted {
                arguments: pick(value, &names),
                ..ToolStarted::new(id, name, ToolKind::Agent)
            }
        }
        "webSearch" => ToolStarted {
            arguments: item
                .query
                .as_ref()
                .filter(|query| !query.is_empty())
                .and_then(|_| pick(value, &["query"])),
            ..ToolStarted::new(id, "web_search", ToolKind::Fetch)
        },
        "imageView" => ToolStarted {
            arguments: pick(value, &["path"]),
            ..ToolStarted::new(id, "image_view", ToolKind::Read)
        },
        "imageGeneration" => ToolStarted::new(id, "image_generation", ToolKind::Other),
        _ => ToolStarted {
            arguments: pick(value, &["durationMs"]),
            ..ToolStarted::new(id, "sleep", ToolKind::Other)
        },
    }
}
