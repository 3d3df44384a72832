//! The parser against real shells: what it reads, they read alike.

use std::process::Command;

use proptest::prelude::*;

use super::{Mention, mentions, quoted, words};

/// What the shell makes of the words, each ended by a NUL; `None` if that shell is not here. No
/// program is found but the shell's own, and nothing is written outside of the directory.
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

/// Mostly readable, so that the property is about something.
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
                    prop_assert_eq!(&read, &words, "{} reads {:?} otherwise", shell, text);
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
    let rm = ["rm".to_owned()];
    for text in [
        "rm", "r''m x", "\"rm\" x", "\\rm", "/bin/rm", "a;rm", "a|rm", "$(rm)", "`rm`", "x=rm",
        "RM x",
    ] {
        assert_eq!(mentions(text, &rm), Mention::Plain, "{text}");
    }
    for text in ["rmdir x", "farm", "ls -rm", "git status"] {
        assert_eq!(mentions(text, &rm), Mention::None, "{text}");
    }
}
