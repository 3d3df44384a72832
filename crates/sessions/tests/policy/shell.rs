//! Shell commands: what must never run without asking, and what must.

use agentwire_protocol::{AgentType, ApprovalMode};
use proptest::prelude::*;

use super::{MODES, is_allowed, policy, shell_questions};

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

/// What a rule of [`TYPICAL`] allows.
const BY_RULE: &[&str] = &[
    "git status",
    " git  status ",
    "git diff HEAD~1 -- src",
    "git log --format='%h %s' -n 3",
    "npm run test",
    "npm run test -- --grep 'a b*' --x=y",
    "npm run test \"it's\"",
    "npm test",
    "cargo test --workspace -- --nocapture",
    "cargo build",
    "echo 'a # b' \"c ~ d\" 'é=1'",
    "find . -name '*.rs'",
    "rg -n 'fn [a-z]' src",
    "sort -u a.txt",
    "make",
    "python3 -m pytest tests/test_a.py::test_b",
];

/// What `askDangerous` allows.
const BY_MODE: &[&str] = &[
    "pwd",
    "ls",
    "ls -la src",
    "ls -l /srv/project/src /srv/other",
    "cat README.md",
    "cat src/../README.md",
    "head -n 5 a.txt",
    "head -20 a.txt",
    "tail -n +3 a.txt",
    "tail -f log.txt",
    "wc -l a.txt b.txt",
    "echo hello world",
    "date +%s",
    "uname -a",
    "which cargo",
    "grep -rn 'TODO' src",
    "grep -A 3 -i main src/main.rs",
    "rg -n -g '*.rs' 'fn main' src",
    "find . -type f -name '*.rs' -maxdepth 3",
    "tree -L 2 src",
    "du -sh .",
    "diff -u a b",
    "git status",
    "git status -sb",
    "git diff",
    "git diff --stat HEAD~1",
    "git diff main..dev -- src/a.rs",
    "git log --oneline -n 5",
    "git log -5 --stat",
    "git show HEAD:src/main.rs",
    "git branch -vv",
    "git rev-parse --abbrev-ref HEAD",
    "git ls-files -m",
];

#[test]
fn good_commands_run() {
    for agent in AgentType::ALL {
        let by_rule = policy(agent, ApprovalMode::Ask, TYPICAL, &[]);
        let by_mode = policy(agent, ApprovalMode::AskDangerous, &[], &[]);
        let nothing = policy(agent, ApprovalMode::Ask, &[], &[]);
        for (policy, commands) in [(&by_rule, BY_RULE), (&by_mode, BY_MODE)] {
            for command in commands {
                let questions = shell_questions(agent, command);
                let runs = questions.iter().any(|question| is_allowed(&question.ask(policy)));
                assert!(runs, "{}: {command:?} asks", agent.as_str());
                assert!(questions.iter().all(|question| !is_allowed(&question.ask(&nothing))));
            }
        }
    }
}

#[test]
fn rules_of_the_agents_own_names_are_the_same() {
    for (agent, name) in [
        (AgentType::Codex, "command_execution"),
        (AgentType::Gemini, "run_shell_command"),
        (AgentType::Claude, "Bash"),
        (AgentType::Acp, "Bash"),
    ] {
        let rule = format!("{name}(git status)");
        let policy = policy(agent, ApprovalMode::Ask, &[&rule], &[]);
        for question in shell_questions(agent, "git status") {
            assert!(is_allowed(&question.ask(&policy)), "{name}");
        }
    }
}

/// Characters that no shell acts on, quoted or not.
fn is_harmless(character: char) -> bool {
    character.is_alphanumeric() || " '\"_-./:,@%+=~*?[]#^".contains(character)
}

const PIECES: &[&str] = &[
    "git status",
    "git",
    "status",
    "npm run test",
    "cargo test",
    "echo",
    "ls",
    "cat",
    "find",
    ".",
    " ",
    " ",
    " ",
    "'",
    "\"",
    "a",
    "b*",
    "-n",
    "--",
    "=",
    "~",
    "$",
    "$(id)",
    "`",
    ";",
    "&&",
    "|",
    ">",
    "<",
    "(",
    ")",
    "{a,b}",
    "\\",
    "!",
    "#",
    "\n",
    "\t",
    "\u{a0}",
    "é",
    "/etc",
    "..",
    "-exec",
    "-c",
    "\0",
];

fn some_command() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_allowed_is_harmless_text(command in some_command(), agent in prop::sample::select(&AgentType::ALL[..])) {
        let policy = policy(agent, ApprovalMode::AskDangerous, TYPICAL, &[]);
        for question in shell_questions(agent, &command) {
            if is_allowed(&question.ask(&policy)) {
                prop_assert!(command.chars().all(is_harmless), "{:?}", command);
                let program = command.split_ascii_whitespace().next().unwrap_or_default();
                prop_assert!(program.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{:?}", command);
            }
        }
    }

    #[test]
    fn a_denied_program_never_runs(
        before in some_command(),
        after in some_command(),
        agent in prop::sample::select(&AgentType::ALL[..]),
        mode in prop::sample::select(&MODES[..]),
    ) {
        let policy = policy(agent, mode, &["Bash"], &["Bash(rm:*)"]);
        for command in [format!("{before} rm {after}"), format!("{before};rm {after}")] {
            for question in shell_questions(agent, &command) {
                prop_assert!(!is_allowed(&question.ask(&policy)), "{:?}", command);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_allowed_beside_a_denial(
        command in some_command(),
        agent in prop::sample::select(&AgentType::ALL[..]),
    ) {
        let policy = policy(agent, ApprovalMode::AutoAll, &["Bash"], &["Bash(rm:*)"]);
        for question in shell_questions(agent, &command) {
            if is_allowed(&question.ask(&policy)) {
                prop_assert!(command.chars().all(is_harmless), "{:?}", command);
            }
        }
    }

    #[test]
    fn a_denial_wins_over_its_own_permission(
        rule in prop::sample::select(TYPICAL),
        command in some_command(),
        agent in prop::sample::select(&AgentType::ALL[..]),
        mode in prop::sample::select(&MODES[..]),
    ) {
        let both = policy(agent, mode, &[rule], &[rule]);
        let one = policy(agent, ApprovalMode::Ask, &[rule], &[]);
        for question in shell_questions(agent, &command) {
            if is_allowed(&question.ask(&one)) {
                prop_assert!(!is_allowed(&question.ask(&both)), "{} {:?}", rule, command);
            }
        }
    }
}
