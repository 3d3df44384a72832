//! An agent's session without its process: `agent>` and `client>` in; `agent<`, `client<`, `log<` and
//! `session<` out.

use std::collections::BTreeSet;

use agentwire_dialects::agent::{AgentDialect, Exit, Setup};
use agentwire_dialects::tape::{Action, Draft, Signal, Sink, Tape, UnaskedCall};
use agentwire_protocol::{AgentType, Call, CommandFrame, GatewayError, Json, SessionConfig};
use serde_json::{Value, json};

use crate::common;
use crate::script::{bytes, happening, named};

pub(crate) struct Agent {
    tape: Tape,
    calls: u64,
    replied: BTreeSet<u64>,
}

/// The wire with that name. Gemini has two, one of which is ACP.
pub(crate) fn dialect(name: &str) -> &'static dyn AgentDialect {
    match name {
        "gemini-acp" => agentwire_dialects::driver(AgentType::Gemini, Some("acp")).expect("a wire"),
        _ => agentwire_dialects::agent(name).unwrap_or_else(|| panic!("no wire {name}")),
    }
}

impl Agent {
    /// `session> WIRE {"config","resume","fork","recording"}`
    pub(crate) fn start(what: &str) -> (Self, Vec<String>) {
        let (name, mut fields) = named(what);
        let setup = Setup {
            config: config(fields["config"].take()),
            resume: fields["resume"].as_str().map(str::to_owned),
            fork: fields["fork"] == true,
            native_session_id: None,
            recording: fields["recording"] == true,
        };
        let mut agent =
            Self { tape: Tape::new(dialect(name), &setup), calls: 0, replied: BTreeSet::new() };
        let mut came = AgentOutput::default();
        if !setup.recording {
            agent.tape.start(&mut came);
        }
        (agent, came.0)
    }

    pub(crate) fn step(&mut self, who: &str, what: &str) -> Vec<String> {
        let mut came = AgentOutput::default();
        match (who, bytes(what)) {
            ("client", text) => {
                let text = String::from_utf8(text.expect("a command")).expect("UTF-8");
                let frame = CommandFrame::from_json(&text)
                    .unwrap_or_else(|refused| panic!("{text}: {}", refused.error));
                self.calls += 1;
                let call = Call(self.calls);
                if let Err(error) = self.tape.command(call, &frame.command, &mut came) {
                    let sent = came.0.iter().find(|came| came.starts_with("agent<"));
                    assert_eq!(sent, None, "{text} is refused and sent");
                    came.0.push(format!("client< {} refused: {}", call.0, shown(&error)));
                    came.1.push(call.0);
                }
            }
            (_, Some(line)) => self.tape.line(&line, &mut came),
            (_, None) => match happening(what).expect("a happening") {
                "starts" => self.tape.start(&mut came),
                ended => self.tape.end(exit(ended), &mut came),
            },
        }
        for call in came.1 {
            assert!(self.replied.insert(call), "the command {call} is answered twice");
        }
        came.0
    }
}

/// A config; every field is optional.
pub(crate) fn config(fields: Value) -> SessionConfig {
    match fields {
        Value::Null => SessionConfig::default(),
        fields => serde_json::from_value(fields).expect("a config"),
    }
}

/// `exits`, `exits with code N` or `exits by signal N`
fn exit(what: &str) -> Exit {
    let number = |text: &str| text.parse().expect("a number");
    match (what, what.strip_prefix("exits with code "), what.strip_prefix("exits by signal ")) {
        (_, Some(code), _) => Exit::Code(number(code)),
        (_, _, Some(signal)) => Exit::Signal(number(signal)),
        ("exits", ..) => Exit::Unknown,
        _ => panic!("nothing that an agent does: {what}"),
    }
}

/// `CODE: MESSAGE`, and the details.
pub(crate) fn shown(error: &GatewayError) -> String {
    let details = error.details.as_ref().map(|details| format!(" {}", details.get()));
    let message = error.message.replace('\n', "\\n");
    format!("{}: {message}{}", error.code.as_str(), details.unwrap_or_default())
}

/// The output of a line, in order, and the commands that were answered.
#[derive(Default)]
struct AgentOutput(Vec<String>, Vec<u64>);

impl Sink for AgentOutput {
    fn event(&mut self, draft: Draft<'_>) {
        let event = common::brief(&common::stamped(draft, 1));
        self.0.push(format!("log< {} {}", event.name, event.fields));
    }

    fn action(&mut self, action: Action) {
        self.0.push(match action {
            Action::Write(line) => format!("agent< {line}"),
            Action::CloseStdin => "agent< (end of stdin)".to_owned(),
            Action::Signal(Signal::Interrupt) => "agent< (signal to interrupt)".to_owned(),
            Action::Signal(Signal::Terminate) => "agent< (signal to terminate)".to_owned(),
            Action::Judge(judged) => {
                let input = judged.input.as_deref().map(crate::script::json);
                format!(
                    "session< judge {}",
                    told(json!({
                        "requestId": judged.request_id, "toolName": judged.tool_name,
                        "toolUseId": judged.tool_use_id, "input": input,
                        "directory": judged.directory, "isRefusing": judged.is_refusing,
                    }))
                )
            }
        });
    }

    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        self.1.push(call.0);
        self.0.push(match result {
            Ok(json) => format!("client< {} {}", call.0, json.get()),
            Err(error) => format!("client< {} failed: {}", call.0, shown(&error)),
        });
    }

    fn unasked(&mut self, call: UnaskedCall) {
        let input: Option<Value> = call.input.map(|input| input.read().expect("JSON"));
        let call = told(json!({
            "toolId": call.tool_id, "toolName": call.tool_name, "kind": call.kind, "input": input,
            "title": call.title, "server": call.server,
        }));
        self.0.push(format!("session< unasked {call}"));
    }

    fn broken(&mut self, message: String) {
        self.0.push(format!("session< broken {}", Value::from(message)));
    }
}

/// Without null fields.
fn told(mut fields: Value) -> Value {
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}
