//! The agent's state, and the one place where it waits.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::active_agents::ActiveAgents;
use super::checkpoints::Checkpoints;
use super::command::RunningCommand;
use super::flags::Flags;
use super::hooks::Hooks;
use super::ids::Ids;
use super::input::{self, Input, QUEUE};
use super::json::JsonFields as _;
use super::mcp::Server;
use super::memory::Memory;
use super::output::Output;
use super::permission::Permissions;
use super::requests::Requests;
use super::turn::Turn;
use crate::print;

pub(super) struct Session {
    pub(super) id: String,
    pub(super) ids: Ids,
    pub(super) directory: PathBuf,
    pub(super) resumed: bool,
}

pub(super) struct Agent {
    pub(super) flags: Flags,
    pub(super) session: Session,
    pub(super) memory: Memory,
    pub(super) out: Output,
    inbox: Receiver<Input>,
    /// The input queue, for threads that read from children.
    pub(super) post: SyncSender<Input>,
    pub(super) model: String,
    pub(super) system: String,
    pub(super) permissions: Permissions,
    pub(super) checkpoints: Checkpoints,
    pub(super) hooks: Hooks,
    pub(super) servers: Vec<Server>,
    pub(super) requests: Requests,
    pub(super) prompts: VecDeque<Prompt>,
    pub(super) turn: Option<Turn>,
    pub(super) active: ActiveAgents,
    pub(super) command: Option<RunningCommand>,
    /// The number of commands started so far.
    pub(super) commands: u64,
    pub(super) todos: Value,
    /// The text of the last tool result.
    pub(super) last_result: String,
    pub(super) results: u64,
    /// The client's input is still open.
    pub(super) listening: bool,
    /// The client has sent `initialize`, and its `SessionStart` hook was not called yet.
    pub(super) owes_session_start: bool,
    /// The client has sent `initialize`.
    pub(super) is_initialized: bool,
    /// The last turn failed, so the exit code will be an error.
    pub(super) failed: bool,
}

/// A prompt in the queue.
pub(super) struct Prompt {
    pub(super) text: String,
    /// If the client named the prompt, it gets reports on it.
    pub(super) uuid: Option<String>,
    /// Context that needs no answer.
    pub(super) is_context: bool,
}

/// Why work stops early.
#[derive(Debug)]
pub(super) enum Halt {
    Interrupted(InterruptCause),
    /// The turn fails.
    Failed(String),
    MaxTurns,
    Budget,
    /// A hook stopped it.
    Hook(String),
    /// The process exits at once.
    Exit(u8),
    /// stdout is closed.
    Broken(io::Error),
}

/// What caused the interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptCause {
    User,
    /// An urgent prompt.
    Prompt,
    /// The end of the session.
    End,
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl Agent {
    pub(super) fn new(flags: Flags, session: Session, memory: Memory) -> Self {
        let (post, inbox) = sync_channel(QUEUE);
        let system: Vec<&str> = [&flags.system, &flags.append_system]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        Self {
            model: flags.model.clone().unwrap_or_else(|| "demo".to_owned()),
            system: system.join("\n"),
            permissions: Permissions::new(&flags, &session.directory),
            checkpoints: Checkpoints::from_env(),
            flags,
            session,
            memory,
            out: Output::default(),
            inbox,
            post,
            hooks: Hooks::default(),
            servers: Vec::new(),
            requests: Requests::default(),
            prompts: VecDeque::new(),
            turn: None,
            active: ActiveAgents::new(0),
            command: None,
            commands: 0,
            todos: json!([]),
            last_result: String::new(),
            results: 0,
            listening: true,
            owes_session_start: false,
            is_initialized: false,
            failed: false,
        }
    }

    /// Serves the client until the end of its input; returns the exit code.
    pub(super) fn serve(mut self) -> io::Result<u8> {
        match self.flags.prompt.take() {
            Some(text) => {
                self.prompts.push_back(Prompt { text, uuid: None, is_context: false });
                self.listening = false;
            }
            None => input::read_stdin(self.post.clone())?,
        }
        let halt = match self.connect_configured() {
            Ok(()) => self.work(),
            Err(halt) => halt,
        };
        let code = match halt {
            Halt::Exit(code) => code,
            Halt::Broken(error) => return Err(error),
            Halt::Interrupted(_)
            | Halt::Failed(_)
            | Halt::MaxTurns
            | Halt::Budget
            | Halt::Hook(_) => u8::from(self.failed),
        };
        self.out.flush()?;
        Ok(code)
    }

    fn work(&mut self) -> Halt {
        loop {
            let step = if std::mem::take(&mut self.owes_session_start) {
                self.session_start()
            } else if let Some(prompt) = self.prompts.pop_front() {
                self.serve_prompt(&prompt)
            } else if self.listening {
                self.wait(None).map(drop)
            } else {
                Err(Halt::Interrupted(InterruptCause::End))
            };
            match step {
                Ok(()) => {}
                // Outside a turn there is nothing else to stop.
                Err(Halt::Interrupted(InterruptCause::User | InterruptCause::Prompt)) => {}
                Err(Halt::Interrupted(InterruptCause::End)) => {
                    return match self.session_end() {
                        Ok(()) => Halt::Exit(u8::from(self.failed)),
                        Err(halt) => halt,
                    };
                }
                Err(halt) => return halt,
            }
        }
    }

    /// Waits for one input and handles it; `false` after the timeout. Every wait happens here:
    /// output is flushed before, and the client can send something at any time.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> Result<bool, Halt> {
        self.out.flush()?;
        let come = match until {
            Some(until) => self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match come {
            Ok(input) => self.take(input).map(|()| true),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            // Cannot happen: we hold a sender.
            Err(RecvTimeoutError::Disconnected) => Err(Halt::Exit(1)),
        }
    }

    /// Handles the input that has arrived.
    pub(super) fn look(&mut self) -> Result<(), Halt> {
        while let Ok(input) = self.inbox.try_recv() {
            self.take(input)?;
        }
        Ok(())
    }

    /// Sleeps, and handles input meanwhile.
    pub(super) fn pause(&mut self, duration: Duration) -> Result<(), Halt> {
        let until = Instant::now().checked_add(duration);
        while self.wait(until)? {}
        Ok(())
    }

    /// Handles an input without waiting.
    fn take(&mut self, input: Input) -> Result<(), Halt> {
        match input {
            Input::Line(line) => self.client_line(&line),
            Input::End => {
                self.listening = false;
                Ok(())
            }
            Input::Command(number, happened) => {
                if let Some(running) = &mut self.command {
                    running.note(number, happened);
                }
                Ok(())
            }
            Input::Server(number, line) => self.server_line(number, &line),
            Input::ServerEnd(number) => {
                self.server_ended(number);
                Ok(())
            }
        }
    }

    fn client_line(&mut self, line: &[u8]) -> Result<(), Halt> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let message = match input::parse(line) {
            Ok(Value::Null) => {
                Err("Error parsing streaming input line (type=unknown, 4 chars): TypeError"
                    .to_owned())
            }
            read => read,
        };
        match message {
            Ok(message) => match message.at("type").as_str() {
                Some("user") => self.user_line(&message),
                Some("control_request") => self.control_request(&message),
                Some("control_response") => self.control_response(message),
                // Other messages change nothing here, or are unknown.
                _ => Ok(()),
            },
            Err(error) => Err(die(&error)),
        }
    }

    fn user_line(&mut self, line: &Value) -> Result<(), Halt> {
        let message = &line.at("message");
        if message.at("role") != "user" {
            let role = message.at("role").as_str().unwrap_or("undefined");
            return Err(die(&format!("Error: Expected message role 'user', got '{role}'")));
        }
        let Some(text) = prompt_text(message.at("content")) else { return Ok(()) };
        let uuid = line.at("uuid").as_str().filter(|uuid| Uuid::try_parse(uuid).is_ok());
        let uuid = uuid.map(str::to_owned);
        self.lifecycle(uuid.as_deref(), "queued")?;
        let is_context = line.at("shouldQuery") == false;
        let prompt = Prompt { text, uuid, is_context };
        if line.at("priority") == "now" && self.turn.is_some() {
            self.prompts.push_front(prompt);
            return Err(Halt::Interrupted(InterruptCause::Prompt));
        }
        self.prompts.push_back(prompt);
        Ok(())
    }

    /// Reports the state of a prompt.
    pub(super) fn lifecycle(&mut self, uuid: Option<&str>, state: &str) -> Result<(), Halt> {
        match uuid {
            Some(uuid) => self.emit(json!({
                "type": "command_lifecycle", "command_uuid": uuid, "state": state,
            })),
            None => Ok(()),
        }
    }

    /// Writes a line about this session.
    pub(super) fn emit(&mut self, mut line: Value) -> Result<(), Halt> {
        line.set("session_id", self.session.id.as_str());
        line.set("uuid", self.session.ids.uuid().to_string());
        Ok(self.out.line(&line)?)
    }
}

/// A wrong message from the client ends the process, as with Claude.
pub(super) fn die(message: &str) -> Halt {
    print::aside(message);
    Halt::Exit(1)
}

/// Tool results do not count as prompts.
fn prompt_text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let blocks = content.as_array()?;
    if !blocks.is_empty() && blocks.iter().all(|block| block.at("type") == "tool_result") {
        return None;
    }
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.at("text").as_str()).collect();
    Some(texts.join("\n"))
}
