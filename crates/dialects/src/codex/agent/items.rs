//! Items of the app server: how they start and complete.

use std::borrow::Cow;

use agentwire_protocol::event::{Status, StatusChanged, ToolCompleted, ToolFailure, ToolProgress};
use agentwire_protocol::{Json, Text};

use super::super::app_wire::{Item, Notification};
use super::call_effects::{CallItem, describe};
use super::text::{BlockKey, BlockKind};
use super::tools::{McpCall, ToolEnd, ToolState, command_end, completed, mcp_end};
use super::{Translator, files, pick};
use crate::json::Value;
use crate::tape::{Agent, Out};

impl Translator {
    /// Handles an item that starts or is complete.
    pub(super) fn item(&mut self, notice: &Notification<'_>, complete: bool, out: &mut Out<'_>) {
        let Some(value) = notice.item else { return };
        let Some(item) = value.to::<Item<'_>>() else { return };
        let (Some(kind), Some(id)) = (item.kind.as_deref(), item.id.as_deref()) else { return };
        let thread_id = notice.thread_id.as_deref();
        if kind == "userMessage" {
            let content = item.content.into_iter().flat_map(Value::items);
            if let Some(prompt) = content.filter_map(|part| part.get("text")?.string()).next() {
                self.threads.prompted(thread_id, &prompt);
            }
        }
        let thread = self.threads.of(thread_id);
        thread.show(out);
        let agent = &thread.owner();
        match kind {
            "userMessage" => self.user_message(agent, id, &item, complete, out),
            "agentMessage" | "plan" => {
                let part = if kind == "plan" { BlockKind::Plan } else { BlockKind::Text };
                let key = BlockKey { item: id, part, named: true };
                if !complete {
                    return self.blocks.restart(out, id);
                }
                self.join_turn(agent, notice, out);
                let text = item.text.filter(|text| text.is_string()).map(Value::json);
                let text = text.as_ref().map(Json::get);
                self.blocks.finish(out, agent, key, text);
                if part == BlockKind::Text
                    && agent.parent.is_none()
                    && self.config.output_format.is_some()
                {
                    self.answer = text.map(str::to_owned);
                }
            }
            "reasoning" if !complete => self.blocks.restart(out, id),
            "reasoning" => {
                self.join_turn(agent, notice, out);
                self.reasoning(agent, id, &item, out);
            }
            "contextCompaction" => {
                let status = if complete { Status::Compacted } else { Status::Compacting };
                out.emit_as(agent, StatusChanged::new(status));
            }
            "enteredReviewMode" if !complete => {
                let change = StatusChanged::new(Status::Mode).message(Text::from("review"));
                out.emit_as(agent, change.details(pick(value, &["review"])));
            }
            "exitedReviewMode" if complete => {
                out.emit_as(agent, StatusChanged::new(Status::Notice).message(item.review));
            }
            "hookPrompt" if !complete => {
                out.emit_as(agent, StatusChanged::new(Status::Hook).details(item.fragments));
            }
            "subAgentActivity" if !complete => self.activity(agent, id, &item, out),
            "functionCallOutput" if complete => {
                if let (Some(call), Some(output)) = (item.call_id, item.output) {
                    self.progress(&call, Some(output), None, out);
                }
            }
            "commandExecution"
            | "fileChange"
            | "mcpToolCall"
            | "dynamicToolCall"
            | "collabAgentToolCall"
            | "webSearch"
            | "imageView"
            | "imageGeneration"
            | "sleep" => {
                if !self.seen.has(id) {
                    self.join_turn(agent, notice, out);
                    self.start_tool_item(agent, kind, id, value, &item, out);
                }
                self.watch(CallItem { kind, id, value, item: &item }, complete, out);
                if complete {
                    self.complete_tool(agent, kind, id, value, &item, out);
                } else if let Some([thread, ..]) = item.receiver_thread_ids.as_deref() {
                    self.threads.spawned(id, Some(thread), out);
                }
            }
            _ => {}
        }
    }

    /// Output of the main agent belongs to a turn, even if the turn's start was not seen.
    pub(super) fn join_turn(
        &mut self,
        agent: &Agent<'_>,
        notice: &Notification<'_>,
        out: &mut Out<'_>,
    ) {
        if agent.parent.is_none() && !self.ledger.turn_is_open() {
            self.threads.main().turn = notice.turn_id.as_deref().map(str::to_owned);
            self.ledger.ensure_turn(out);
        }
    }

    /// Reported when it starts; its completion adds nothing.
    fn user_message(
        &mut self,
        agent: &Agent<'_>,
        id: &str,
        item: &Item<'_>,
        complete: bool,
        out: &mut Out<'_>,
    ) {
        if complete && self.prompted.as_deref() == Some(id) {
            item.content.into_iter().for_each(Value::carried);
            return;
        }
        self.prompted = Some(id.to_owned());
        let content = item.content.into_iter().flat_map(Value::items);
        let texts: Vec<Cow<'_, str>> =
            content.clone().filter_map(|part| part.get("text")?.string()).collect();
        let message = match texts.as_slice() {
            [] => None,
            [text] => Some(Text::from(&**text)),
            texts => Some(Text::from(texts.join("\n"))),
        };
        let only_text = content.clone().all(|part| part.get("text").is_some());
        let details = item.content.filter(|_| !only_text).map(Value::json);
        out.emit_as(agent, StatusChanged::new(Status::Prompted).message(message).details(details));
    }

    fn reasoning(&mut self, agent: &Agent<'_>, id: &str, item: &Item<'_>, out: &mut Out<'_>) {
        let summary =
            (0..).map(BlockKind::Summary).zip(item.summary.into_iter().flat_map(Value::items));
        let content =
            (0..).map(BlockKind::Content).zip(item.content.into_iter().flat_map(Value::items));
        for (part, text) in summary.chain(content).filter(|(_, text)| text.is_string()) {
            let key = BlockKey { item: id, part, named: true };
            self.blocks.finish(out, agent, key, Some(text.json().get()));
        }
    }

    fn activity(&mut self, agent: &Agent<'_>, id: &str, item: &Item<'_>, out: &mut Out<'_>) {
        if let Some(thread) = item.agent_thread_id.as_deref() {
            let thread = self.threads.child(thread, id, agent);
            thread.named(item.agent_path.clone());
            thread.show(out);
        }
        out.emit_as(agent, StatusChanged::new(Status::Task).message(item.activity.clone()));
    }

    fn start_tool_item(
        &mut self,
        agent: &Agent<'_>,
        kind: &str,
        id: &str,
        value: Value<'_>,
        item: &Item<'_>,
        out: &mut Out<'_>,
    ) {
        let start = describe(kind, id, value, item);
        let mut called = ToolState::default();
        match kind {
            "fileChange" => {
                called.changes = item.changes.map(|changes| changes.json().get().to_owned());
            }
            "mcpToolCall" => {
                let named = item.server.as_deref().zip(item.tool.as_deref());
                called.mcp = named.map(|(server, tool)| McpCall {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    arguments: start.arguments.as_ref().map(|json| json.get().to_owned()),
                });
            }
            "collabAgentToolCall" if start.tool_name == *"spawn_agent" => {
                let prompt = item.prompt.as_ref().map(Text::to_string);
                self.threads.spawning(id, agent, prompt);
            }
            _ => {}
        }
        self.start_tool(out, agent, start, called);
    }

    fn complete_tool(
        &mut self,
        agent: &Agent<'_>,
        kind: &str,
        id: &str,
        value: Value<'_>,
        item: &Item<'_>,
        out: &mut Out<'_>,
    ) {
        // The start reported these.
        for name in ["command", "cwd", "commandActions", "arguments", "prompt"] {
            value.get(name).into_iter().for_each(Value::carried);
        }
        let status = item.status.as_deref();
        let success = status != Some("failed") && item.success != Some(false);
        let ended = |result| ToolCompleted {
            result,
            error: (!success).then(|| Text::from("the call failed")),
            ..completed(success)
        };
        let end = match kind {
            "commandExecution" => {
                command_end(status, item.exit_code, item.aggregated_output.clone())
            }
            "fileChange" if status == Some("declined") => {
                ToolEnd::Failed(ToolFailure::Denied, Text::from("the change was declined"))
            }
            "fileChange" => ToolEnd::Completed(ToolCompleted {
                error: (!success).then(|| Text::from("the change failed")),
                ..completed(success)
            }),
            "mcpToolCall" => {
                let error = item.error.clone().and_then(|error| error.message);
                mcp_end(status, item.result, "structuredContent", error)
            }
            "dynamicToolCall" => ToolEnd::Completed(ended(item.content_items.clone())),
            "collabAgentToolCall" => ToolEnd::Completed(ended(item.agents_states.map(Value::json))),
            "webSearch" => ToolEnd::Completed(ended(pick(value, &["query", "action", "results"]))),
            "imageGeneration" => {
                let names = ["result", "savedPath", "revisedPrompt"];
                ToolEnd::Completed(ended(pick(value, &names)))
            }
            _ => ToolEnd::Completed(ended(None)),
        };
        let end = match end {
            ToolEnd::Completed(completed) if kind != "sleep" => {
                ToolEnd::Completed(ToolCompleted { duration_ms: item.duration_ms, ..completed })
            }
            end => end,
        };
        self.settle_by_end(id, matches!(end, ToolEnd::Failed(ToolFailure::Denied, _)), out);
        let Some(called) = self.end_tool(out, agent, id, end) else { return };
        match kind {
            "fileChange" if status != Some("declined") && success => {
                files::read(item.changes, called.changes.as_deref(), |changes| {
                    files::report_app_changes(out, agent, id, changes);
                });
            }
            "collabAgentToolCall" => self.agents(agent, id, item, out),
            _ => {}
        }
    }

    /// Handles what a call says about subagents: which it spawned, and which have ended.
    fn agents(&mut self, agent: &Agent<'_>, id: &str, item: &Item<'_>, out: &mut Out<'_>) {
        let receivers = item.receiver_thread_ids.as_deref().unwrap_or_default();
        self.threads.spawned(id, receivers.first().map(|thread| &**thread), out);
        for thread in receivers {
            self.threads.child(thread, thread, agent);
        }
        self.threads.report_states(item.agents_states, out);
    }

    /// Reports output or progress of an open call, which shows that it runs.
    pub(super) fn progress(
        &mut self,
        id: &str,
        output: Option<Text<'_>>,
        message: Option<Text<'_>>,
        out: &mut Out<'_>,
    ) {
        self.runs(id, out);
        self.report_progress(id, output, message, out);
    }

    /// Reports progress of an open call that may not run yet.
    pub(super) fn report_progress(
        &mut self,
        id: &str,
        output: Option<Text<'_>>,
        message: Option<Text<'_>>,
        out: &mut Out<'_>,
    ) {
        self.settle_by_progress(id, out);
        if let Some(tool) = self.ledger.tools.get(id) {
            out.emit_as(&tool.agent, ToolProgress::new(id, output, message));
        }
    }
}

/// Exec's name for a tool that works with subagents.
pub(super) fn collab_tool(tool: &str) -> &str {
    match tool {
        "spawnAgent" => "spawn_agent",
        "sendInput" => "send_input",
        "resumeAgent" => "resume_agent",
        "closeAgent" => "close_agent",
        other => other,
    }
}
