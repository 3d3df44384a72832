//! `agentwire completions`: a shell completion script.

use std::io;

use crate::args::{self, Completions};
use crate::print;

pub(crate) fn run(wanted: &Completions) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(wanted.shell, &mut args::command(), "agentwire", &mut script);
    io::Write::write_all(&mut print::stdout(), &script)
}
