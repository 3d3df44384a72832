//! `agentwire`: what you type.

mod args;
mod commands;
mod engine;
mod failure;
mod installed;
mod print;
mod settings;
mod shown;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};
use crate::failure::Failure;

fn main() -> ExitCode {
    let args = Args::parse();
    let global = &args.global;
    print::log(global.log_level);
    let result: Result<(), Failure> = match args.verb {
        Verb::Translate(args) => commands::translate::run(&args).map_err(Failure::from),
        Verb::Ls(args) => commands::ls::run(global, &args),
        Verb::Show(args) => commands::show::run(global, &args),
        Verb::Export(args) => commands::export::run(global, &args),
        Verb::Wait(args) => commands::wait::run(global, &args),
        Verb::Prune(args) => commands::prune::run(global, &args),
        Verb::Agents(args) => commands::agents::run(global, &args),
        Verb::Doctor(args) => commands::doctor::run(global, &args),
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
