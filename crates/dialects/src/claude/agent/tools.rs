//! Tool calls, from the block that makes one to the block that has its result.

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    AgentOutcome, AgentSpawned, PlanEntry, PlanStatus, PlanUpdated, ToolCompleted, ToolFailed,
    ToolFailure, ToolKind, ToolStarted,
};

use super::files::{self, IntendedChange};
use super::tasks::TaskCall;
use super::{Translator, plain_text};
use crate::claude::wire::{Block, ResultMeta};
use crate::json::Value;
use crate::ledger::owned;
use crate::tape::{Agent, Out};

/// The state of a tool call until its result.
#[derive(Debug, Default)]
pub(super) struct ToolState {
    /// The intended change, reported once it is made.
    change: Option<IntendedChange>,
    /// The intended plan, reported once it is set.
    plan: Option<Vec<PlanEntry<'static>>>,
    /// What it does to the task list.
    task: Option<TaskCall>,
    /// Somebody refused it.
    denied: bool,
}

/// A result as it appears on the line.
pub(super) struct ToolResult<'d> {
    pub(super) is_error: bool,
    pub(super) error: Option<Text<'d>>,
    pub(super) content: Option<Value<'d>>,
    pub(super) structured: Option<Value<'d>>,
    pub(super) meta: ResultMeta<'d>,
}

impl Translator {
    pub(super) fn start_tool(
        &mut self,
        agent: &Agent<'_>,
        block: Block<'_>,
        meta: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        let (Some(id), Some(name)) = (block.id, block.name) else { return };
        let input = block.input.filter(|input| input.is_object());
        let call = ToolState {
            change: input.and_then(|input| IntendedChange::asked(&name, input)),
            plan: input
                .filter(|input| name == "TodoWrite" && input.json().get().len() <= files::KEPT)
                .and_then(|input| todos(input.get("todos")?)),
            task: input.and_then(|input| TaskCall::asked(&name, input)),
            denied: false,
        };
        // A repeated line makes no new call.
        if !self.mark_reported(&id) || !self.ledger.tools.open(&id, agent, call) {
            return;
        }
        let text = |field| input.and_then(|input| input.get(field)).and_then(Value::to);
        let named = mcp_server(&name).map(Text::from);
        let server = block.server_name.or(named);
        out.emit_as(
            agent,
            ToolStarted {
                tool_id: Text::from(&*id),
                // A server may name its tool `Bash`, so the name stays the full one.
                tool_name: Text::from(&*name),
                arguments: input.map(Value::json),
                kind: if server.is_some() { ToolKind::Mcp } else { tool_kind(&name) },
                title: meta.and_then(|meta| display_name(meta, &id)).or(text("description")),
                server,
            },
        );
        match &*name {
            "Agent" | "Task" => {
                let spawned = AgentSpawned {
                    name: text("subagent_type"),
                    description: text("description"),
                    prompt: text("prompt"),
                    native_id: None,
                    background: input
                        .and_then(|input| input.get("run_in_background"))
                        .and_then(Value::to),
                };
                self.spawn(&id, agent, spawned, out);
            }
            // The permission request that follows does not show the plan
            // (`real-d5-exit-plan-mode`).
            "ExitPlanMode" => {
                if let Some(plan) = text("plan") {
                    let explanation = Some(plan);
                    out.emit_as(agent, PlanUpdated { entries: Vec::new(), explanation });
                }
            }
            _ => {}
        }
    }

    /// The result closes the call, all requests about it, and the agent that it spawned.
    pub(super) fn tool_result(
        &mut self,
        agent: &Agent<'_>,
        id: &str,
        result: &ToolResult<'_>,
        out: &mut Out<'_>,
    ) {
        let call = self.ledger.tools.close(id);
        // A call that was closed by the end of its turn stays closed.
        if call.is_none() && !self.mark_reported(id) {
            if !result.is_error {
                out.ran(id, true);
            }
            return;
        }
        let owner = call.as_ref().map_or_else(|| owned(agent), |call| call.agent.clone());
        let call = call.map(|call| call.memo).unwrap_or_default();

        let structured = result.structured.filter(|value| value.is_object());
        let text = result.error.clone().or_else(|| result.content.and_then(plain_text));
        let cut = structured
            .and_then(|value| value.get("interrupted"))
            .and_then(Value::to::<bool>)
            .is_some_and(|cut| cut);
        let failure = match (result.is_error, cut) {
            (_, true) => Some(ToolFailure::Interrupted),
            (true, false) => self.not_run(&call, result, text.as_ref()),
            (false, false) => None,
        };
        if structured.is_none() {
            // The same content again, as a string or as blocks.
            result.structured.into_iter().for_each(Value::carried);
        }
        self.settle_by_result(id, &result.meta, failure, out);
        let outcome = match (failure, result.is_error) {
            (Some(ToolFailure::Denied | ToolFailure::Interrupted), _) => AgentOutcome::Cancelled,
            (Some(ToolFailure::Invalid), _) | (None, true) => AgentOutcome::Failed,
            (None, false) => AgentOutcome::Completed,
        };
        self.spawn_result(id, outcome, result.content, structured, out);

        let tool_id = Text::from(id);
        if let Some(reason) = failure {
            if cut {
                out.ran(id, true);
            }
            return out.emit_as(
                &owner,
                ToolFailed {
                    tool_id,
                    error: text.as_ref().map_or(Text::from("the tool did not run"), unwrapped),
                    reason,
                    result: result.content.map(Value::json),
                },
            );
        }
        let success = !result.is_error;
        if !success {
            out.ran(id, accepted(&result.meta));
        }
        let changed = structured
            .filter(|_| success)
            .and_then(files::changed)
            .or_else(|| call.change.filter(|_| success).map(IntendedChange::done));
        let own_form = structured.filter(|value| changed.is_none() && !is_image(*value));
        out.emit_as(
            &owner,
            ToolCompleted {
                tool_id: tool_id.clone(),
                success,
                exit_code: text
                    .as_ref()
                    .filter(|_| !success)
                    .and_then(|text| exit_code(&text.decode())),
                error: text.as_ref().filter(|_| !success).map(unwrapped),
                result: result.content.map(Value::json),
                duration_ms: structured.and_then(|value| value.read("durationMs")),
                structured: own_form.map(Value::json),
            },
        );
        if let Some(mut changed) = changed {
            changed.tool_id = Some(tool_id);
            out.emit_as(&owner, changed);
        }
        let told = structured.and_then(|value| value.get("newTodos")).and_then(todos);
        let task = call.task.zip(structured).filter(|_| success);
        let listed = task.and_then(|(task, result)| self.tasks.after(task, result));
        if let Some(entries) = told.or(call.plan).filter(|_| success).or(listed) {
            out.emit_as(&owner, PlanUpdated { entries, explanation: None });
        }
    }

    /// Marks that call as reported; returns whether it was not yet.
    pub(super) fn mark_reported(&mut self, id: &str) -> bool {
        !self.reported_tools.has(id) && self.reported_tools.add(id)
    }

    /// Somebody refused that call. Its result will say so less clearly.
    pub(super) fn mark_denied(&mut self, id: &str) {
        if let Some(tool) = self.ledger.tools.get(id) {
            tool.memo.denied = true;
        }
    }

    /// Why a tool did not run. New versions say so next to the result. An interrupted call is
    /// `user-rejected` without a decision (`real-e2-interrupt-mid-tool`).
    fn not_run(
        &self,
        call: &ToolState,
        result: &ToolResult<'_>,
        text: Option<&Text<'_>>,
    ) -> Option<ToolFailure> {
        let decision = result.meta.decision.as_ref().and_then(|made| made.decision.as_deref());
        let text = text.map(Text::decode).unwrap_or_default();
        // A denied call did not run, unless the result shows that it did.
        let has_run = accepted(&result.meta) || exit_code(&text).is_some();
        if decision == Some("reject") || (call.denied && !has_run) {
            return Some(ToolFailure::Denied);
        }
        match result.meta.non_execution_kind.as_deref() {
            Some("permission-rule") => return Some(ToolFailure::Denied),
            Some("user-rejected") => return Some(ToolFailure::Interrupted),
            Some(_) => return Some(ToolFailure::Invalid),
            None => {}
        }
        // A parallel call failed, so this one was not made.
        let is_cancelled = text.starts_with("<tool_use_error>Cancelled: ");
        let text = text.strip_prefix("<tool_use_error>").unwrap_or(&text);
        let text = text.strip_prefix("Error: ").unwrap_or(text);
        if text.starts_with("No such tool") || text.starts_with("InputValidationError") {
            Some(ToolFailure::Invalid)
        } else if text.starts_with("[Request interrupted") || is_cancelled {
            Some(ToolFailure::Interrupted)
        } else if text.starts_with("The user doesn't want to proceed") {
            let told = result.structured.and_then(Value::string).unwrap_or_default();
            let cut = self.interrupted || told.contains("interrupt");
            Some(if cut { ToolFailure::Interrupted } else { ToolFailure::Denied })
        } else {
            None
        }
    }
}

/// Whether Claude reports that the call was allowed to run. Calls that were not have no such report
/// (`real-c3-bash-permission-deny`, `real-c13-bash-fails`).
fn accepted(meta: &ResultMeta<'_>) -> bool {
    meta.non_execution_kind.is_none()
        && meta.decision.as_ref().and_then(|made| made.decision.as_deref()) == Some("accept")
}

/// The server in `mcp__SERVER__TOOL`.
fn mcp_server(name: &str) -> Option<&str> {
    name.strip_prefix("mcp__")?.split_once("__").map(|(server, _)| server)
}

fn display_name<'d>(meta: Value<'d>, id: &str) -> Option<Text<'d>> {
    let mut metas = meta.items();
    metas.find(|meta| meta.get("id").is_some_and(|own| own.is(id)))?.read("display_name")
}

/// An image is already in the result.
fn is_image(structured: Value<'_>) -> bool {
    structured.get("type").is_some_and(|kind| kind.is("image"))
}

/// The error without the tags meant for the model.
fn unwrapped<'d>(text: &Text<'d>) -> Text<'d> {
    let words = text.decode();
    let inside = words
        .strip_prefix("<tool_use_error>")
        .and_then(|words| words.strip_suffix("</tool_use_error>"));
    match inside {
        Some(inside) => Text::from(inside.to_owned()),
        None => text.clone(),
    }
}

/// A failed command says `Exit code N` before its output.
fn exit_code(words: &str) -> Option<i64> {
    words.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

fn todos(list: Value<'_>) -> Option<Vec<PlanEntry<'static>>> {
    let entries = list.items().filter_map(|todo| {
        let status = todo.get("status").and_then(Value::string);
        Some(PlanEntry {
            content: todo.read::<Text<'_>>("content")?.into_owned(),
            status: PlanStatus::from_word(status.as_deref().unwrap_or_default()),
            priority: todo.read::<Text<'_>>("priority").map(Text::into_owned),
        })
    });
    list.is_array().then(|| entries.collect())
}

pub(super) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "Read"
        | "NotebookRead"
        | "LS"
        | "BashOutput"
        | "TaskOutput"
        | "ReadMcpResourceTool"
        | "ListMcpResourcesTool" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Grep" | "Glob" | "LSP" | "ToolSearch" => ToolKind::Search,
        "Bash" | "PowerShell" | "KillShell" | "KillBash" | "Monitor" => ToolKind::Execute,
        "WebFetch" | "WebSearch" | "web_search" | "web_fetch" => ToolKind::Fetch,
        "TodoWrite" | "TodoRead" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList" => {
            ToolKind::Think
        }
        "Agent" | "Task" | "SendMessage" | "TaskStop" => ToolKind::Agent,
        "AskUserQuestion" => ToolKind::Question,
        "EnterPlanMode" | "ExitPlanMode" | "EnterWorktree" | "ExitWorktree" => ToolKind::SwitchMode,
        name if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}
