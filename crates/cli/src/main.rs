//! `agentwire`: what you type.

mod args;
mod commands;
mod drive;
mod engine;
mod failure;
mod installed;
mod print;
mod screen;
mod settings;
mod shown;
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
    print::log(global.log_level);
    let result: Result<ExitCode, Failure> = match args.verb {
        Verb::Run(args) => done(commands::run::run(global, &args)),
        Verb::Attach(args) => done(commands::attach::run(global, &args)),
        Verb::Logs(args) => done(commands::logs::run(global, &args)),
        Verb::Translate(args) => done(commands::translate::run(&args)),
        Verb::Play(args) => commands::play::run(&args).map_err(Failure::from),
        Verb::DemoAgent(args) => commands::demo_agent::run(&args).map_err(Failure::from),
        Verb::Ls(args) => done(commands::ls::run(global, &args)),
        Verb::Show(args) => done(commands::show::run(global, &args)),
        Verb::Export(args) => done(commands::export::run(global, &args)),
        Verb::Wait(args) => done(commands::wait::run(global, &args)),
        Verb::Prune(args) => done(commands::prune::run(global, &args)),
        Verb::Agents(args) => done(commands::agents::run(global, &args)),
        Verb::Doctor(args) => done(commands::doctor::run(global, &args)),
        Verb::Unified => done(commands::front::unified(global)),
        Verb::Backend => done(commands::front::backend(global)),
        Verb::Schema(args) => done(commands::schema::run(&args)),
        Verb::Completions(args) => done(commands::completions::run(&args)),
    };
    match result {
        Ok(code) => code,
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

fn done<E: Into<Failure>>(result: Result<(), E>) -> Result<ExitCode, Failure> {
    result.map(|()| ExitCode::SUCCESS).map_err(Into::into)
}
