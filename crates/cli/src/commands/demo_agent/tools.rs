//! Tools: from the call to its result.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::agent::{Agent, Halt, InterruptCause};
use super::files::{self, FileTool};
use super::hooks::{self, HookEvent};
use super::json::JsonFields as _;
use super::permission::{Need, PermissionOutcome};
use super::rules::Mode;
use super::schema;

/// The built-in tools, and their required fields with types.
const TOOLS: [(&str, &[(&str, &str)]); 10] = [
    ("Task", &[("description", "string"), ("prompt", "string")]),
    ("AskUserQuestion", &[("questions", "array")]),
    ("Bash", &[("command", "string")]),
    ("Blob", &[("bytes", "integer")]),
    ("Edit", &[("file_path", "string"), ("old_string", "string"), ("new_string", "string")]),
    ("ExitPlanMode", &[]),
    ("Read", &[("file_path", "string")]),
    ("TodoWrite", &[("todos", "array")]),
    ("Write", &[("file_path", "string"), ("content", "string")]),
    ("StructuredOutput", &[]),
];

/// Maximum size of a `Blob` result.
const BLOB_LIMIT: u64 = 1 << 30;

const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was \
    rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you \
    are doing and wait for the user to tell you how to proceed.";

/// A call of a tool.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'c> {
    pub(super) id: &'c str,
    pub(super) name: &'c str,
    pub(super) input: &'c Value,
}

/// The result of a tool.
pub(super) struct Outcome {
    /// A text, or blocks.
    pub(super) content: Value,
    pub(super) is_error: bool,
    /// The result for programs.
    pub(super) structured: Option<Value>,
}

/// A call that has ended.
struct EndedCall {
    outcome: Outcome,
    /// Additional context beside the result.
    meta: Value,
    /// Why the turn must end.
    stop: Option<String>,
}

impl From<Outcome> for EndedCall {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, meta: Value::Null, stop: None }
    }
}

impl Outcome {
    pub(super) fn done(content: impl Into<Value>, structured: Value) -> Self {
        Self { content: content.into(), is_error: false, structured: Some(structured) }
    }

    pub(super) fn failed(message: &str) -> Self {
        let structured = Some(json!(format!("Error: {message}")));
        Self { content: json!(message), is_error: true, structured }
    }

    /// The call was invalid; Claude reports that in tags.
    fn invalid(message: &str) -> Self {
        let content = json!(format!("<tool_use_error>{message}</tool_use_error>"));
        Self { content, is_error: true, structured: Some(json!(message)) }
    }

    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            blocks => {
                let blocks = blocks.as_array().into_iter().flatten();
                blocks.filter_map(|block| block.at("text").as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Agent {
    /// The names of all tools, for `system/init`.
    pub(super) fn tools(&self) -> Vec<String> {
        let own = TOOLS.iter().map(|(name, _)| (*name).to_owned());
        own.filter(|name| self.has_tool(name)).chain(self.server_tools()).collect()
    }

    fn has_tool(&self, name: &str) -> bool {
        let bare = |rule: &super::rules::Rule| rule.content.is_none() && rule.tool == name;
        if self.permissions.deny.iter().any(bare) {
            return false;
        }
        let chosen = self.flags.tools.as_ref();
        match name {
            "StructuredOutput" => self.flags.schema.is_some(),
            _ => chosen.is_none_or(|tools| tools.iter().any(|tool| tool == name)),
        }
    }

    /// Calls a tool and reports its result, however it ends.
    pub(super) fn call(&mut self, name: &str, input: &Value) -> Result<Outcome, Halt> {
        let id = self.use_tool(name, input)?;
        let call = ToolCall { id: &id, name, input };
        match self.attempt(&call) {
            Ok(EndedCall { outcome, meta, stop }) => {
                self.tell_outcome(&call, &outcome, meta)?;
                match stop {
                    Some(reason) => Err(Halt::Hook(reason)),
                    None => Ok(outcome),
                }
            }
            Err(halt) => {
                self.report_halted(&call, &halt)?;
                Err(halt)
            }
        }
    }

    fn attempt(&mut self, call: &ToolCall<'_>) -> Result<EndedCall, Halt> {
        let known = TOOLS.iter().find(|(name, _)| canonical(call.name) == *name);
        let known = known.filter(|(name, _)| self.has_tool(name));
        let need = match (known, self.server_of(call.name)) {
            (Some((_, fields)), _) => match missing(call.name, call.input, fields) {
                Some(fault) => return Ok(Outcome::invalid(&fault).into()),
                None => self.need(call),
            },
            (None, Some(_)) => Need::Leave,
            (None, None) => {
                let message = format!("Error: No such tool available: {}", call.name);
                return Ok(Outcome::invalid(&message).into());
            }
        };
        match self.permit(call, &need)? {
            PermissionOutcome::Yes { input, how } => {
                let call = ToolCall { input: &input, ..*call };
                let begun = Instant::now();
                let outcome = self.perform(&call)?;
                let stop = self.after(&call, &outcome, begun)?;
                Ok(EndedCall { outcome, meta: json!({ "permission_decision": how }), stop })
            }
            PermissionOutcome::No(refusal) => {
                if let Some(turn) = &mut self.turn {
                    turn.denials.push(json!({
                        "tool_name": call.name,
                        "tool_use_id": call.id,
                        "tool_input": call.input,
                    }));
                }
                if refusal.interrupt {
                    return Err(Halt::Interrupted(InterruptCause::User));
                }
                let outcome = Outcome::failed(&refusal.message);
                Ok(EndedCall { outcome, meta: refusal.meta, stop: None })
            }
        }
    }

    /// What a call needs before it may run.
    pub(super) fn need(&self, call: &ToolCall<'_>) -> Need {
        match canonical(call.name) {
            "Read" => match self.path(call.input) {
                path if self.permissions.is_inside(&path) => Need::Nothing,
                path => Need::Read(path),
            },
            "Write" | "Edit" => Need::Edit(self.path(call.input)),
            "Bash" => Need::Leave,
            "AskUserQuestion" | "ExitPlanMode" => Need::Talk,
            _ => Need::Nothing,
        }
    }

    fn path(&self, input: &Value) -> PathBuf {
        self.session.directory.join(input.at("file_path").as_str().unwrap_or_default())
    }

    fn perform(&mut self, call: &ToolCall<'_>) -> Result<Outcome, Halt> {
        let input = call.input;
        match canonical(call.name) {
            "Bash" => self.bash(input),
            "Read" => Ok(files::apply(files::read, &self.path(input), input)),
            "Write" => Ok(self.change(input, files::write)),
            "Edit" => Ok(self.change(input, files::edit)),
            "Task" => self.delegate(call),
            "AskUserQuestion" => Ok(answers(input)),
            "ExitPlanMode" => {
                if self.permissions.mode == Mode::Plan {
                    self.set_mode(Mode::Default)?;
                }
                let text = "User has approved exiting plan mode. You can now proceed.";
                Ok(Outcome::done(text, json!({ "plan": null, "isAgent": false })))
            }
            "TodoWrite" => {
                let old = std::mem::replace(&mut self.todos, input.at("todos").clone());
                let structured = json!({ "oldTodos": old, "newTodos": self.todos });
                Ok(Outcome::done("Todos have been modified successfully.", structured))
            }
            "Blob" => Ok(blob(input)),
            "StructuredOutput" => Ok(self.take_structured_output(input)),
            _ => self.call_server(call),
        }
    }

    /// Changes a file, after a checkpoint of it.
    fn change(&mut self, input: &Value, change: FileTool) -> Outcome {
        let path = self.path(input);
        match self.checkpoints.save(&path) {
            Ok(()) => files::apply(change, &path, input),
            Err(why) => Outcome::failed(&why),
        }
    }

    /// Calls the hooks for a finished tool; returns why one stops the turn, if one does.
    fn after(
        &mut self,
        call: &ToolCall<'_>,
        outcome: &Outcome,
        begun: Instant,
    ) -> Result<Option<String>, Halt> {
        let mut fields = json!({
            "tool_name": call.name,
            "tool_input": call.input,
            "tool_use_id": call.id,
            "duration_ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        let (event, key, value) = if outcome.is_error {
            ("PostToolUseFailure", "error", json!(outcome.text()))
        } else {
            let response = outcome.structured.as_ref().unwrap_or(&outcome.content);
            ("PostToolUse", "tool_response", response.clone())
        };
        fields.set(key, value);
        Ok(hooks::stopped(&self.raise(&HookEvent::of_call(event, call, fields))?))
    }

    fn tell_outcome(
        &mut self,
        call: &ToolCall<'_>,
        outcome: &Outcome,
        mut meta: Value,
    ) -> Result<(), Halt> {
        let text = outcome.text();
        let agent = self.active.current();
        agent.context += text.len();
        agent.owes_call = call.name != "StructuredOutput";
        let main = agent.spawned.is_none();
        self.last_result = text;
        let mut block = json!({
            "type": "tool_result", "tool_use_id": call.id, "content": outcome.content,
        });
        // Claude sets it for every command, for other tools only if true.
        if outcome.is_error || call.name == "Bash" {
            block.set("is_error", outcome.is_error);
        }
        let content = json!([block]);
        let mut line = json!({ "type": "user", "message": { "role": "user", "content": content } });
        // The results of subagents' tools have no part for programs.
        if let Some(structured) = outcome.structured.as_ref().filter(|_| main) {
            line.set("tool_use_result", structured.clone());
        }
        if !meta.is_null() {
            meta.set("id", call.id);
            line.set("tool_result_meta", json!([meta]));
        }
        if let Some(turn) = self.turn.as_mut().filter(|_| main) {
            turn.lines_to_model += 1;
        }
        self.emit_said(line)
    }

    /// The turn ends while the call is open; the call still gets a result.
    fn report_halted(&mut self, call: &ToolCall<'_>, halt: &Halt) -> Result<(), Halt> {
        let (text, structured, meta) = match halt {
            Halt::Exit(_) | Halt::Broken(_) => return Ok(()),
            Halt::Interrupted(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.cut_in_tool = true;
                }
                let meta = json!({ "non_execution_kind": "user-rejected" });
                (REJECTED.to_owned(), "User rejected tool use".to_owned(), meta)
            }
            Halt::Hook(reason) => {
                let text = format!("Execution stopped by hook: {reason}");
                (text.clone(), format!("Error: {text}"), Value::Null)
            }
            Halt::Failed(message) => (message.clone(), format!("Error: {message}"), Value::Null),
            Halt::MaxTurns | Halt::Budget => {
                let text = "The turn has reached its limit.".to_owned();
                (text.clone(), format!("Error: {text}"), Value::Null)
            }
        };
        let outcome =
            Outcome { content: json!(text), is_error: true, structured: Some(json!(structured)) };
        self.tell_outcome(call, &outcome, meta)
    }

    fn take_structured_output(&mut self, input: &Value) -> Outcome {
        let faults = self.flags.schema.as_ref().map(|schema| schema::faults(schema, input));
        match faults.filter(|faults| !faults.is_empty()) {
            Some(faults) => Outcome::failed(&format!(
                "Output does not match required schema: {}",
                faults.join("; ")
            )),
            None => {
                if let Some(turn) = &mut self.turn {
                    turn.structured = Some(input.clone());
                }
                let structured = "Structured output provided successfully";
                Outcome::done(structured, json!(structured))
            }
        }
    }

    /// With a schema, the turn must give a structured answer. If the script gave none, the smallest
    /// valid one is given.
    pub(super) fn give_structured_output(&mut self) -> Result<(), Halt> {
        let given = self.turn.as_ref().is_some_and(|turn| turn.structured.is_some());
        match self.flags.schema.clone().filter(|_| !given) {
            Some(schema) => self.call("StructuredOutput", &schema::instance(&schema)).map(drop),
            None => Ok(()),
        }
    }
}

/// The tool `Task`, recently renamed `Agent`, starts subagents.
fn canonical(name: &str) -> &str {
    if name == "Agent" { "Task" } else { name }
}

/// The problems of a call's input, in Claude's words.
fn missing(name: &str, input: &Value, fields: &[(&str, &str)]) -> Option<String> {
    let fits = |value: &Value, kind: &str| match kind {
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_u64(),
    };
    let mut faults = String::new();
    for (field, kind) in fields {
        match input.get(field) {
            Some(value) if fits(value, kind) => {}
            Some(_) => {
                faults.push_str(&format!("\nThe parameter `{field}` must be of type {kind}"));
            }
            None => faults.push_str(&format!("\nThe required parameter `{field}` is missing")),
        }
    }
    let what = format!("InputValidationError: {name} failed due to the following issues:{faults}");
    (!faults.is_empty()).then_some(what)
}

/// The client has added the answers to the input.
fn answers(input: &Value) -> Outcome {
    let answers = input.at("answers").as_object().cloned().unwrap_or_default();
    let pairs: Vec<String> = answers
        .iter()
        .map(|(question, answer)| match answer.as_str() {
            Some(answer) => format!("\"{question}\"=\"{answer}\""),
            None => format!("\"{question}\"={answer}"),
        })
        .collect();
    let text = if pairs.is_empty() {
        "The user did not answer the questions.".to_owned()
    } else {
        let pairs = pairs.join(", ");
        format!(
            "Your questions have been answered: {pairs}. You can now continue with these answers in \
             mind."
        )
    };
    Outcome::done(text, json!({ "questions": input.at("questions"), "answers": answers }))
}

fn blob(input: &Value) -> Outcome {
    let bytes = input.at("bytes").as_u64().unwrap_or(0);
    match usize::try_from(bytes) {
        Ok(size) if bytes <= BLOB_LIMIT => {
            Outcome { content: json!("B".repeat(size)), is_error: false, structured: None }
        }
        _ => Outcome::failed(&format!("a blob has at most {BLOB_LIMIT} bytes")),
    }
}
