//! Finds words of git that run a program: options before the command, commands that run others,
//! configuration keys.

use super::{UNCOVERED_OPTIONS, Word, is};

/// Commands that a rule for all of git covers. Others may be aliases or separate programs.
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

/// Options before the command that do not change what it runs.
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

/// Options of `git config` that say where and how it reads or sets a key.
const CONFIG_OPTIONS: &[&str] = &[
    "--global",
    "--local",
    "--system",
    "--worktree",
    "--list",
    "-l",
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--get-color",
    "--get-colorbool",
    "--name-only",
    "--show-names",
    "--show-origin",
    "--show-scope",
    "--null",
    "-z",
    "--bool",
    "--int",
    "--bool-or-int",
    "--path",
    "--expiry-date",
    "--no-type",
    "--includes",
    "--no-includes",
    "--all",
    "--regexp",
    "--fixed-value",
    "--add",
    "--replace-all",
    "--unset",
    "--unset-all",
];

/// Options of `git config` with a value.
const CONFIG_VALUED: &[&str] = &["--type", "--default", "--value", "--url"];

/// The keys that a rule with `*` lets `git config` set. No whole sections, because what is set in one can
/// be moved to another.
pub const CONFIG_KEYS: &[&str] = &[
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "color.ui",
    "commit.gpgsign",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.quotepath",
    "fetch.prune",
    "init.defaultbranch",
    "merge.conflictstyle",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "rebase.autostash",
    "tag.gpgsign",
];

/// Whether git's words write a file or run a program beyond what the rule names.
pub(super) fn has_side_effect(words: &[Word<'_>]) -> bool {
    let mut rest = words.iter();
    let (command, is_named) = loop {
        let Some((word, covered)) = rest.next() else { return false };
        match *word {
            "-C" => {
                let Some((directory, covered)) = rest.next() else { return false };
                // Another repository, with its own configuration.
                let leaves = directory.starts_with(['/', '~']) || directory.contains("..");
                if !covered && (leaves || is_inner(directory)) {
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
    let is_operand = |word: &&Word<'_>| word.1 && !word.0.starts_with('-');
    let names_operand = rest.clone().any(|word| is_operand(&word));
    let given: Vec<&str> = rest.filter(|(_, covered)| !covered).map(|(word, _)| *word).collect();
    let own = format!("git {command}");
    let mut rows =
        UNCOVERED_OPTIONS.iter().filter(|row| row.program == "git" || row.program == own);
    rows.any(|row| given.iter().any(|word| row.options.split(' ').any(|option| is(word, option, row.valued))))
        || given.iter().any(|word| is_inner(word))
        // `ext::` and similar prefixes name the program that talks to the other side.
        || (REMOTE.contains(&command) && given.iter().any(|word| word.contains("::")))
        || (command == "config" && configures(&given, names_operand))
}

/// Whether a word names git's own directory, where hooks and settings are. File systems may ignore case.
fn is_inner(word: &str) -> bool {
    let mut names = word.split(['/', '=', ':']);
    names.any(|name| name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1"))
}

/// Whether `git config` does more than read, or set one of the keys that run nothing. Sections can be
/// renamed, and an editor can write any key. `names_operand`: the rule itself names a key or a command.
fn configures(words: &[&str], names_operand: bool) -> bool {
    let (options, operands): (Vec<&str>, Vec<&str>) =
        words.iter().copied().partition(|word| word.starts_with('-'));
    // A value in a separate word would be taken for the key.
    let is_known = |option: &&str| match option.split_once('=') {
        Some((name, _)) => CONFIG_VALUED.contains(&name),
        None => CONFIG_OPTIONS.contains(option),
    };
    if !options.iter().all(is_known) {
        return true;
    }
    let is_reading =
        |option: &&str| option.starts_with("--get") || matches!(*option, "-l" | "--list");
    let is_writing =
        |option: &&str| matches!(*option, "--add" | "--replace-all" | "--unset" | "--unset-all");
    let (is_set, keys) = match operands.as_slice() {
        ["get" | "list", ..] => return false,
        ["set" | "unset", keys @ ..] => (true, keys),
        keys => (options.iter().any(is_writing), keys),
    };
    match keys {
        [] => false,
        _ if !is_set && options.iter().any(is_reading) => false,
        // A word that is not a key is another command.
        [key] if !is_set => !names_operand && !key.contains('.'),
        [key, ..] => !CONFIG_KEYS.contains(&key.to_ascii_lowercase().as_str()),
    }
}
