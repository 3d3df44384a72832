//! A turn: from a prompt to its result.

use std::time::Instant;

use serde_json::{Value, json};

use super::active_agents::ActiveAgents;
use super::agent::{Agent, Halt, InterruptCause, Prompt};
use super::flags::VERSION;
use super::hooks::{self, HookEvent};
use super::json::JsonFields as _;
use super::messages::BlockKind;
use super::result::Ending;
use super::script::{self, DIRECTIVES, Step};
use super::usage::{Models, Usage, sum};
use crate::print;

/// The current turn.
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) begun: Instant,
    pub(super) prompt: String,
    pub(super) uuid: Option<String>,
    /// The prompt needs no answer.
    pub(super) is_context: bool,
    /// `system/init` was written.
    pub(super) opened: bool,
    /// The model's first line, which names the prompt that it answers, was written.
    marked: bool,
    /// A person watches, so words appear slowly.
    pub(super) paced: bool,
    /// Usage from the script, until the first message reports it.
    pub(super) scripted: Option<Usage>,
    pub(super) models: Models,
    /// Lines to the model after the prompt.
    pub(super) lines_to_model: u64,
    pub(super) denials: Vec<Value>,
    pub(super) structured: Option<Value>,
    pub(super) stop_reason: Option<String>,
    /// The interrupt stopped a tool.
    pub(super) cut_in_tool: bool,
}

impl Agent {
    pub(super) fn serve_prompt(&mut self, prompt: &Prompt) -> Result<(), Halt> {
        let uuid = prompt.uuid.as_deref();
        self.lifecycle(uuid, "started")?;
        self.checkpoints.begin(uuid);
        self.remember(|memory| memory.prompt(&prompt.text));
        let steps = script::parse(&prompt.text);
        self.turn = Some(Turn {
            id: self.session.ids.uuid().to_string(),
            begun: Instant::now(),
            prompt: prompt.text.clone(),
            uuid: prompt.uuid.clone(),
            is_context: prompt.is_context,
            opened: false,
            marked: false,
            paced: steps.is_none(),
            scripted: steps.as_deref().and_then(script::usage),
            models: Models::new(),
            lines_to_model: 0,
            denials: Vec::new(),
            structured: None,
            stop_reason: None,
            cut_in_tool: false,
        });
        self.active = ActiveAgents::new(self.system.len() + prompt.text.len());
        let ending = match self.run(steps.as_deref()) {
            Ok(ending) => ending,
            Err(Halt::Interrupted(cut)) => Ending::Cut(cut),
            Err(Halt::Failed(message)) => Ending::Failed(message),
            Err(Halt::MaxTurns) => Ending::MaxTurns,
            Err(Halt::Budget) => Ending::Budget,
            Err(Halt::Hook(reason)) => Ending::Hook(reason),
            Err(halt @ (Halt::Exit(_) | Halt::Broken(_))) => return Err(halt),
        };
        self.end_turn(&ending)?;
        let cut = match ending {
            Ending::Cut(cut) => Some(cut),
            Ending::Done
            | Ending::Blocked(_)
            | Ending::Failed(_)
            | Ending::MaxTurns
            | Ending::Budget
            | Ending::Hook(_) => None,
        };
        self.lifecycle(uuid, if cut.is_some() { "cancelled" } else { "completed" })?;
        match cut {
            Some(InterruptCause::End) => Err(Halt::Interrupted(InterruptCause::End)),
            Some(InterruptCause::User | InterruptCause::Prompt) | None => Ok(()),
        }
    }

    fn run(&mut self, steps: Option<&[Step]>) -> Result<Ending, Halt> {
        let prompt = self.turn.as_ref().map(|turn| turn.prompt.clone()).unwrap_or_default();
        let fields = json!({ "prompt": prompt });
        let outputs = self.raise(&HookEvent::new("UserPromptSubmit", None, fields))?;
        if let Some(reason) = hooks::blocked(&outputs) {
            return Ok(Ending::Blocked(reason));
        }
        self.await_servers()?;
        self.open_turn()?;
        if self.turn.as_ref().is_some_and(|turn| turn.is_context) {
            return Ok(Ending::Done);
        }
        match steps {
            Some(steps) => self.play(steps)?,
            None => self.tour()?,
        }
        self.give_structured_output()?;
        self.end_message("end_turn")?;
        // No message reported it.
        let scripted = self.turn.as_mut().and_then(|turn| turn.scripted.as_mut());
        if let Some(usage) = scripted.map(std::mem::take) {
            self.spend(usage, "end_turn")?;
        }
        let agent = self.active.current();
        if std::mem::take(&mut agent.owes_call) {
            // The model sees the last result and adds nothing.
            self.may_call()?;
            self.active.current().calls += 1;
        }
        self.stop_hooks()?;
        Ok(Ending::Done)
    }

    /// Runs a script. A subagent's script runs the same way.
    pub(super) fn play(&mut self, steps: &[Step]) -> Result<(), Halt> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), Halt> {
        self.look()?;
        match step {
            Step::Say(text) => self.speak(BlockKind::Text, &self.fill(text)),
            Step::Think(text) => self.speak(BlockKind::Thinking, &self.fill(text)),
            Step::Tell(text) => self.speak(BlockKind::Text, text),
            Step::Pad(bytes) => self.pad(*bytes),
            Step::Repeat(count, text) => self.repeat(*count, text),
            Step::Tool(name, input) => self.call(name, &self.absolute(input)).map(drop),
            Step::Ask(input) => {
                let answer = self.ask(input)?;
                self.speak(BlockKind::Text, &answer)
            }
            Step::Sleep(duration) => self.pause(*duration),
            Step::Hang => {
                // Without a client nothing could interrupt it.
                while self.listening {
                    self.wait(None)?;
                }
                Ok(())
            }
            // The usage of the turn's script was read at the start.
            Step::Usage(usage) => {
                if let Some(turn) = &mut self.turn {
                    turn.scripted.get_or_insert(*usage);
                }
                Ok(())
            }
            Step::Stderr(text) => {
                self.out.flush()?;
                print::aside(text);
                Ok(())
            }
            Step::Raw(line) => Ok(self.out.raw(line.as_bytes())?),
            Step::Fail(message) => Err(Halt::Failed(message.clone())),
            Step::Exit(code) => Err(Halt::Exit(*code)),
        }
    }

    /// Claude uses absolute paths.
    fn absolute(&self, input: &Value) -> Value {
        let mut input = input.clone();
        if let Some(Value::String(path)) = input.get_mut("file_path") {
            *path = self.session.directory.join(&*path).display().to_string();
        }
        input
    }

    fn fill(&self, text: &str) -> String {
        script::filled(text, |name| match name {
            "model" => Some(self.model.clone()),
            "mode" => Some(self.permissions.shown().to_owned()),
            "system" => Some(self.system.clone()),
            "cwd" => Some(self.session.directory.display().to_string()),
            "prompt" => self.memory.prompts.last().cloned(),
            "prompts" => Some(self.memory.prompts.join("\n")),
            "result" => Some(self.last_result.clone()),
            "turns" => Some(self.memory.prompts.len().to_string()),
            _ => None,
        })
    }

    /// Asks a question; returns the text about the answer.
    pub(super) fn ask(&mut self, input: &Value) -> Result<String, Halt> {
        let outcome = self.call("AskUserQuestion", input)?;
        let structured = outcome.structured.unwrap_or_default();
        let answers = structured.at("answers").as_object().into_iter().flatten();
        let answers: Vec<String> = answers.map(|(_, answer)| answer_text(answer)).collect();
        Ok(if answers.is_empty() { "No answer.".to_owned() } else { answers.join(", ") })
    }

    /// `system/init`, which starts every turn.
    pub(super) fn open_turn(&mut self) -> Result<(), Halt> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if std::mem::replace(&mut turn.opened, true) {
            return Ok(());
        }
        let uuid = turn.uuid.clone();
        let mut line = json!({
            "type": "system",
            "subtype": "init",
            "cwd": self.session.directory,
            "tools": self.tools(),
            "mcp_servers": self.server_list(),
            "model": self.model,
            "permissionMode": self.permissions.mode.name(),
            "slash_commands": DIRECTIVES.map(|(name, ..)| name),
            "apiKeySource": "none",
            "claude_code_version": VERSION,
            "output_style": "default",
            "agents": ["general-purpose"],
            "skills": [],
            "plugins": [],
            "capabilities": ["interrupt_receipt_v1", "msg_lifecycle_v1"],
        });
        if let Some(uuid) = uuid {
            line.set("user_message_uuids", json!([uuid]));
        }
        self.emit(line)
    }

    /// Adds to the model's first line which prompt it answers.
    pub(super) fn mark_first(&mut self, line: &mut Value) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.marked) else { return };
        turn.marked = true;
        if let Some(uuid) = &turn.uuid {
            line.set("user_message_uuid", uuid.as_str());
            line.set("user_message_uuids", json!([uuid]));
        }
    }

    /// Whether the model may be called again.
    pub(super) fn may_call(&mut self) -> Result<(), Halt> {
        let main = self.active.subagent().is_none();
        let calls = self.active.current().calls;
        match self.flags.max_turns.filter(|most| main && calls >= *most) {
            Some(_) => Err(Halt::MaxTurns),
            None => Ok(()),
        }
    }

    /// Counts the tokens of a message that has ended.
    pub(super) fn spend(&mut self, usage: Usage, stop_reason: &str) -> Result<(), Halt> {
        let main = self.active.subagent().is_none();
        if let Some(turn) = &mut self.turn {
            turn.models.entry(self.model.clone()).or_default().add(usage);
            if main {
                turn.stop_reason = Some(stop_reason.to_owned());
            }
        }
        match self.flags.max_budget_usd.filter(|budget| self.cost_usd() >= *budget) {
            Some(_) => Err(Halt::Budget),
            None => Ok(()),
        }
    }

    /// The cost of the session so far.
    pub(super) fn cost_usd(&self) -> f64 {
        sum(&self.spent()).cost_usd()
    }

    pub(super) fn spent(&self) -> Models {
        let mut models = self.memory.spent.clone();
        for (model, usage) in self.turn.iter().flat_map(|turn| &turn.models) {
            models.entry(model.clone()).or_default().add(*usage);
        }
        models
    }

    /// A hook may make the agent continue, once.
    fn stop_hooks(&mut self) -> Result<(), Halt> {
        for active in [false, true] {
            let said = self.active.current().last_text.clone();
            let fields = json!({ "stop_hook_active": active, "last_assistant_message": said });
            let outputs = self.raise(&HookEvent::new("Stop", None, fields))?;
            let block = outputs.iter().find(|output| output.at("decision") == "block");
            let Some(block) = block.filter(|_| !active) else { return Ok(()) };
            let reason = block.at("reason").as_str().unwrap_or("Blocked by hook").to_owned();
            self.add_user_text(&format!("Stop hook feedback:\n- {reason}"), true)?;
            self.speak(BlockKind::Text, &format!("Continuing, as the hook asked: {reason}"))?;
            self.end_message("end_turn")?;
        }
        Ok(())
    }

    /// Writes a line to the model in the user's name.
    pub(super) fn add_user_text(&mut self, text: &str, synthetic: bool) -> Result<(), Halt> {
        let content = json!([{ "type": "text", "text": text }]);
        let mut line = json!({ "type": "user", "message": { "role": "user", "content": content } });
        if synthetic {
            line.set("isSynthetic", true);
        }
        if let Some(turn) = &mut self.turn {
            turn.lines_to_model += 1;
        }
        self.emit_said(line)
    }

    /// A failure to save is reported; the session continues.
    pub(super) fn remember(
        &mut self,
        keep: impl FnOnce(&mut super::memory::Memory) -> std::io::Result<()>,
    ) {
        if let Err(error) = keep(&mut self.memory) {
            print::aside(&format!("agentwire: failed to save the conversation: {error}"));
        }
    }
}

fn answer_text(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(answer_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
