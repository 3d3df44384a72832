//! The layout of `agentwire --help`: verbs in groups, then the options.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Args;

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
            "completions",
            "man",
        ],
    ),
];

/// The command line, with grouped verbs in its help.
pub(crate) fn command() -> Command {
    let command = Args::command();
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, verbs) in GROUPS {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (verb.get_name(), verb.get_about().cloned().unwrap_or_default());
            let _ = writeln!(text, "  {literal}{name:<12}{literal:#}  {about}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}\n\n");
    text.push_str(
        "`VERB -h` shows the options of a verb; `VERB --help` adds examples and global options.",
    );
    text
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

    /// The short help of a verb fits a small terminal.
    #[test]
    fn short_help_fits_a_screen() {
        let mut command = command().term_width(100);
        command.build();
        let mut pages = vec![(String::new(), command.render_help().to_string())];
        for verb in command.get_subcommands_mut() {
            let name = verb.get_name().to_owned();
            pages.push((name, verb.render_help().to_string()));
        }
        for (verb, page) in pages {
            let most = if verb.is_empty() { 50 } else { 30 };
            let lines = page.lines().count();
            assert!(lines <= most, "{verb} -h has {lines} lines:\n{page}");
            assert!(!page.contains("\n\n\n"), "{page}");
        }
    }
}
