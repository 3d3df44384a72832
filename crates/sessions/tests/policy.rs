//! The approval policy: its documents, its corpora, its laws.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "policy/documents.rs"]
mod documents;
#[path = "policy/kept.rs"]
mod kept;
#[path = "policy/own.rs"]
mod own;
#[path = "policy/paths.rs"]
mod paths;
#[path = "policy/raw.rs"]
mod raw;
#[path = "policy/reading.rs"]
mod reading;
#[path = "policy/shell.rs"]
mod shell;
#[path = "policy/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};

use agentwire_dialects::describe::{AgentTools, CallFacts};
use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{AgentType, ApprovalMode, GatewayError, Json, SessionConfig};
use agentwire_sessions::session::policy::{Always, Disk, Policy, Screening, Verdict};
use serde_json::{Value, json};

const WORK: &str = "/srv/project";
const HOME: &str = "/home/user";
const MODES: [ApprovalMode; 4] =
    [ApprovalMode::Ask, ApprovalMode::AskDangerous, ApprovalMode::AutoEdit, ApprovalMode::AutoAll];

fn no_links(path: &Path) -> PathBuf {
    path.to_path_buf()
}

fn config(mode: ApprovalMode, allowed: &[&str], blocked: &[&str]) -> SessionConfig {
    let rules = |rules: &[&str]| Some(rules.iter().map(|&rule| rule.to_owned()).collect());
    SessionConfig {
        working_directory: Some(WORK.to_owned()),
        additional_directories: Some(vec!["../other".to_owned()]),
        approval_mode: Some(mode),
        allowed_tools: rules(allowed),
        blocked_tools: rules(blocked),
        ..SessionConfig::default()
    }
}

fn policy(agent: AgentType, mode: ApprovalMode, allowed: &[&str], blocked: &[&str]) -> Judge {
    let config = config(mode, allowed, blocked);
    Judge::new(agent, &config, Some(Path::new(HOME))).expect("rules that can be understood")
}

fn tools(agent: AgentType) -> &'static AgentTools {
    agentwire_dialects::driver(agent, None).expect("a driver").tools()
}

/// A policy, and the dialect that describes calls to it.
struct Judge {
    tools: &'static AgentTools,
    policy: Policy,
}

impl Judge {
    fn new(
        agent: AgentType,
        config: &SessionConfig,
        home: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        let tools = tools(agent);
        Ok(Self { tools, policy: Policy::new(tools, config, home)? })
    }

    fn guarding(self, own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { policy: self.policy.guarding(own), ..self }
    }

    fn decide(&self, facts: &CallFacts<'_>, disk: &dyn Disk) -> Verdict {
        self.policy.decide(&self.tools.describe(facts), disk)
    }

    fn screen(&self, facts: &CallFacts<'_>, disk: &dyn Disk) -> Screening {
        self.policy.screen(&self.tools.describe(facts), disk)
    }

    fn remember(&mut self, facts: &CallFacts<'_>, allow: bool, disk: &dyn Disk) -> String {
        self.policy.remember(&self.tools.describe(facts), allow, disk)
    }

    fn always(&self, facts: &CallFacts<'_>, disk: &dyn Disk) -> Always {
        self.policy.always(&self.tools.describe(facts), disk)
    }
}

/// A call of a tool with this input.
struct Question {
    tool: Option<String>,
    kind: Option<ToolKind>,
    input: Option<Json<'static>>,
    title: Option<String>,
    server: Option<String>,
}

impl Question {
    fn new(tool: &str, kind: Option<ToolKind>, input: &Value) -> Self {
        let (tool, input) = (Some(tool.to_owned()), Some(Json::of(input)));
        Self { tool, kind, input, title: None, server: None }
    }

    fn asked(&self) -> CallFacts<'_> {
        CallFacts {
            tool_name: self.tool.as_deref(),
            kind: self.kind,
            input: self.input.as_ref(),
            title: self.title.as_deref(),
            server: self.server.as_deref(),
            ..CallFacts::default()
        }
    }

    fn ask(&self, policy: &Judge) -> Verdict {
        policy.decide(&self.asked(), &no_links)
    }
}

/// A shell command in every form in which an agent asks for one.
fn shell_questions(agent: AgentType, command: &str) -> Vec<Question> {
    let plain = json!({ "command": command });
    let execute = Some(ToolKind::Execute);
    match agent {
        AgentType::Claude | AgentType::Demo => {
            let more = json!({ "command": command, "description": "ls", "timeout": 5 });
            vec![Question::new("Bash", None, &plain), Question::new("Bash", execute, &more)]
        }
        AgentType::Codex => {
            let list = json!({ "command": ["bash", "-lc", command], "cwd": WORK });
            let text = json!({ "kind": "command", "command": command, "cwd": WORK,
                "commandActions": [{ "type": "listFiles", "command": "ls" }] });
            let mut ways = vec![list, text];
            if !command.contains('\'') {
                ways.push(json!({ "command": format!("/bin/bash -lc '{command}'") }));
            }
            ways.iter().map(|input| Question::new("command_execution", execute, input)).collect()
        }
        AgentType::Gemini => {
            let shown = json!({ "toolCallId": "run_shell_command__run_shell_command_1_0",
                "status": "pending", "title": command, "locations": [], "kind": "execute",
                "content": [{ "type": "content", "content": { "type": "text",
                    "text": format!("[current working directory {WORK}] (Say hi)") } }] });
            let tool = "run_shell_command";
            vec![Question::new(tool, execute, &plain), Question::new(tool, execute, &shown)]
        }
        AgentType::Acp => {
            let list: Vec<&str> = command.split(' ').collect();
            vec![
                Question::new("Terminal", execute, &plain),
                Question::new("x", execute, &json!({ "command": list })),
                Question::new("x", execute, &json!({ "command": ["bash", "-lc", command] })),
            ]
        }
    }
}

fn is_allowed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Allow(_))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow(_) => "allow",
        Verdict::Deny(_) => "deny",
        Verdict::Ask => "ask",
    }
}
