//! `agentwire`: what you type.

mod args;
mod commands;
mod print;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.verb {
        Verb::Translate(args) => commands::translate::run(&args).map(|()| ExitCode::SUCCESS),
        Verb::Play(args) => commands::play::run(&args),
        Verb::DemoAgent(args) => commands::demo_agent::run(&args),
        Verb::Schema(args) => commands::schema::run(&args).map(|()| ExitCode::SUCCESS),
        Verb::Completions(args) => commands::completions::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        // Whoever read our output has gone: nothing is left to say and nobody to say it to.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
