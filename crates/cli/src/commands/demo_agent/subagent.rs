//! Subagents, which are started by a tool call.

use serde_json::{Value, json};

use super::active_agents::SubagentInfo;
use super::agent::{Agent, Halt};
use super::hooks::HookEvent;
use super::json::JsonFields as _;
use super::messages::BlockKind;
use super::script;
use super::tools::{Outcome, ToolCall};

/// How deep subagents may nest: each is a few frames on the stack.
const DEPTH: usize = 200;

impl Agent {
    pub(super) fn delegate(&mut self, call: &ToolCall<'_>) -> Result<Outcome, Halt> {
        if self.active.depth() >= DEPTH {
            return Ok(Outcome::failed(&format!("subagents nest at most {DEPTH} deep")));
        }
        if call.input.at("run_in_background") == true {
            return Ok(Outcome::failed("the demo agent runs subagents in the foreground only"));
        }
        let text = |key: &str| call.input.at(key).as_str().map(str::to_owned);
        let prompt = text("prompt").unwrap_or_default();
        let spawned = SubagentInfo {
            tool_use_id: call.id.to_owned(),
            agent_id: self.session.ids.short("a"),
            kind: text("subagent_type").unwrap_or_else(|| "general-purpose".to_owned()),
            description: text("description").unwrap_or_default(),
        };
        self.emit(json!({
            "type": "system",
            "subtype": "task_started",
            "task_id": spawned.agent_id,
            "tool_use_id": call.id,
            "description": spawned.description,
            "subagent_type": spawned.kind,
            "is_backgrounded": false,
            "spawn_depth": self.active.depth() + 1,
            "task_type": "local_agent",
            "prompt": prompt,
        }))?;
        self.active.spawn(spawned.clone(), prompt.len());
        let ended = match self.play_subagent(&spawned, &prompt) {
            Ok(()) => Ok(()),
            Err(halt) => Err(self.cut_message().err().unwrap_or(halt)),
        };
        let Some(agent) = self.active.leave() else {
            return Ok(Outcome::failed("the subagent is gone"));
        };
        let said = Some(agent.last_text).filter(|text| !text.is_empty());
        let said = said.unwrap_or_else(|| format!("{}: done.", spawned.description));
        match ended {
            Ok(()) => {
                self.task_ended(&spawned, "completed", "completed", &said)?;
                let content = json!([{ "type": "text", "text": said }]);
                let elapsed = agent.begun.elapsed().as_millis();
                Ok(Outcome::done(
                    content.clone(),
                    json!({
                        "status": "completed",
                        "prompt": prompt,
                        "agentId": spawned.agent_id,
                        "agentType": spawned.kind,
                        "content": content,
                        "totalDurationMs": u64::try_from(elapsed).unwrap_or(u64::MAX),
                        "totalTokens": agent.spent.total(),
                        "totalToolUseCount": agent.tools,
                        "usage": agent.spent.to_json(),
                    }),
                ))
            }
            Err(halt @ (Halt::Exit(_) | Halt::Broken(_))) => Err(halt),
            Err(halt @ Halt::Interrupted(_)) => {
                self.task_ended(&spawned, "killed", "stopped", "Interrupted.")?;
                Err(halt)
            }
            Err(halt) => {
                self.task_ended(&spawned, "failed", "failed", "The turn ended.")?;
                Err(halt)
            }
        }
    }

    fn play_subagent(&mut self, spawned: &SubagentInfo, prompt: &str) -> Result<(), Halt> {
        let content = json!([{ "type": "text", "text": prompt }]);
        self.emit_said(
            json!({ "type": "user", "message": { "role": "user", "content": content } }),
        )?;
        self.subagent_hook("SubagentStart", spawned, json!({}))?;
        match script::parse(prompt) {
            Some(steps) => self.play(&steps)?,
            None => self.speak(BlockKind::Text, &format!("{}: done.", spawned.description))?,
        }
        self.end_message("end_turn")?;
        let said = self.active.current().last_text.clone();
        let fields = json!({ "stop_hook_active": false, "last_assistant_message": said });
        self.subagent_hook("SubagentStop", spawned, fields)
    }

    fn subagent_hook(
        &mut self,
        event: &'static str,
        spawned: &SubagentInfo,
        fields: Value,
    ) -> Result<(), Halt> {
        self.raise(&HookEvent::new(event, Some(&spawned.kind), fields)).map(drop)
    }

    fn task_ended(
        &mut self,
        spawned: &SubagentInfo,
        state: &str,
        status: &str,
        summary: &str,
    ) -> Result<(), Halt> {
        self.emit(json!({
            "type": "system",
            "subtype": "task_updated",
            "task_id": spawned.agent_id,
            "patch": { "status": state },
        }))?;
        self.emit(json!({
            "type": "system",
            "subtype": "task_notification",
            "task_id": spawned.agent_id,
            "tool_use_id": spawned.tool_use_id,
            "status": status,
            "output_file": "",
            "summary": summary,
        }))
    }
}
