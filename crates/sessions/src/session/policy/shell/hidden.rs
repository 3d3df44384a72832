//! Commands that run a program whose name is not among their words: code on the command line, and names
//! glued to an option.

use super::super::paths::{fits, without_sets};
use super::super::{readonly, side_effects};
use super::base;

/// Programs that take code on the command line, with the letters and long options that precede it.
const INTERPRETERS: &[(&str, &str, &[&str])] = &[
    ("python", "c", &[]),
    ("pypy", "c", &[]),
    ("perl", "eE", &[]),
    ("ruby", "e", &[]),
    ("node", "ep", &["--eval", "--print"]),
    ("nodejs", "ep", &["--eval", "--print"]),
    ("bun", "ep", &["--eval", "--print"]),
    ("deno", "", &["eval"]),
    ("php", "rBRE", &["--run", "--process-begin", "--process-code", "--process-end"]),
    ("lua", "e", &[]),
    ("luajit", "e", &[]),
    ("tclsh", "c", &[]),
    ("osascript", "e", &[]),
    ("R", "e", &[]),
    ("Rscript", "e", &[]),
    ("julia", "eE", &["--eval", "--print"]),
    ("guile", "c", &[]),
    ("racket", "e", &["--eval"]),
    ("ghc", "e", &[]),
    ("runghc", "e", &[]),
    ("scala", "e", &[]),
    ("swift", "e", &[]),
    ("elixir", "e", &["--eval", "--rpc-eval"]),
    ("erl", "", &["-eval"]),
    ("groovy", "e", &[]),
    ("gdb", "", &["-ex", "-iex", "--ex", "--eval-command", "-eval-command"]),
    ("lldb", "o", &["--one-line"]),
    ("vi", "cS", &["--cmd"]),
    ("vim", "cS", &["--cmd"]),
    ("nvim", "cS", &["--cmd"]),
    ("ex", "c", &[]),
    ("expect", "c", &[]),
    ("gnuplot", "e", &[]),
    ("nu", "c", &["--commands"]),
    ("ocaml", "e", &[]),
    ("octave", "", &["--eval"]),
    ("powershell", "cCeE", &[]),
    ("pwsh", "cCeE", &[]),
    ("sbcl", "", &["--eval"]),
    ("xonsh", "c", &[]),
    ("elvish", "c", &[]),
    ("rc", "c", &[]),
    ("es", "c", &[]),
    ("ion", "c", &[]),
    ("mksh", "c", &[]),
    ("yash", "c", &[]),
    ("osh", "c", &[]),
    ("ysh", "c", &[]),
    ("ipython", "c", &[]),
    ("clojure", "e", &["--eval"]),
    ("clj", "e", &["--eval"]),
    ("bb", "e", &["--eval"]),
    ("raku", "e", &[]),
    ("jruby", "e", &[]),
    ("rake", "eEp", &["--execute", "--execute-print", "--execute-continue"]),
    ("tsx", "ep", &["--eval", "--print"]),
    ("ts-node", "ep", &["--eval", "--print"]),
    ("kotlin", "e", &["-expression"]),
    ("kotlinc", "e", &["-expression"]),
    ("crystal", "", &["eval"]),
    ("nim", "", &["--eval"]),
    ("janet", "eE", &[]),
    ("fennel", "e", &["--eval"]),
    ("swipl", "gt", &[]),
    ("mongo", "", &["--eval"]),
    ("mongosh", "", &["--eval"]),
    ("view", "cS", &["--cmd"]),
    ("gvim", "cS", &["--cmd"]),
    ("emacsclient", "e", &["--eval"]),
    ("emacs", "f", &["--eval", "-eval", "--execute", "--funcall"]),
];

/// Letters of these programs that take the next word as their value.
const VALUED: &str = "CDEIKMQSTWXdlmrtxz";

/// Programs whose letters never take another program's name.
const PLAIN: &[&str] = &["chmod", "cp", "mkdir", "mv", "ps", "touch", "tr"];

/// More programs in one command are not examined: the command then counts as running code.
const PROGRAM_LIMIT: usize = 16;

/// How a command that is parsed exactly may run a program that it does not name.
#[derive(Debug)]
pub(super) struct HiddenPrograms {
    /// It runs code on its command line, in another language or in a sed script.
    pub(super) runs_code: bool,
    /// It passes words to another program or shell.
    wraps: bool,
    /// Its letters are never another program's name.
    is_plain: bool,
}

impl HiddenPrograms {
    pub(super) fn of(words: &[String]) -> Self {
        let first = words.first().map_or("", |word| base(word));
        Self {
            runs_code: runs_code(words),
            wraps: words.iter().any(|word| side_effects::is_wrapper(base(word))),
            is_plain: PLAIN.contains(&first) || readonly::never_runs(first),
        }
    }

    /// Whether a token may be the name of that program: glued to an option (`env -Srm`), with a version
    /// (`pip3`), or as a pattern that a second shell expands.
    pub(super) fn resembles(&self, token: &str, program: &str) -> bool {
        (!self.is_plain && is_glued(token, program))
            || unversioned(base(token)).eq_ignore_ascii_case(program)
            || (self.wraps
                && token.contains(['*', '?', '['])
                && fits(&without_sets(base(token)), program.as_ref()))
    }
}

/// Whether a program runs what its arguments name or contain.
pub(in super::super) fn is_interpreter(program: &str) -> bool {
    let name = unversioned(program);
    INTERPRETERS.iter().any(|(known, ..)| *known == name)
}

fn runs_code(words: &[String]) -> bool {
    let mut programs = 0;
    words.iter().enumerate().any(|(at, word)| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let name = unversioned(base(word));
        let known = INTERPRETERS.iter().find(|(program, ..)| *program == name);
        let is_sed = matches!(name, "sed" | "gsed");
        programs += usize::from(known.is_some() || is_sed);
        programs > PROGRAM_LIMIT
            || known.is_some_and(|(_, letters, options)| has_code(rest, letters, options))
            || (is_sed && side_effects::sed::runs(rest))
    })
}

/// An interpreter's own options end at its first operand. What follows an option may be its value.
fn has_code(words: &[String], letters: &str, options: &[&str]) -> bool {
    let mut is_value = false;
    for word in words {
        if options.iter().any(|option| word.split('=').next() == Some(option)) {
            return true;
        }
        match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            None if is_value => is_value = false,
            // `python -m MODULE` ends python's own options.
            None => return false,
            Some(rest) if rest.starts_with('-') => is_value = !rest.contains('='),
            Some(rest) if rest.starts_with('m') && letters == "c" => return false,
            Some(rest) if rest.contains(|c| letters.contains(c)) => return true,
            Some(rest) => is_value = rest.ends_with(|c| VALUED.contains(c)),
        }
    }
    false
}

fn is_glued(token: &str, program: &str) -> bool {
    let Some(letters) = token.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return false;
    };
    let (letters, program) = (letters.to_ascii_lowercase(), program.to_ascii_lowercase());
    letters.match_indices(program.as_str()).any(|(at, _)| {
        let after = letters.get(at + program.len()..).and_then(|rest| rest.chars().next());
        at > 0 && after.is_none_or(|c| !c.is_alphanumeric())
    })
}

/// The name of a program without the version at its end.
fn unversioned(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}
