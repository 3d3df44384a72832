//! The layout of help, and the texts of wrong arguments.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, CommandFactory as _};

use super::{Args, GLOBAL};
use crate::{format, print};

/// Every command, in the group and the order in which help lists it.
pub(crate) const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Sessions",
        &[
            "run",
            "attach",
            "send",
            "interrupt",
            "stop",
            "permit",
            "ls",
            "name",
            "show",
            "search",
            "usage",
            "logs",
            "export",
            "wait",
            "prune",
            "trust",
        ],
    ),
    ("Server", &["serve", "token"]),
    ("Drop-ins", &["claude", "backend", "rpc", "unified"]),
    (
        "Tools",
        &[
            "agents",
            "doctor",
            "translate",
            "play",
            "model-server",
            "demo-agent",
            "schema",
            "completions",
            "man",
        ],
    ),
];

/// Stands for a space in an example, so that clap does not wrap the line. [`unbroken`] undoes it.
const SOLID: char = '\u{a0}';

/// The command line, with grouped commands in its help.
pub(crate) fn command() -> Command {
    let command = solid(Args::command());
    let template = template(&command, print::columns());
    command.help_template(template)
}

/// Makes the indented lines below the options unbreakable: they are for copying.
fn solid(command: Command) -> Command {
    let command = match command.get_after_long_help().map(ToString::to_string) {
        Some(text) => {
            let lines = text.split('\n').map(|line| match line.starts_with("  ") {
                true => line.replace(' ', &SOLID.to_string()),
                false => line.to_owned(),
            });
            command.after_long_help(lines.collect::<Vec<_>>().join("\n"))
        }
        None => command,
    };
    command.mut_subcommands(solid)
}

/// Rendered help as it should be printed.
pub(crate) fn unbroken(page: &str) -> String {
    page.replace(SOLID, " ")
}

/// Commands that other programs have for what ours do. Clap suggests commands that are spelled like
/// the wrong one only.
const SYNONYMS: [(&str, &str); 24] = [
    ("list", "ls"),
    ("ps", "ls"),
    ("start", "run"),
    ("new", "run"),
    ("exec", "run"),
    ("resume", "run"),
    ("continue", "run"),
    ("prompt", "send"),
    ("cancel", "interrupt"),
    ("kill", "stop"),
    ("end", "stop"),
    ("allow", "permit"),
    ("approve", "permit"),
    ("deny", "permit"),
    ("answer", "permit"),
    ("watch", "attach"),
    ("status", "show"),
    ("info", "show"),
    ("log", "logs"),
    ("tail", "logs"),
    ("rm", "prune"),
    ("delete", "prune"),
    ("server", "serve"),
    ("check", "doctor"),
];

/// Says more about wrong arguments: a command that was probably meant, quotes around a prompt, or the
/// variable that the value comes from.
pub(crate) fn explain(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(invalid)) => Some(invalid.clone()),
        _ => None,
    };
    if let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, verb)) = SYNONYMS.iter().find(|(synonym, _)| synonym == wrong)
    {
        let verbs = ContextValue::Strings(vec![(*verb).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, verbs);
    }
    let takes_prompt = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains("[PROMPT]"),
        _ => false,
    };
    if error.kind() == clap::error::ErrorKind::UnknownArgument
        && takes_prompt
        && invalid.as_ref().is_some_and(|word| !word.starts_with('-'))
    {
        let tip = StyledStr::from("quote the prompt if it has several words");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    if let Some(variable) = invalid.and_then(|option| variable(&Args::command(), &option, words)) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The variable that the value of an option comes from, if the option is not among the words.
fn variable(command: &Command, option: &str, words: &[OsString]) -> Option<String> {
    let long = option.split([' ', '=']).next()?;
    let is_given = |word: &OsString| {
        let word = word.to_string_lossy();
        word.strip_prefix(long).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if words.iter().any(is_given) {
        return None;
    }
    let is_it = |arg: &&Arg| arg.get_long() == long.strip_prefix("--");
    let own = command.get_arguments().find(is_it).and_then(Arg::get_env);
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.or_else(|| command.get_subcommands().find_map(|verb| variable(verb, option, words)))
}

/// Clap has no placeholder for the options of one heading, and wraps nothing in a template. So both are
/// done here, from the same descriptions.
fn template(command: &Command, columns: Option<usize>) -> String {
    let mut page = Sections { text: String::new(), command, columns };
    for (title, verbs) in GROUPS {
        page.heading(title);
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            page.row(
                verb.get_name(),
                12,
                &verb.get_about().cloned().unwrap_or_default().to_string(),
            );
        }
    }
    page.heading("Options");
    page.row("-h, --help", 21, "Print help");
    page.row("-V, --version", 21, "Print version");
    page.heading(GLOBAL);
    for option in command.get_arguments().filter(|option| option.is_global_set()) {
        let name = format!("--{}", option.get_long().unwrap_or_default());
        let value = option.get_value_names().and_then(<[_]>::first);
        let spelled = value.map_or(name.clone(), |value| format!("{name} <{value}>"));
        let help = option.get_help().cloned().unwrap_or_default().to_string();
        page.row(&spelled, 21, &help);
    }
    let footer = "`agentwire COMMAND -h` shows the options of a command. `agentwire COMMAND --help` adds \
                  examples.";
    let footer = format::wrapped(footer, columns, 0, 0);
    format!("{{about}}\n\n{{usage-heading}} {{usage}}\n{}\n{footer}{{after-help}}", page.text)
}

/// The part of the help below the usage line.
struct Sections<'c> {
    text: String,
    command: &'c Command,
    columns: Option<usize>,
}

impl Sections<'_> {
    fn heading(&mut self, title: &str) {
        let header = self.command.get_styles().get_header();
        let _ = write!(self.text, "\n{header}{title}:{header:#}\n");
    }

    /// A name, filled up to `width` columns, and what it does.
    fn row(&mut self, name: &str, width: usize, does: &str) {
        let literal = self.command.get_styles().get_literal();
        let does = format::wrapped(does, self.columns, width + 4, width + 4);
        let _ = writeln!(self.text, "  {literal}{name:<width$}{literal:#}  {does}");
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let command = Args::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut verbs: Vec<&str> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn wrong_verbs_suggest_the_right_one() {
        let verbs: Vec<String> =
            Args::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        let misspelled =
            [("lgos", "logs"), ("srve", "serve"), ("hlep", "help"), ("tokens", "token")];
        for (wrong, verb) in SYNONYMS.into_iter().chain(misspelled) {
            assert!(verbs.iter().any(|known| known == verb), "{verb}");
            let error = command().try_get_matches_from(["agentwire", wrong]);
            let error = explain(error.expect_err(wrong), &[wrong.into()]).to_string();
            assert!(error.contains(&format!("subcommand exists: '{verb}'")), "{error}");
        }
    }

    /// The short and the long help of every verb and of every verb below it, by name.
    fn pages(command: &mut Command, of: &str) -> Vec<(String, String, String)> {
        let mut all = Vec::new();
        for verb in command.get_subcommands_mut() {
            let name = format!("{of}{} ", verb.get_name());
            let (short, long) = (verb.render_help(), verb.render_long_help());
            let (short, long) = (short.to_string(), unbroken(&long.to_string()));
            all.push((name.clone(), short, long));
            all.extend(pages(verb, &name));
        }
        all
    }

    fn built() -> Command {
        let mut command = command().term_width(100);
        command.build();
        command
    }

    #[test]
    fn short_help_fits_a_screen() {
        let pages = pages(&mut built(), "");
        assert!(pages.iter().any(|(verb, ..)| verb == "permit allow "));
        for (verb, page, _) in pages {
            let lines = page.lines().count();
            assert!(lines <= 30, "{verb}-h has {lines} lines:\n{page}");
            assert!(!page.contains("\n\n\n"), "{page}");
        }
    }

    /// In the long help of each verb the global options come last, under their own heading.
    #[test]
    fn global_options_come_last() {
        for (verb, _, page) in pages(&mut built(), "") {
            if matches!(verb.as_str(), "claude " | "demo-agent ") {
                continue;
            }
            let (own, global) = page.split_once("\nGlobal options:\n").expect(&verb);
            assert!(!own.contains("--data-dir"), "{page}");
            let options: Vec<&str> =
                global.lines().filter_map(|line| line.strip_prefix("      --")).collect();
            let names = options.iter().filter_map(|line| line.split(' ').next());
            let expected = ["data-dir", "config", "log-level", "log-format"];
            assert_eq!(names.collect::<Vec<_>>(), expected, "{page}");
            // The list of levels is in the text of the option already.
            assert!(!page.contains("[possible values: off"), "{page}");
            assert!(!global.contains("- trace"), "{page}");
        }
    }

    /// The indented lines below the options of every command, with the command's long help.
    fn examples(command: &Command, pages: &[(String, String, String)], of: &str) -> usize {
        let mut count = 0;
        for verb in command.get_subcommands() {
            let name = format!("{of}{} ", verb.get_name());
            let (_, _, page) = pages.iter().find(|(page, ..)| *page == name).expect(&name);
            let text = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with("  ")) {
                assert!(line.width() <= 96, "{name}: {line}");
                assert!(page.lines().any(|shown| shown == line), "{name}: {line:?} in\n{page}");
                count += 1;
            }
            count += examples(verb, pages, &name);
        }
        count
    }

    #[test]
    fn examples_are_never_wrapped() {
        for columns in [100, 40] {
            let mut command = command().term_width(columns);
            command.build();
            let count = examples(&Args::command(), &pages(&mut command, ""), "");
            assert!(count > 90, "only {count} lines");
        }
    }

    #[test]
    fn every_command_has_examples() {
        for (verb, _, page) in pages(&mut built(), "") {
            let has = page.contains("\nExamples:\n  ") || page.contains("\nTry it:\n  ");
            // The demo agent and `help` print another program's page.
            let is_other = verb.starts_with("demo-agent ") || verb.starts_with("help ");
            assert!(has || is_other, "{verb}:\n{page}");
        }
    }

    #[test]
    fn wrong_arguments_name_the_remedy() {
        let told = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let error = command().try_get_matches_from(&words).expect_err("it is wrong");
            explain(error, &words).to_string()
        };
        for (words, says) in [
            (&["agentwire", "run", "hi", "there"][..], "quote the prompt if it has several words"),
            (&["agentwire", "send", "1a2b", "hi", "there"], "quote the prompt"),
            (&["agentwire", "ls", "-n", "x"], "expected a whole number, 0 or more"),
            (&["agentwire", "prune", "--keep", "x"], "expected a whole number, 0 or more"),
            (&["agentwire", "logs", "--after", "-1", "x"], "tip"),
            (&["agentwire", "logs", "--after=-1", "x"], "expected a whole number, 0 or more"),
            (&["agentwire", "run", "--max-turns", "0"], "expected a whole number from 1 to 1000"),
            (&["agentwire", "serve", "--max-connections", "0"], "a whole number, 1 or more"),
            (&["agentwire", "model-server", "--port", "99999"], "number from 0 to 65535"),
            (&["agentwire", "serve", "--http", "here"], "such as 127.0.0.1:8080"),
        ] {
            let error = told(words);
            assert!(error.contains(says), "{words:?}: {error}");
        }
        assert!(!told(&["agentwire", "agents", "there"]).contains("quote"));
        let words = ["run", "--log-level", "loud"].map(OsString::from);
        assert_eq!(variable(&Args::command(), "--log-level <LEVEL>", &words), None);
        let found = variable(&Args::command(), "--log-level <LEVEL>", &["run".into()]);
        assert_eq!(found.as_deref(), Some("AGENTWIRE_LOG"));
    }

    #[test]
    fn the_programs_help_groups_verbs_and_options() {
        let mut command = built();
        let page = command.render_help().to_string();
        let long = unbroken(&command.render_long_help().to_string());
        let more = long.strip_prefix(page.trim_end()).expect("the same, and examples");
        assert_eq!(more.matches("\n  agentwire ").count(), 4, "{long}");
        assert!(!page.contains("\n  help "), "{page}");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text:?} in {page}"));
        let places = [
            "\nSessions:",
            "\n  trust ",
            "\nServer:",
            "\nDrop-ins:",
            "\nTools:",
            "\nOptions:\n  -h, --help",
        ];
        let places = places.into_iter().chain(["\nGlobal options:\n  --data-dir <DIR>"]).map(at);
        assert!(places.is_sorted(), "{page}");
        assert_eq!(page.matches("--log-level").count(), 1, "{page}");
        assert!(page.lines().count() <= 54, "{page}");
    }

    #[test]
    fn the_programs_help_wraps_in_a_narrow_terminal() {
        let page = template(&Args::command(), Some(60));
        let page = anstream::adapter::strip_str(&page).to_string();
        for line in page.lines() {
            assert!(line.width() <= 60, "{line:?}");
        }
        let about = "\n                unified events or another client format\n";
        assert!(page.contains(about), "{page}");
    }
}
