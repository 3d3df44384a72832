//! `agentwire`: what you type.

mod args;
mod commands;
mod print;

use std::process::ExitCode;

use agentwire_sessions::process::keeper;
use clap::Parser;

use crate::args::{Args, Verb};

fn main() -> ExitCode {
    // There is a keeper for every agent: it is to be small, so it comes before all else.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == keeper::VERB) {
        return match keeper::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                print::error(&error.to_string());
                ExitCode::from(keeper::NO_GATEWAY)
            }
        };
    }
    let args = Args::parse();
    let result = match args.verb {
        Verb::Translate(args) => commands::translate::run(&args),
        Verb::Schema(args) => commands::schema::run(&args),
        Verb::Completions(args) => commands::completions::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has gone: nothing is left to say and nobody to say it to.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
