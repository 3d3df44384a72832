//! What of git's words runs a program: options before the command, commands that run others, keys of
//! the configuration.

use super::super::git;
use super::{ESCAPES, Word, is};

/// Commands that a rule for all of git covers. Others may be aliases or programs of their own.
const COMMANDS: &[&str] = &[
    "add",
    "am",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "prune",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "version",
    "whatchanged",
    "worktree",
];

/// Commands that take the address of another repository.
const REMOTE: &[&str] =
    &["archive", "clone", "config", "fetch", "ls-remote", "pull", "push", "remote", "submodule"];

/// Options before the command that change nothing of what it runs.
const HARMLESS: &[&str] = &[
    "-P",
    "--no-pager",
    "-p",
    "--paginate",
    "--no-optional-locks",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-advice",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--version",
    "-v",
    "--help",
    "-h",
];

/// Whether git's words write a file or run a program beyond what the rule names.
pub(super) fn escapes(words: &[Word<'_>]) -> bool {
    let mut rest = words.iter();
    let (command, is_named) = loop {
        let Some((word, covered)) = rest.next() else { return false };
        match *word {
            "-C" => {
                let Some((directory, covered)) = rest.next() else { return false };
                // Another repository, with a configuration of its own.
                let leaves = directory.starts_with(['/', '~']) || directory.contains("..");
                if !covered && leaves {
                    return true;
                }
            }
            option if option.starts_with('-') => {
                if !covered && !HARMLESS.contains(&option) {
                    return true;
                }
                if matches!(option, "-c" | "--git-dir" | "--work-tree" | "--namespace") {
                    rest.next();
                }
            }
            command => break (command, *covered),
        }
    };
    if !is_named && !COMMANDS.contains(&command) {
        return true;
    }
    let given: Vec<&str> = rest.filter(|(_, covered)| !covered).map(|(word, _)| *word).collect();
    let own = format!("git {command}");
    let mut rows = ESCAPES.iter().filter(|row| row.program == "git" || row.program == own);
    rows.any(|row| given.iter().any(|word| row.options.iter().any(|option| is(word, option, row.valued))))
        // `ext::` and its like name the program that speaks to the other side.
        || (REMOTE.contains(&command) && given.iter().any(|word| word.contains("::")))
        || (command == "config" && configures(&given))
}

/// Whether `git config` sets a key by which git may run a program.
fn configures(words: &[&str]) -> bool {
    let is_reading = |word: &str| word.starts_with("--get") || matches!(word, "-l" | "--list");
    let mut operands = words.iter().filter(|word| !word.starts_with('-')).copied().peekable();
    let reads = matches!(operands.peek(), Some(&("get" | "list")));
    if reads || words.iter().any(|word| is_reading(word)) {
        return false;
    }
    if operands.peek() == Some(&"edit") {
        return true;
    }
    operands.next_if(|word| matches!(*word, "set" | "unset"));
    match (operands.next(), operands.next()) {
        (Some(key), Some(_)) => {
            let key = key.to_ascii_lowercase();
            let (section, name) = (key.split('.').next(), key.rsplit('.').next());
            let (Some(section), Some(name)) = (section, name) else { return true };
            !git::is_harmless(section, name) || name == "hookspath"
        }
        _ => false,
    }
}
