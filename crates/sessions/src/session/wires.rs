//! Runs one corpus through every wire: the agent's line goes in, the verdict and the line on its stdin come
//! out. The same call gets the same verdict, whichever agent asks for it.

mod breaches;
mod lines;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::{AgentDialect, Setup};
use agentwire_dialects::tape::Tape;
use agentwire_protocol::event::{RequestKind, RequestOutcome, SettledBy};
use agentwire_protocol::{ApprovalMode, Command, SessionConfig, Settlement};
use serde_json::{Value, json};

use super::callers::NOBODY;
use super::core::{Advisor, Core, Effect};
use super::hooks::Hooks;
use super::journal::Journal;
use super::policy::{Policy, Screening, Verdict};
use super::requests::asked;
use super::screening::screening;
use super::state::DerivedState;
use lines::{WIRES, Wire, permission};

const WORK: &str = "/srv/project";

/// What an agent does, independent of any agent's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolAction<'r> {
    Run(&'r str),
    Read(&'r str),
    Search(&'r str),
    Write(&'r str),
    Edit(&'r str),
    Delete(&'r str),
    Move(&'r str),
    Fetch(&'r str),
    Mcp(&'r str, &'r str),
    Think,
    Spawn,
    ChangeMode,
    AskUser,
    /// An unknown tool, by its name.
    Other(&'r str),
}

/// What wires cannot express, or not with the same meaning: the wire, the tool of a rule's row (or the rule
/// and the tool) or the class of a mode's row, and why. Every other row gets the same verdict everywhere.
const EXCEPT: &[(&str, &str, &str)] = &[
    ("claude", "delete", "it deletes with commands"),
    ("claude", "move", "it moves with commands"),
    ("codex", "Read", "it reads with commands, and looks at images without asking"),
    ("codex", "Grep", "it searches with commands"),
    ("codex", "WebFetch", "it searches the web without asking"),
    ("codex", "AskUserQuestion", "its questions are not permissions"),
    ("codex", "NewTool", "its tools are a fixed list"),
    ("codex", "Write Edit", "one tool writes and edits, and the rule is for both"),
    ("codex", "read", "it reads with commands, and looks at images without asking"),
    ("codex", "search", "it searches with commands"),
    ("codex", "network", "it searches the web without asking"),
    ("codex", "think", "it plans without asking"),
    ("codex", "agent", "it starts subagents without asking"),
    ("codex", "mode", "the client sets its modes"),
    ("codex", "question", "its questions are not permissions"),
    ("gemini", "WebFetch", "it reports no address, so a rule with a host asks"),
    ("gemini", "Write Edit", "it uses other names, and the rule is for the class"),
    ("gemini", "delete", "it deletes with commands"),
    ("gemini", "move", "it moves with commands"),
    ("acp", "WebFetch", "the host of its fetch calls is not read"),
    ("acp", "Write Edit", "calls are known by their kinds, and the rule is for the class"),
    ("acp", "AskUserQuestion", "its questions are not permissions"),
    ("acp", "question", "its questions are not permissions"),
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was allowed, and the agent got that answer.
    Allowed,
    /// It was denied, and the agent got that answer.
    Denied,
    /// A client is asked, and the agent got no answer.
    Asked,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allow",
            Self::Denied => "deny",
            Self::Asked => "ask",
        })
    }
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

/// A session without a process: it does what an actor does with the agent's lines, and nothing else.
struct Session {
    tape: Tape,
    core: Core,
    policy: Policy,
}

fn no_links(path: &Path) -> PathBuf {
    path.to_path_buf()
}

impl Session {
    fn new(dialect: &'static dyn AgentDialect, policy: &Policy) -> Self {
        let record = json!({
            "summary": {
                "id": "s", "agentType": "acp", "state": "idle", "createdAt": "", "updatedAt": "",
                "lastSeq": 0, "turns": 0, "openRequests": 0,
                "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
            },
            "owner": null, "config": {}, "open": {},
        });
        let record = serde_json::from_value(record).expect("a record");
        let journal = Journal::new("s".into(), 0);
        let state = DerivedState::new(record, dialect.tools(), false);
        let core = Core::new(journal, state, Hooks::default(), None, Some(Advisor(dialect)))
            .judging(policy.clone(), false);
        let tape = Tape::new(dialect, &Setup::default());
        Self { tape, core, policy: policy.clone() }
    }

    fn hear(&mut self, lines: &[Value]) {
        for line in lines {
            self.tape.feed(format!("{line}\n").as_bytes(), &mut self.core);
        }
    }

    fn written(&mut self) -> Vec<Value> {
        let effects = std::mem::take(&mut self.core.effects).into_iter();
        let lines = effects.filter_map(|effect| match effect {
            Effect::Write(line) => Some(serde_json::from_str(&line).expect("a line is valid JSON")),
            _ => None,
        });
        lines.collect()
    }

    /// The agent asks; the verdict is made and goes to its stdin.
    fn ask(&mut self, wire: &Wire, lines: &[Value]) -> Outcome {
        self.hear(lines);
        self.written();
        let raised = std::mem::take(&mut self.core.raised);
        let [raised] = raised.as_slice() else { panic!("{}: {raised:?} of {lines:?}", wire.name) };
        let verdict = match raised.kind {
            RequestKind::Permission => self.policy.decide(&asked(raised), &no_links),
            _ => Verdict::Ask,
        };
        let id = raised.id.as_str();
        let settlement = match verdict {
            Verdict::Allow(_) => Settlement::allow(id),
            Verdict::Deny(_) => Settlement::deny(id, "denied"),
            Verdict::Ask => return Outcome::Asked,
        };
        let settled = self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core);
        settled.unwrap_or_else(|error| panic!("{}: {error:?}", wire.name));
        let written = self.written();
        let answers = written.iter().map(|line| (wire.answer)(line));
        let outcome =
            if matches!(verdict, Verdict::Allow(_)) { Outcome::Allowed } else { Outcome::Denied };
        let settled_as = match outcome {
            Outcome::Allowed => RequestOutcome::Allowed,
            Outcome::Denied | Outcome::Asked => RequestOutcome::Denied,
        };
        self.core.settled(raised, settled_as, (SettledBy::Policy, None), None, None);
        let expected = vec![outcome == Outcome::Allowed];
        assert_eq!(answers.collect::<Vec<_>>(), expected, "{}: {written:?}", wire.name);
        outcome
    }
}

/// The result of each way in which the agent may ask for it. All ways must have the same result; `None` if
/// the agent cannot ask for it.
fn outcome(wire: &Wire, policy: &Policy, action: ToolAction<'_>) -> Option<Outcome> {
    let ways = (wire.asks)(action);
    let outcomes = ways.iter().map(|lines| Session::new(wire.dialect, policy).ask(wire, lines));
    let mut outcomes: Vec<Outcome> = outcomes.collect();
    outcomes.dedup();
    assert!(
        outcomes.len() <= 1,
        "{}: {action:?} is judged in {} ways: {outcomes:?}",
        wire.name,
        outcomes.len()
    );
    outcomes.pop()
}

fn policy(wire: &Wire, mode: ApprovalMode, allowed: &[&str], blocked: &[&str]) -> Policy {
    let config = config(mode, allowed, blocked);
    let home = Some(Path::new("/home/user"));
    Policy::new(wire.dialect.tools(), &config, home).expect("valid rules")
}

/// Commands under one rule each: tricks that must not pass, and ordinary work that must.
#[test]
fn every_command_is_judged_alike_over_every_wire() {
    const COMMANDS: &str = include_str!("../../tests/commands.txt");
    let (mut wrong, mut count, mut head) = (Vec::new(), 0, "");
    for line in COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with("##")) {
        let (sign, text) = line.split_once(' ').expect("a sign and a text");
        if sign == "@" {
            head = text;
            continue;
        }
        assert!(matches!(sign, "+" | "-"), "no such sign: {sign}");
        let all = WIRES.iter().map(|wire| {
            let policy = match head.split_once(' ') {
                Some(("allow", rule)) => policy(wire, ApprovalMode::Ask, &[rule], &[]),
                Some(("deny", rule)) => policy(wire, ApprovalMode::AutoAll, &["Bash"], &[rule]),
                _ => policy(wire, ApprovalMode::AskDangerous, &[], &[]),
            };
            outcome(wire, &policy, ToolAction::Run(text)).expect("every agent runs commands")
        });
        let all: Vec<Outcome> = all.collect();
        count += all.len();
        let is_alike = all.windows(2).all(|two| two[0] == two[1]);
        let is_right = all.iter().all(|outcome| (*outcome == Outcome::Allowed) == (sign == "+"));
        if !is_alike || !is_right {
            wrong.push(format!("{head}: {line}: {all:?}"));
        }
    }
    assert!(count > 2000, "{count} rows are run");
    assert!(wrong.is_empty(), "{} are judged differently:\n{}", wrong.len(), wrong.join("\n"));
}

/// Shell text that no typical rule and no mode except `autoAll` may let run without asking.
#[test]
fn no_bypass_runs_over_any_wire() {
    const TYPICAL: &[&str] = &[
        "Bash(git status)",
        "Bash(git diff:*)",
        "Bash(git log *)",
        "Bash(npm run test:*)",
        "Bash(npm test)",
        "Bash(cargo test *)",
        "Bash(cargo build)",
        "Bash(echo:*)",
        "Bash(find:*)",
        "Bash(rg *)",
        "Bash(sort:*)",
        "Bash(make)",
        "Bash(python3 -m pytest:*)",
    ];
    let text = include_str!("../../tests/bypasses.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    for wire in WIRES {
        let with_rules = policy(wire, ApprovalMode::AskDangerous, TYPICAL, &[]);
        let mode_alone = policy(wire, ApprovalMode::AskDangerous, &[], &[]);
        for line in lines.clone() {
            let (policy, command) = match line.split_once(' ') {
                // A rule with `*` would grant it to the agent.
                Some(("mode", command)) => (&mode_alone, command.to_owned()),
                Some(("json", json)) => {
                    (&with_rules, serde_json::from_str(json).expect("a JSON string"))
                }
                // From Codex, it is the wrapped command itself.
                Some(("wrapper", _)) if wire.name == "codex" => continue,
                Some(("wrapper", command)) => (&with_rules, command.to_owned()),
                _ => (&with_rules, line.to_owned()),
            };
            let outcome = outcome(wire, policy, ToolAction::Run(&command));
            assert_eq!(outcome, Some(Outcome::Asked), "{}: {command:?}", wire.name);
        }
    }
}

/// A row of a table in docs/policy.md.
struct Row {
    /// The names by which a wire may be excepted.
    names: Vec<String>,
    action: ToolAction<'static>,
    policy: Box<dyn Fn(&Wire) -> Policy>,
    expected: &'static str,
    shown: String,
}

/// The cells of each row of the table with this head.
fn cells(head: &str) -> Vec<Vec<&'static str>> {
    const DOCUMENT: &str = include_str!("../../../../docs/policy.md");
    let lines = DOCUMENT.lines().skip_while(|line| *line != head).skip(2);
    let rows = lines.take_while(|line| line.starts_with("| "));
    let cell = |cell: &'static str| {
        let cell = cell.trim();
        // Spaces within the backticks are part of the example.
        cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell)
    };
    let rows: Vec<Vec<&str>> =
        rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect();
    assert!(!rows.is_empty(), "there is no table {head}");
    rows
}

fn rules() -> Vec<Row> {
    let rows = cells("| list | rule | tool | asked | verdict |").into_iter().map(|cells| {
        let [list, rule, tool, asked, expected] = *cells else { panic!("{cells:?}") };
        let action = match (tool, tool.strip_prefix("mcp__").and_then(|it| it.split_once("__"))) {
            (_, Some((server, tool))) => ToolAction::Mcp(server, tool),
            ("Bash", _) => ToolAction::Run(asked),
            ("Read", _) => ToolAction::Read(asked),
            ("Write", _) => ToolAction::Write(asked),
            ("Edit", _) => ToolAction::Edit(asked),
            ("Grep", _) => ToolAction::Search(asked),
            ("WebFetch", _) => ToolAction::Fetch(asked),
            ("AskUserQuestion", _) => ToolAction::AskUser,
            (name, _) => ToolAction::Other(name),
        };
        let policy = move |wire: &Wire| match list {
            "allowed" => policy(wire, ApprovalMode::Ask, &[rule], &[]),
            "blocked" => policy(wire, ApprovalMode::AutoAll, &["Bash"], &[rule]),
            _ => panic!("no such list: {list}"),
        };
        let names = vec![tool.to_owned(), format!("{rule} {tool}")];
        Row { names, action, policy: Box::new(policy), expected, shown: cells.join(" | ") }
    });
    rows.collect()
}

fn modes() -> Vec<Row> {
    use ApprovalMode::{Ask, AskDangerous, AutoAll, AutoEdit};
    let classes = cells("| class | ask | askDangerous | autoEdit | autoAll |");
    assert_eq!(classes.len(), 13, "every class has a row");
    let rows = classes.into_iter().flat_map(|cells| {
        let action = match cells[0] {
            "think" => ToolAction::Think,
            "read" => ToolAction::Read("/srv/project/a"),
            "search" => ToolAction::Search("/srv/project"),
            "edit" => ToolAction::Edit("/srv/project/a"),
            "shell" => ToolAction::Run("make"),
            "delete" => ToolAction::Delete("/srv/project/a"),
            "move" => ToolAction::Move("/srv/project/a"),
            "network" => ToolAction::Fetch("https://example.org/"),
            "agent" => ToolAction::Spawn,
            "mcp" => ToolAction::Mcp("a", "b"),
            "mode" => ToolAction::ChangeMode,
            "unknown" => ToolAction::Other("Unheard"),
            "question" => ToolAction::AskUser,
            class => panic!("no such class: {class}"),
        };
        let class = cells[0];
        let row = move |(mode, expected): (ApprovalMode, &'static str)| Row {
            names: vec![class.to_owned()],
            action,
            policy: Box::new(move |wire| policy(wire, mode, &[], &[])),
            expected,
            shown: format!("{class} in {mode:?}"),
        };
        let expected = cells.into_iter().skip(1);
        [Ask, AskDangerous, AutoEdit, AutoAll].into_iter().zip(expected).map(row)
    });
    rows.collect()
}

#[test]
fn the_tables_of_the_document_hold_over_every_wire() {
    let mut needed = BTreeSet::new();
    for row in rules().into_iter().chain(modes()) {
        for wire in WIRES {
            let policy = (row.policy)(wire);
            let outcome = outcome(wire, &policy, row.action).map(|outcome| outcome.to_string());
            let is_right = outcome.as_deref() == Some(row.expected);
            let is_excepted = |(name, what, _): &(&str, &str, &str)| {
                *name == wire.name && row.names.iter().any(|it| it == what)
            };
            if let Some((name, what, _)) = EXCEPT.iter().find(|it| is_excepted(it)) {
                if !is_right {
                    needed.insert((*name, *what));
                }
                continue;
            }
            assert!(is_right, "{}: {}: {outcome:?}", wire.name, row.shown);
            // What a rule denies is also stopped if it runs without asking.
            for lines in (wire.runs)(row.action) {
                let mut session = Session::new(wire.dialect, &policy);
                session.hear(&lines);
                let is_screened = session.core.judged.iter().any(|judged| {
                    let said = screening(&policy, &session.core.state, judged, &no_links);
                    matches!(said, Screening::Deny(_))
                });
                let is_stopped = session.core.breach.is_some() || is_screened;
                assert_eq!(is_stopped, row.expected == "deny", "{}: {}", wire.name, row.shown);
            }
        }
    }
    let all: BTreeSet<_> = EXCEPT.iter().map(|(wire, what, _)| (*wire, *what)).collect();
    assert_eq!(needed, all, "unneeded exceptions");
}

/// An ACP call that says more than its kind does asks. What agents really send in addition does not.
#[test]
fn what_an_acp_call_says_beside_its_input_counts() {
    const IN: &str = "/srv/project/a";
    let input = json!({ "file_path": IN, "old_string": "a", "new_string": "b" });
    let raw = |more: Value| {
        let mut raw = input.clone();
        raw.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        json!({ "rawInput": raw })
    };
    let shown = |uri: &str| {
        json!({ "content": [{ "type": "content",
        "content": { "type": "resource_link", "uri": uri, "name": "x" } }] })
    };
    let rows = [
        (Outcome::Allowed, json!({})),
        (Outcome::Allowed, json!({ "_meta": { "x": { "command": "id" } }, "rawOutput": "x" })),
        (Outcome::Allowed, json!({ "locations": [{ "path": IN, "line": 1 }] })),
        (
            Outcome::Allowed,
            json!({ "content": [{ "type": "diff", "path": IN, "oldText": "a", "newText": "b" }] }),
        ),
        (Outcome::Allowed, json!({ "timestamp": 1, "toolName": "Edit", "isAsync": false })),
        (Outcome::Allowed, raw(json!({ "mode": "overwrite" }))),
        (Outcome::Allowed, raw(json!({ "chmod": null }))),
        (Outcome::Allowed, shown("https://example.org/x")),
        (Outcome::Asked, json!({ "command": "id" })),
        (Outcome::Asked, json!({ "delete": true })),
        (Outcome::Asked, json!({ "target": "/etc/x" })),
        (Outcome::Asked, json!({ "x": { "y": "/etc/x" } })),
        (Outcome::Asked, json!({ "operation": "chmod" })),
        (
            Outcome::Asked,
            json!({ "locations": [{ "path": "vscode-remote://ssh-remote+host/etc/x" }] }),
        ),
        (Outcome::Asked, json!({ "locations": [{ "path": "untitled:x" }] })),
        (
            Outcome::Asked,
            json!({ "content": [{ "type": "diff", "path": "vscode-remote://h/x", "newText": "b" }] }),
        ),
        (Outcome::Asked, shown("vscode-remote://host/etc/x")),
        (
            Outcome::Asked,
            json!({ "rawInput": { "file_path": "vscode-remote://host/etc/x", "content": "" } }),
        ),
        (Outcome::Asked, json!({ "rawInput": { "path": "sftp:x", "content": "" } })),
        (Outcome::Asked, raw(json!({ "chmod": "755" }))),
        (Outcome::Asked, raw(json!({ "operation": "chmod" }))),
        (Outcome::Asked, raw(json!({ "mode": "0755" }))),
        (Outcome::Asked, raw(json!({ "mode": 493 }))),
        (Outcome::Asked, raw(json!({ "mode": "u+x" }))),
        (Outcome::Asked, raw(json!({ "permissions": "rwxr-xr-x" }))),
    ];
    let wire = WIRES.iter().find(|wire| wire.name == "acp").expect("a wire");
    let mut wrong = Vec::new();
    for (expected, more) in rows {
        let mut call = json!({ "toolCallId": "t", "name": "Edit", "title": "Edit", "kind": "edit",
            "status": "pending", "rawInput": input });
        call.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        let edits = policy(wire, ApprovalMode::AutoEdit, &[], &[]);
        let rule = policy(wire, ApprovalMode::Ask, &["Edit(//srv/project/**)"], &[]);
        for policy in [edits, rule] {
            let outcome = Session::new(wire.dialect, &policy).ask(wire, &[permission(&call)]);
            if outcome != expected {
                wrong.push(format!("{outcome}: {more}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are judged differently:\n{}", wrong.len(), wrong.join("\n"));
}
