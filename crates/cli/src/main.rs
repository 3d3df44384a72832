//! `agentwire`: what you type.

mod args;
mod commands;
mod drive;
mod engine;
mod failure;
mod print;
mod screen;
mod settings;
mod terminal;
mod view;

use std::process::ExitCode;

use agentwire_sessions::process::keeper;
use clap::Parser;

use crate::args::{Args, Verb};
use crate::failure::Failure;

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
    let global = &args.global;
    let result: Result<(), Failure> = match args.verb {
        Verb::Run(args) => commands::run::run(global, &args),
        Verb::Attach(args) => commands::attach::run(global, &args),
        Verb::Logs(args) => commands::logs::run(global, &args),
        Verb::Translate(args) => commands::translate::run(&args).map_err(Failure::from),
        Verb::Schema(args) => commands::schema::run(&args).map_err(Failure::from),
        Verb::Completions(args) => commands::completions::run(&args).map_err(Failure::from),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has gone: nothing is left to say and nobody to say it to.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            match &failure {
                Failure::Io(error) => print::error(&error.to_string()),
                Failure::Gateway(error) => print::error(&error.message),
                Failure::Exit(_) => {}
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
