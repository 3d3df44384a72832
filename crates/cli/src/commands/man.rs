//! `agentwire man`: man pages.

use std::io::{self, Write as _};

use clap::Command;
use clap_mangen::Man;

use crate::args::{self, ManPages};
use crate::print;

/// Prints the page of the program or of one verb, or writes all of them into a directory.
pub(crate) fn run(wanted: &ManPages) -> io::Result<()> {
    // The template of the terminal's help means nothing to `man`.
    let mut command = args::command().help_template("{all-args}");
    if let Some(directory) = &wanted.output {
        std::fs::create_dir_all(directory)?;
        return clap_mangen::generate_to(command, directory);
    }
    command.build();
    let text = match &wanted.verb {
        None => page(&command)?,
        Some(name) => match command.find_subcommand(name) {
            Some(verb) => page(verb)?,
            None => {
                let message = format!("no verb is called {name:?}; `agentwire --help` lists them");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        },
    };
    print::stdout().write_all(&text)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
