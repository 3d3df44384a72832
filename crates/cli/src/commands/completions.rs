//! `agentwire completions`: a script for a shell.

use std::io;

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::print;

pub(crate) fn run(args: &Completions) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "agentwire", &mut script);
    io::Write::write_all(&mut print::stdout(), &script)
}
