//! Commands that run a program whose name is not among their words: code on the command line, and names
//! glued to an option.

use super::super::paths::{fits, without_sets};
use super::super::{readonly, side_effects};
use super::base;

/// Programs that take code on the command line, by the letters and long options that precede it.
const INTERPRETERS: &[(&str, &str, &[&str])] = &[
    (
        "python pypy tclsh guile ex expect xonsh elvish rc es ion mksh yash osh ysh ipython sage hy \
         bpython ptpython",
        "c",
        &[],
    ),
    ("perl janet gosh", "eE", &[]),
    (
        "ruby lua luajit osascript R Rscript ghc runghc scala swift groovy gnuplot ocaml raku jruby \
         ghci runhaskell jrunscript d8 js gsi ros scilab",
        "e",
        &[],
    ),
    ("node nodejs bun tsx ts-node babel-node", "ep", &["--eval", "--print"]),
    ("deno crystal", "", &["eval"]),
    ("php", "rBRE", &["--run", "--process-begin", "--process-code", "--process-end"]),
    ("julia", "eE", &["--eval", "--print"]),
    ("racket clojure clj bb fennel emacsclient coffee zx qjs ccl", "e", &["--eval"]),
    ("elixir iex", "e", &["--eval", "--rpc-eval"]),
    ("erl", "", &["-eval"]),
    ("gdb", "", &["-ex", "-iex", "--ex", "--eval-command", "-eval-command"]),
    ("lldb", "o", &["--one-line"]),
    ("vi vim nvim view gvim", "cS", &["--cmd"]),
    ("nu", "c", &["--commands"]),
    ("octave sbcl nim mongo mongosh", "", &["--eval"]),
    ("powershell pwsh", "cCeE", &[]),
    ("rake", "eEp", &["--execute", "--execute-print", "--execute-continue"]),
    ("kotlin kotlinc", "e", &["-expression"]),
    ("swipl", "gt", &[]),
    ("emacs", "f", &["--eval", "-eval", "--execute", "--funcall"]),
    ("scala-cli", "e", &["--execute-script", "--script-snippet", "--scala-snippet"]),
    ("pry", "e", &["--exec"]),
    ("csi", "e", &["-eval"]),
    ("clisp", "x", &[]),
    ("ecl", "", &["--eval", "-eval"]),
    ("matlab", "r", &["-batch", "-r"]),
];

/// Commands of programs, and options of these commands, that take code or keystrokes.
const CODE_WORDS: &[(&str, &[&str])] = &[
    ("artisan", &["tinker"]),
    ("bin/console", &["eval"]),
    ("django-admin", &["shell", "shell_plus"]),
    ("drush", &["php:eval", "php-eval", "eval", "ev"]),
    ("kitty", &["send-text", "launch"]),
    ("lein", &["eval", "exec", "update-in"]),
    ("manage.py", &["shell", "shell_plus"]),
    ("mix", &["-e", "--eval", "eval", "--rpc-eval"]),
    ("nix", &["--expr", "--run"]),
    ("nix-build", &["-E", "--expr"]),
    ("nix-instantiate", &["-E", "--expr", "--eval"]),
    ("nix-shell", &["-E", "--expr"]),
    ("pyperf", &["timeit"]),
    ("rails", &["runner", "r"]),
    ("rebar3", &["--eval"]),
    ("sbt", &["eval", "consoleQuick"]),
    ("screen", &["stuff", "exec", "eval"]),
    ("tmux", &["send-keys", "send", "set-buffer", "setb", "load-buffer", "source-file", "source"]),
    ("wezterm", &["send-text"]),
    ("wp", &["eval", "shell", "--exec"]),
    ("zellij", &["write", "write-chars"]),
];

/// Modules of python that run code among their words.
const CODE_MODULES: &[&str] =
    &["timeit", "pdb", "idlelib", "pyperf", "perf", "IPython", "ipython", "hy", "xonsh"];

/// Programs, other than wrappers, that may pass an argument to a shell.
const SHELL_USERS: &[&str] = &[
    "alacritty",
    "ansible",
    "at",
    "byobu",
    "concurrently",
    "crontab",
    "dtach",
    "entr",
    "foreman",
    "gcloud",
    "gnome-terminal",
    "heroku",
    "honcho",
    "just",
    "kitty",
    "konsole",
    "make",
    "mprocs",
    "nix",
    "nix-shell",
    "npm",
    "onchange",
    "pdsh",
    "pm2",
    "pnpm",
    "pssh",
    "salt",
    "screen",
    "socat",
    "tmux",
    "urxvt",
    "vagrant",
    "watchexec",
    "wezterm",
    "xterm",
    "yarn",
    "zellij",
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
            wraps: words.iter().any(|word| is_shell_user(base(word)))
                || side_effects::has_side_effect(words, 1),
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
    INTERPRETERS.iter().any(|(known, ..)| known.split(' ').any(|known| known == name))
}

fn is_shell_user(program: &str) -> bool {
    side_effects::is_wrapper(program) || SHELL_USERS.contains(&program)
}

fn runs_code(words: &[String]) -> bool {
    let mut programs = 0;
    words.iter().enumerate().any(|(at, word)| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let name = unversioned(base(word));
        // `mongosh` and `d8` have no version in their names.
        let fits = |program: &str| program == name || program == base(word);
        let known = INTERPRETERS.iter().find_map(|(programs, letters, options)| {
            let program = programs.split(' ').find(|program| fits(program))?;
            Some((program, *letters, *options))
        });
        let taking = CODE_WORDS.iter().find(|(program, _)| fits(base(program)));
        let is_sed = matches!(name, "sed" | "gsed");
        programs += usize::from(known.is_some() || taking.is_some() || is_sed);
        let first = |word: &String| word.split(['=', ' ']).next().unwrap_or_default().to_owned();
        programs > PROGRAM_LIMIT
            || known.is_some_and(|(_, letters, options)| has_code(rest, letters, options))
            || known.is_some_and(|(program, ..)| runs_module(program, rest))
            || taking
                .is_some_and(|(_, own)| rest.iter().any(|word| own.contains(&first(word).as_str())))
            || (is_editor(name) && rest.iter().any(|word| is_editor_command(word)))
            || (is_sed && side_effects::sed::runs(rest))
    })
}

fn is_editor(name: &str) -> bool {
    matches!(name, "vi" | "vim" | "nvim" | "view" | "gvim" | "ex" | "less" | "more")
}

/// `+5` and `+/text` go to a place in the file.
fn is_editor_command(word: &str) -> bool {
    word.strip_prefix('+').is_some_and(|command| {
        !command.starts_with('/') && !command.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether python runs a module that takes code.
fn runs_module(program: &str, words: &[String]) -> bool {
    let words: Vec<_> = words.iter().map(|word| (word.as_str(), false)).collect();
    let module = side_effects::module(program, &words);
    module.and_then(|words| words.first().copied()).is_some_and(|(module, _)| {
        let package = module.split('.').next().unwrap_or_default();
        CODE_MODULES.contains(&package)
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
            Some(rest) if letters == "c" && ends_in_module(rest) => return false,
            Some(rest) if rest.contains(|c| letters.contains(c)) => return true,
            Some(rest) => is_value = rest.ends_with(|c| VALUED.contains(c)),
        }
    }
    false
}

/// Whether python's letters name a module: `-m`, `-um`.
fn ends_in_module(letters: &str) -> bool {
    letters.chars().find(|c| matches!(c, 'c' | 'm')) == Some('m')
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
pub(in super::super) fn unversioned(name: &str) -> &str {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}
