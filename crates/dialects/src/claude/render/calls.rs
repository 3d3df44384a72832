//! Renders what agents do: tool calls, changed files, plans, subagents. All of it becomes tool calls.

use agentwire_protocol::event::{
    AgentFinished, AgentOutcome, AgentSpawned, FileChanged, PlanUpdated, RequestKind,
    RequestOutcome, RequestRaised, RequestSettled, ToolCompleted, ToolFailed, ToolFailure,
    ToolProgress,
};
use agentwire_protocol::{Json, MAIN_AGENT, Text};
use serde::Serialize;

use super::frames::{TaskNotification, UserBlock};
use super::messages::{BlockKind, TextPiece};
use super::output::MessageWriter;
use super::tools::{CallResult, OpenCall, bound, completed, failed, tool_result, user};
use super::{Renderer, files, plan, system};
use crate::claude::permission;

/// How many tool calls may be open at once; more are not shown.
const OPEN_LIMIT: usize = 4096;

impl Renderer {
    /// From now on a call shows what permission was asked for. A question becomes a call of Claude's.
    pub(super) fn request_raised(
        &mut self,
        agent: &str,
        request: &RequestRaised<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        let id = request.tool_use_id.as_ref().unwrap_or(&request.request_id).decode();
        let open = self.tools.iter().position(|tool| tool.id == id);
        match (request.kind, open) {
            (RequestKind::Permission, Some(at)) => {
                let mut tool = self.tools.remove(at);
                tool.asked(request);
                self.tools.push(tool);
                bound(&mut self.tools);
            }
            (RequestKind::Question, None) if !request.questions.is_empty() => {
                let input = permission::questions(&request.questions);
                let name = permission::QUESTIONS.to_owned();
                self.call(OpenCall::new(&id, agent, name, input), writer);
                self.questions.insert(request.request_id.to_string(), id.into_owned());
            }
            (RequestKind::Permission | RequestKind::Question, _)
            | (RequestKind::Hook | RequestKind::Mcp | RequestKind::Other, _) => {}
        }
    }

    /// A question that was shown as a call gets its result.
    pub(super) fn request_settled(
        &mut self,
        settled: &RequestSettled<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        let id = self.questions.remove(&*settled.request_id.decode());
        let Some(tool) = id.and_then(|id| self.close(&id)) else { return };
        let (words, is_error) = match settled.outcome {
            RequestOutcome::Answered | RequestOutcome::Allowed | RequestOutcome::Resolved => {
                ("User has answered your questions.", false)
            }
            RequestOutcome::Denied => ("The user did not answer.", true),
            RequestOutcome::Withdrawn => ("The question was withdrawn.", true),
        };
        let reason = settled.reason.as_ref().filter(|_| is_error).map(Text::decode);
        let given = CallResult::words(reason.as_deref().unwrap_or(words), is_error);
        self.give(&tool, &given, writer);
    }

    pub(super) fn tool_progress(&mut self, progress: &ToolProgress<'_>) {
        let id = progress.tool_id.decode();
        if let Some(output) = &progress.output
            && let Some(tool) = self.tools.iter_mut().find(|tool| tool.id == id)
        {
            tool.wrote(&output.decode());
        }
    }

    pub(super) fn tool_completed(
        &mut self,
        ended: &ToolCompleted<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        let Some(tool) = self.close(&ended.tool_id.decode()) else { return };
        self.turn.cut_tool &= tool.agent != MAIN_AGENT;
        let given = completed(&mut self.scanner, &tool, ended);
        self.give(&tool, &given, writer);
    }

    pub(super) fn tool_failed(&mut self, ended: &ToolFailed<'_>, writer: &mut MessageWriter<'_>) {
        let Some(tool) = self.close(&ended.tool_id.decode()) else { return };
        match ended.reason {
            ToolFailure::Denied => self.turn.denied(&tool),
            ToolFailure::Interrupted => self.turn.cut_tool |= tool.agent == MAIN_AGENT,
            ToolFailure::Invalid => {}
        }
        let given = failed(&tool, &ended.error.decode(), ended.result.as_ref());
        self.give(&tool, &given, writer);
    }

    /// The turn ends: running calls of the main agent are cut off.
    pub(super) fn cut_tools(&mut self, writer: &mut MessageWriter<'_>) {
        let is_cut = |tool: &mut OpenCall| tool.agent == MAIN_AGENT;
        let cut: Vec<OpenCall> = self.tools.extract_if(.., is_cut).collect();
        for tool in cut {
            self.turn.cut_tool = true;
            let given = failed(&tool, "the turn ended without its result", None);
            self.give(&tool, &given, writer);
        }
    }

    /// A change that no call has shown is rendered as the call with which Claude would make it.
    pub(super) fn file_changed(
        &mut self,
        agent: &str,
        change: &FileChanged<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        if change.tool_id.as_ref().is_some_and(|id| self.edits.has(&id.decode())) {
            return;
        }
        for edit in files::edits(change) {
            let given = CallResult {
                content: Json::of(&edit.content),
                is_error: false,
                structured: Some(edit.structured),
            };
            self.call_and_give(agent, edit.name, edit.input, &given, writer);
        }
    }

    pub(super) fn plan_updated(
        &mut self,
        agent: &str,
        plan: &PlanUpdated<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        if let Some(words) = plan.explanation.as_ref().filter(|_| plan.entries.is_empty()) {
            let piece = TextPiece {
                kind: BlockKind::Text,
                content: words,
                is_complete: true,
                block_id: Some(&Text::fixed("plan")),
                signature: None,
            };
            self.piece(agent, &piece, writer);
            return;
        }
        let todos = plan::todos(plan);
        if self.todos.as_ref() == Some(&todos) {
            return;
        }
        let old = self.todos.replace(todos.clone()).unwrap_or_else(|| Json::trusted("[]"));
        let given = CallResult {
            structured: Some(plan::structured(&old, &todos)),
            ..CallResult::words("Todos have been modified successfully.", false)
        };
        self.call_and_give(agent, "TodoWrite", plan::input(&todos), &given, writer);
    }

    /// A subagent is the call that spawned it. If there was none, one is rendered.
    pub(super) fn agent_spawned(
        &mut self,
        agent: &str,
        parent: &str,
        spawned: &AgentSpawned<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        if agent == MAIN_AGENT {
            return;
        }
        if spawned.background == Some(true) {
            self.background.add(agent);
        }
        if !self.called.has(agent) {
            self.call_agent(agent, parent, spawned, writer);
        }
        if let Some(prompt) = spawned.prompt.as_ref().filter(|_| self.called.has(agent)) {
            // It may be reported late, after the agent has spoken.
            self.speakers.of(agent, writer).end_message(writer);
            user(UserBlock::Text { text: &prompt.decode() }, agent, None, writer);
        }
    }

    fn call_agent(
        &mut self,
        agent: &str,
        parent: &str,
        spawned: &AgentSpawned<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        let words = |text: &Option<Text<'_>>| text.as_ref().map(Text::to_string);
        let name = words(&spawned.name).unwrap_or_else(|| "general-purpose".to_owned());
        let input = Json::of(&Task {
            description: words(&spawned.description).unwrap_or_else(|| name.clone()),
            prompt: words(&spawned.prompt).unwrap_or_default(),
            subagent_type: name,
        });
        self.call(OpenCall::new(agent, parent, "Task".to_owned(), input), writer);
        if spawned.background == Some(true)
            && let Some(tool) = self.close(agent)
        {
            self.give(
                &tool,
                &CallResult::words("The agent works in the background.", false),
                writer,
            );
        }
    }

    pub(super) fn agent_finished(
        &mut self,
        agent: &str,
        finished: &AgentFinished<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        self.speakers.leave(agent, writer);
        let (status, otherwise) = match finished.outcome {
            AgentOutcome::Completed => ("completed", ""),
            AgentOutcome::Failed => ("failed", "the agent failed"),
            AgentOutcome::Cancelled => ("stopped", "the agent was stopped"),
        };
        let words = finished.result.as_ref().map_or(otherwise.into(), |result| result.decode());
        if let Some(tool) = self.close(agent) {
            let is_error = finished.outcome != AgentOutcome::Completed;
            self.give(&tool, &CallResult::words(&words, is_error), writer);
        } else if self.background.has(agent) {
            // Its call ended when it was spawned.
            let notice = TaskNotification {
                task_id: agent,
                tool_use_id: agent,
                status,
                output_file: "",
                summary: &words,
            };
            system("task_notification", notice, writer);
        }
    }

    pub(super) fn call(&mut self, mut tool: OpenCall, writer: &mut MessageWriter<'_>) {
        let is_open = self.tools.iter().any(|open| open.id == tool.id);
        if is_open || self.tools.len() >= OPEN_LIMIT || !self.may_speak(&tool.agent) {
            return;
        }
        self.turn.cut_tool &= tool.agent != MAIN_AGENT;
        self.called.add(&tool.id);
        let shown = tool.shown();
        if shown.is_edit {
            self.edits.add(&tool.id);
        }
        tool.name = shown.name;
        let speaker = self.speakers.of(&tool.agent, writer);
        speaker.tool_use((&tool.id, &tool.name, &shown.input), self.session.model(), writer);
        self.tools.push(tool);
        bound(&mut self.tools);
    }

    fn close(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.tools.iter().position(|tool| tool.id == id)?;
        Some(self.tools.remove(at))
    }

    /// Shows the result of a call. Only then is the model's message known to be complete.
    fn give(&mut self, tool: &OpenCall, given: &CallResult<'_>, writer: &mut MessageWriter<'_>) {
        let speaker = self.speakers.of(&tool.agent, writer);
        speaker.end_message(writer);
        speaker.is_continued = false;
        tool_result(&tool.id, &tool.agent, given, writer);
    }

    /// Shows a call that the agent did not make, and its result.
    fn call_and_give(
        &mut self,
        agent: &str,
        name: &str,
        input: Json<'static>,
        given: &CallResult<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        let id = writer.id("toolu_");
        // The model did not write this: a message that it interrupts continues after it.
        let speaker = self.speakers.of(agent, writer);
        let is_continued = speaker.is_continued || speaker.is_in_message();
        speaker.is_continued = true;
        self.call(OpenCall::new(&id, agent, name.to_owned(), input), writer);
        if let Some(tool) = self.close(&id) {
            self.give(&tool, given, writer);
        }
        self.speakers.of(agent, writer).is_continued = is_continued;
    }
}

/// The input of a call that spawns a subagent.
#[derive(Serialize)]
struct Task {
    description: String,
    prompt: String,
    subagent_type: String,
}
