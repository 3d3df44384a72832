//! The layout of `agentwire --help`: verbs in groups, then the options.

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _};

use super::{Args, GLOBAL};
use crate::{format, print};

/// Every verb, in the group and the order in which help lists it.
const GROUPS: [(&str, &[&str]); 4] = [
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
            "show",
            "logs",
            "export",
            "wait",
            "prune",
        ],
    ),
    ("Server", &["serve", "token", "trust"]),
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
            "help",
            "completions",
            "man",
        ],
    ),
];

/// The command line, with grouped verbs in its help.
pub(crate) fn command() -> Command {
    let command = Args::command();
    let template = template(&command, print::columns());
    command.help_template(template)
}

/// Verbs that other programs have for what ours do. Clap suggests verbs that are spelled like the
/// wrong one only.
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

/// The error with a better suggestion, if it is about one of these verbs.
pub(crate) fn suggest(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, verb)) = SYNONYMS.iter().find(|(synonym, _)| synonym == wrong)
    {
        let verbs = ContextValue::Strings(vec![(*verb).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, verbs);
    }
    error
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
    let footer =
        "`agentwire VERB -h` shows the options of a verb. `agentwire VERB --help` adds examples.";
    let footer = format::wrapped(footer, columns, 0, 0);
    format!("{{about}}\n\n{{usage-heading}} {{usage}}\n{}\n{footer}", page.text)
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
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let command = Args::command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
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
            let error = suggest(error.expect_err(wrong)).to_string();
            assert!(error.contains(&format!("subcommand exists: '{verb}'")), "{error}");
        }
    }

    /// The short and the long help of every verb and of every verb below it, by name.
    fn pages(command: &mut Command, of: &str) -> Vec<(String, String, String)> {
        let mut all = Vec::new();
        for verb in command.get_subcommands_mut() {
            let name = format!("{of}{} ", verb.get_name());
            let (short, long) = (verb.render_help(), verb.render_long_help());
            all.push((name.clone(), short.to_string(), long.to_string()));
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

    #[test]
    fn the_programs_help_groups_verbs_and_options() {
        let mut command = built();
        let page = command.render_help().to_string();
        assert_eq!(page, command.render_long_help().to_string());
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text:?} in {page}"));
        let places =
            ["\nSessions:", "\nServer:", "\nDrop-ins:", "\nTools:", "\nOptions:\n  -h, --help"];
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
            assert!(format::width(line) <= 60, "{line:?}");
        }
        let about = "\n                unified events or another client format\n";
        assert!(page.contains(about), "{page}");
    }
}
