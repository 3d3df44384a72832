//! `agentwire man`: man pages.

use std::io::{self, Write as _};

use agentwire_protocol::{ErrorCode, GatewayError};
use clap::Command;
use clap_mangen::Man;

use crate::args::{self, ManPages};
use crate::failure::Failure;
use crate::print;

/// Prints the page of the program or of one verb, or writes all of them into a directory.
pub(crate) fn run(wanted: &ManPages) -> Result<(), Failure> {
    // The template is for a terminal.
    let mut command = args::command().help_template("{all-args}");
    if let Some(directory) = &wanted.output {
        std::fs::create_dir_all(directory)?;
        return Ok(clap_mangen::generate_to(command, directory)?);
    }
    command.build();
    let text = match &wanted.verb {
        None => page(&command)?,
        Some(name) => match command.find_subcommand(name) {
            Some(verb) => page(verb)?,
            None => {
                let message = format!("unknown verb {name:?}; `agentwire --help` lists the verbs");
                return Err(GatewayError::new(ErrorCode::InvalidMessage, message).into());
            }
        },
    };
    Ok(print::stdout().write_all(&text)?)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
