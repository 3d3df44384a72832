//! `agentwire man`: man pages.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use agentwire_protocol::{ErrorCode, GatewayError};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{Args, GROUPS, ManPages};
use crate::failure::Failure;
use crate::print;

/// Prints the page of the program or of one command, or writes all of them into a directory.
pub(crate) fn run(wanted: &ManPages) -> Result<(), Failure> {
    let mut command = complete(Args::command());
    command.build();
    if let Some(directory) = &wanted.output {
        std::fs::create_dir_all(directory)?;
        return Ok(write(&command, directory)?);
    }
    let mut found = &command;
    for name in &wanted.verb {
        found = found.find_subcommand(name).ok_or_else(|| {
            let name = wanted.verb.join(" ");
            let message =
                format!("unknown command {name:?}; `agentwire --help` lists the commands");
            GatewayError::new(ErrorCode::InvalidMessage, message)
        })?;
    }
    Ok(print::stdout().write_all(&page(found)?)?)
}

/// Shows the options that the short help leaves out.
fn complete(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(complete)
}

fn write(command: &Command, directory: &Path) -> io::Result<()> {
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(directory.join(name), page(command)?)?;
    shown(command).try_for_each(|verb| write(verb, directory))
}

/// The commands below a command.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    page.extend(commands(command).into_bytes());
    let text = command.get_after_long_help().or(command.get_after_help());
    page.extend(notes(&text.map(ToString::to_string).unwrap_or_default()).into_bytes());
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// The commands: those of the program in their groups.
fn commands(command: &Command) -> String {
    let mut text = String::new();
    let mut row = |verb: &Command| {
        let name = verb.get_display_name().unwrap_or(verb.get_name());
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!(".TP\n{}(1)\n{}\n", plain(name), plain(&about))
    };
    let all: Vec<&Command> = shown(command).collect();
    if all.is_empty() {
        return text;
    }
    text.push_str(".SH COMMANDS\n");
    if command.get_name() != Args::command().get_name() {
        return all.into_iter().map(&mut row).fold(text, |text, row| text + &row);
    }
    for (title, verbs) in GROUPS {
        let _ = writeln!(text, ".SS {title}");
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            text.push_str(&row(verb));
        }
    }
    text
}

/// What stands below the options: first the examples, then notes. Indented lines keep their form.
fn notes(text: &str) -> String {
    let examples = text.strip_prefix("Examples:\n").or_else(|| text.strip_prefix("Try it:\n"));
    let (mut roff, text) = match examples {
        Some(text) => (".SH EXAMPLES\n".to_owned(), text),
        None => (String::new(), text),
    };
    let mut is_noted = false;
    let mut is_kept = false;
    for line in text.lines() {
        let keeps = line.starts_with("  ");
        if !keeps && !is_noted && !line.is_empty() {
            is_noted = true;
            roff.push_str(if is_kept { ".fi\n.SH NOTES\n" } else { ".SH NOTES\n" });
            is_kept = false;
        }
        if keeps != is_kept && !line.is_empty() {
            roff.push_str(if keeps { ".nf\n" } else { ".fi\n" });
            is_kept = keeps;
        }
        match line {
            "" => roff.push_str(".PP\n"),
            line => {
                let _ = writeln!(roff, "{}", plain(line));
            }
        }
    }
    if is_kept {
        roff.push_str(".fi\n");
    }
    roff
}

/// Text in which nothing is a request of roff, and quotes and hyphens can be copied.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let text = text.replace('`', "\\(ga").replace('^', "\\(ha").replace('~', "\\(ti");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let text = "Examples:\n  a 'b' \\\n    -c\n\nOne.\n.two\n  {\"x\":1}\nThree.";
        let roff = ".SH EXAMPLES\n.nf\n  a \\(aqb\\(aq \\e\n    \\-c\n.PP\n.fi\n.SH NOTES\nOne.\n\\&.two\n\
                    .nf\n  {\"x\":1}\n.fi\nThree.\n";
        assert_eq!(notes(text), roff);
        assert_eq!(notes("Only words."), ".SH NOTES\nOnly words.\n");
        assert_eq!(notes(""), "");
    }
}
