//! Tool calls of `codex exec --json`.

use agentwire_protocol::event::{ToolCompleted, ToolFailure, ToolKind, ToolProgress, ToolStarted};
use agentwire_protocol::{Json, Text};

use super::super::exec_wire::Item;
use super::exec::Phase;
use super::tools::{ToolEnd, ToolState, command_end, completed, mcp_end};
use super::{Translator, files, pick};
use crate::json::Value;
use crate::tape::{Agent, Out};

impl Translator {
    pub(super) fn exec_tool(
        &mut self,
        phase: Phase,
        kind: &str,
        value: Value<'_>,
        item: &Item<'_>,
        out: &mut Out<'_>,
    ) {
        let id = match &item.id {
            Some(id) => self.exec_id(id).into_owned(),
            None => self.exec_made_id(phase, kind),
        };
        if !self.seen.has(&id) {
            // The specification gives the name of an MCP tool only after its start.
            let named = item.tool.is_some() || item.tool_name.is_some();
            if kind == "mcp_tool_call" && phase == Phase::Started && !named {
                return;
            }
            self.exec_start(&id, kind, value, item, out);
        }
        match phase {
            Phase::Started => {}
            Phase::Updated => self.exec_progress(&id, item, out),
            Phase::Completed => self.exec_end(&id, kind, value, item, out),
        }
    }

    fn exec_start(
        &mut self,
        id: &str,
        kind: &str,
        value: Value<'_>,
        item: &Item<'_>,
        out: &mut Out<'_>,
    ) {
        let object = |arguments: Option<Value<'_>>| {
            arguments
                .filter(|arguments| arguments.is_object())
                .map(|value| value.json().into_owned())
        };
        let start = match kind {
            "command_execution" => ToolStarted {
                arguments: pick(value, &["command"]),
                title: item.command.and_then(Value::to).or(item.command_line.clone()),
                ..ToolStarted::new(id, kind, ToolKind::Execute)
            },
            "file_change" => ToolStarted {
                arguments: pick(value, &["changes"]),
                ..ToolStarted::new(id, kind, ToolKind::Edit)
            },
            "mcp_tool_call" => {
                let name = item.tool.clone().or(item.tool_name.clone());
                ToolStarted {
                    arguments: object(item.arguments.or(item.tool_input)),
                    server: item.server.clone(),
                    ..ToolStarted::new(id, name.unwrap_or(Text::from(kind)), ToolKind::Mcp)
                }
            }
            "collab_tool_call" => {
                if item.tool.as_ref().is_some_and(|tool| *tool == *"spawn_agent") {
                    let prompt = item.prompt.as_ref().map(Text::to_string);
                    self.threads.spawning(id, &Agent::main(), prompt);
                }
                ToolStarted {
                    arguments: pick(value, &["prompt", "receiver_thread_ids"]),
                    ..ToolStarted::new(
                        id,
                        item.tool.clone().unwrap_or(Text::from(kind)),
                        ToolKind::Agent,
                    )
                }
            }
            _ => ToolStarted {
                arguments: item
                    .query
                    .as_ref()
                    .filter(|query| !query.is_empty())
                    .and(pick(value, &["query"])),
                ..ToolStarted::new(id, kind, ToolKind::Fetch)
            },
        };
        let called = ToolState {
            titled: start.title.is_some() || start.arguments.is_some(),
            ..ToolState::default()
        };
        self.start_tool(out, &Agent::main(), start, called);
    }

    /// Only the specification's items grow: a command line or a query that was missing at the start, and
    /// whole outputs, of which the new part is reported.
    fn exec_progress(&mut self, id: &str, item: &Item<'_>, out: &mut Out<'_>) {
        let Some(tool) = self.ledger.tools.get(id) else { return };
        let called = &mut tool.memo;
        if let Some(changes) = item.changes {
            called.changes = Some(changes.json().get().to_owned());
        }
        let title = item.command_line.clone().or(item.query.clone()).filter(|_| !called.titled);
        called.titled |= title.is_some();
        let whole = item.aggregated_output.or(item.tool_result).and_then(Value::string);
        let output = whole.map(|whole| {
            let new = whole.strip_prefix(called.said.as_str()).unwrap_or(&whole).to_owned();
            called.said = whole.into_owned();
            new
        });
        let output = output.filter(|output| !output.is_empty()).map(Text::from);
        if title.is_some() || output.is_some() {
            out.emit(ToolProgress::new(id, output, title));
        }
    }

    fn exec_end(
        &mut self,
        id: &str,
        kind: &str,
        value: Value<'_>,
        item: &Item<'_>,
        out: &mut Out<'_>,
    ) {
        let main = &Agent::main();
        let status = item.status.as_deref();
        let said = self.ledger.tools.get(id).map(|tool| tool.memo.said.clone());
        let said = said.filter(|said| !said.is_empty()).map(|said| Json::of(&said));
        let end = match kind {
            "command_execution" => {
                let output = item.aggregated_output.map(Value::json).or(said);
                command_end(status, item.exit_code, output)
            }
            "mcp_tool_call" => {
                let error = item.error.clone().and_then(|error| error.message);
                match item.result.or(item.tool_result) {
                    None if said.is_some() => {
                        let success = status != Some("failed");
                        ToolEnd::Completed(ToolCompleted { result: said, ..completed(success) })
                    }
                    result => mcp_end(status, result, "structured_content", error),
                }
            }
            "web_search" => ToolEnd::Completed(ToolCompleted {
                result: pick(value, &["query", "action"]),
                ..completed(status != Some("failed"))
            }),
            "collab_tool_call" => ToolEnd::Completed(ToolCompleted {
                result: item.agents_states.map(Value::json),
                ..simple(status, "the call failed")
            }),
            _ if status == Some("declined") => {
                ToolEnd::Failed(ToolFailure::Denied, Text::from("the change was declined"))
            }
            _ => ToolEnd::Completed(simple(status, "the change failed")),
        };
        let success = matches!(&end, ToolEnd::Completed(completed) if completed.success);
        self.last_error = None;
        let Some(called) = self.end_tool(out, main, id, end) else { return };
        match kind {
            "file_change" if success => {
                files::read(item.changes, called.changes.as_deref(), |changes| {
                    files::report_exec_changes(out, main, id, changes);
                });
            }
            "collab_tool_call" => self.exec_agents(id, item, out),
            _ => {}
        }
    }

    fn exec_agents(&mut self, id: &str, item: &Item<'_>, out: &mut Out<'_>) {
        let thread = item.receiver_thread_ids.as_ref().and_then(|threads| threads.first());
        self.threads.spawned(id, thread.map(|thread| &**thread), out);
        self.threads.report_states(item.agents_states, out);
    }

    fn exec_made_id(&mut self, phase: Phase, kind: &str) -> String {
        let at = self.exec.open.iter().position(|(open, _)| open == kind);
        match (phase, at) {
            (Phase::Updated, Some(at)) => {
                self.exec.open.get(at).map(|(_, id)| id.clone()).unwrap_or_default()
            }
            (Phase::Completed, Some(at)) => self.exec.open.swap_remove(at).1,
            (phase, at) => {
                if let Some(at) = at {
                    self.exec.open.swap_remove(at);
                }
                self.exec.unnamed += 1;
                let id = format!("{kind}_{}", self.exec.unnamed);
                if phase != Phase::Completed {
                    self.exec.open.push((kind.to_owned(), id.clone()));
                }
                id
            }
        }
    }
}

fn simple<'a>(status: Option<&str>, error: &'static str) -> ToolCompleted<'a> {
    let success = status != Some("failed");
    ToolCompleted { error: (!success).then(|| Text::from(error)), ..completed(success) }
}
