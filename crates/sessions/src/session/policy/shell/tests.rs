//! Compares the parser with real shells: they must read the same words.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::claude::CLAUDE;
use agentwire_dialects::describe::CallFacts;
use agentwire_protocol::{ApprovalMode, Json, SessionConfig};
use proptest::prelude::*;

use super::super::{Policy, Verdict};
use super::{CommandText, Mention, TEXT_LIMIT, quoted, words};

thread_local! {
    pub(super) static SPLIT: Cell<usize> = const { Cell::new(0) };
}

fn mentions(text: &str, denied: &[&str]) -> Mention {
    let denied: Vec<String> = denied.iter().map(|&word| word.to_owned()).collect();
    CommandText::new(text, words(text).as_deref()).mentions(&denied)
}

/// The words as the shell reads them, each ended by a NUL; `None` if that shell is not installed. The shell
/// finds no programs except its builtins, and nothing is written outside the directory.
fn shell_words(shell: &str, text: &str) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ab"), "").unwrap();
    let output = Command::new(shell)
        .arg("-c")
        .arg(format!("printf '%s\\0' {text}"))
        .current_dir(directory.path())
        .env_clear()
        .env("PATH", directory.path())
        .env("HOME", "/home-of-nobody")
        .output()
        .ok()?;
    assert!(output.status.success(), "{shell} fails on {text:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

const PIECES: &[&str] = &[
    "a", "b", "ab", " ", " ", " ", "'", "'", "\"", "\"", "-", "--", "=", "~", "~b", "/", ".", "..",
    ":", ",", "@", "%", "+", "*", "?", "[ab]", "#", "^", "$", "$a", "${a}", "$(", ")", "`", ";",
    "&", "|", "<", ">", "{a,b}", "\\", "!", "\n", "\t", "\r", "\u{a0}", "é", "\u{200b}", "$'",
    "\u{2028}", "=a",
];

fn some_text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..14);
    pieces.prop_map(|pieces| format!("a {}", pieces.concat()))
}

/// Mostly parsable text, so that the property tests something.
fn tame_text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..25]), 0..14);
    pieces.prop_map(|pieces| format!("a {}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn shells_read_the_same_words(text in prop_oneof![some_text(), tame_text()]) {
        if let Some(words) = words(&text) {
            for shell in ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh"] {
                if let Some(read) = shell_words(shell, &text) {
                    prop_assert_eq!(&read, &words, "{} reads {:?} differently", shell, text);
                }
            }
        }
    }

    #[test]
    fn what_is_read_is_quoted_and_read_again(text in tame_text()) {
        if let Some(read) = words(&text) {
            prop_assert_eq!(words(&quoted(&read)), Some(read));
        }
    }

    #[test]
    fn any_text_is_read_or_not(text in any::<String>()) {
        if let Some(read) = words(&text) {
            prop_assert!(!read.is_empty());
        }
    }
}

#[test]
fn a_denied_word_is_found_in_any_quotes() {
    for text in [
        "rm", "r''m x", "\"rm\" x", "\\rm", "/bin/rm", "a;rm", "a|rm", "$(rm)", "`rm`", "x=rm",
        "RM x",
    ] {
        assert_eq!(mentions(text, &["rm"]), Mention::Plain, "{text}");
    }
    for text in ["rmdir x", "farm", "ls -rm", "ls -lrm", "git status", "docker run --rm x"] {
        assert_eq!(mentions(text, &["rm"]), Mention::None, "{text}");
    }
}

#[test]
fn a_denied_word_that_is_hidden_is_possible() {
    for text in [
        "env -Srm x",
        "env -iSrm x",
        "script -qcrm",
        "su -c'rm x'",
        "perl -e 1",
        "python3 -c pass",
        "node -r x -e 1",
        "sed 1erm x",
        "sed s/a/b/e x",
        "ssh host '/bin/r?'",
        "sh -c '/bin/[r]m x'",
    ] {
        assert_eq!(mentions(text, &["rm"]), Mention::Possible, "{text}");
    }
    for text in
        ["python3 -m pytest -c x", "node a.js -e x", "sed -i s/a/b/ x", "ssh host 'ls *.txt'"]
    {
        assert_eq!(mentions(text, &["rm"]), Mention::None, "{text}");
    }
    assert_eq!(mentions("git-push x", &["git", "push"]), Mention::Possible);
    assert_eq!(mentions("pip3 install x", &["pip", "install"]), Mention::Possible);
    assert_eq!(mentions("python3 -mpip install x", &["pip", "install"]), Mention::Possible);
}

#[test]
fn a_command_is_split_once_for_all_rules() {
    let config = SessionConfig {
        working_directory: Some("/srv/project".to_owned()),
        approval_mode: Some(ApprovalMode::AutoAll),
        blocked_tools: Some((0..60).map(|n| format!("Bash(program{n} x:*)")).collect()),
        ..SessionConfig::default()
    };
    let policy = Policy::new(CLAUDE.tools(), &config, None).unwrap();
    let decide = |command: &str| {
        let input = Json::of(&serde_json::json!({ "command": command }));
        let facts =
            CallFacts { tool_name: Some("Bash"), input: Some(&input), ..CallFacts::default() };
        let before = SPLIT.get();
        let verdict = policy.decide(&CLAUDE.tools().describe(&facts), &Path::to_path_buf);
        (verdict, SPLIT.get() - before)
    };
    let text = "a b ".repeat(TEXT_LIMIT / 4);
    let (verdict, split) = decide(&text);
    assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
    assert!(split < text.len() + 60 * 40, "{split} bytes are split for {} bytes", text.len());
    let (verdict, split) = decide(&format!("{text}more"));
    assert_eq!(verdict, Verdict::Ask);
    assert_eq!(split, 0, "a text that is too long is not split");
}
