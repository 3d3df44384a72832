//! The `agentwire` program as a library, so that examples and tests can embed it.

mod args;
mod commands;
mod drive;
mod engine;
pub mod example;
mod failure;
mod format;
mod installed;
mod print;
mod remote;
mod screen;
mod settings;
mod source;
mod terminal;
mod view;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use agentwire_sessions::bridge::relay;
use agentwire_sessions::process::{self, keeper};
use clap::{FromArgMatches as _, Parser as _};

use crate::args::{Args, Global, Verb};
use crate::failure::Failure;

/// Runs the program.
pub fn main() -> ExitCode {
    // Every agent has a keeper process. It comes before anything else so that it stays small.
    let mut words = std::env::args_os().skip(1);
    let verb = words.next();
    let is = |name: &str| verb.as_ref().is_some_and(|verb| verb == name);
    if is(keeper::VERB) {
        return small(keeper::run().map_err(|error| error.to_string()));
    }
    if is(relay::VERB) {
        return small(relay::run(words.next().as_deref()).map_err(|error| error.to_string()));
    }
    // Before the arguments are parsed: the server starts over, and would parse them twice.
    if is("serve") {
        commands::serve::give_back();
    }
    process::keep_name();
    // Flags of the `claude` program may look like ours.
    if let Some(flags) = claude_flags() {
        let global = Args::parse_from(["agentwire", "claude"]).global;
        log(&global);
        return ended(commands::claude::run(&global, flags.into_iter()));
    }
    let args = match parse(std::env::args_os()) {
        Ok(args) => args,
        Err(code) => return code,
    };
    // The server takes its log settings from its configuration as well.
    if !matches!(args.verb, Verb::Serve(_)) {
        log(&args.global);
    }
    ended(run(args))
}

/// Reads the arguments. If they are wrong or ask for help, prints clap's message.
fn parse(words: impl Iterator<Item = OsString>) -> Result<Args, ExitCode> {
    let words: Vec<OsString> = words.collect();
    let matches = args::command().try_get_matches_from(&words);
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    args.map_err(|error| {
        let error = args::explain(error, &words);
        print::refusal(&error);
        u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
    })
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    let global = &args.global;
    match args.verb {
        Verb::Run(args) => done(commands::run::run(global, &args)),
        Verb::Attach(args) => done(commands::attach::run(global, &args)),
        Verb::Logs(args) => done(commands::logs::run(global, &args)),
        Verb::Translate(args) => done(commands::translate::run(&args)),
        Verb::Play(args) => commands::play::run(&args).map_err(Failure::from),
        Verb::DemoAgent(args) => commands::demo_agent::run(&args).map_err(Failure::from),
        Verb::Ls(args) => done(commands::ls::run(global, &args)),
        Verb::Name(args) => done(commands::name::run(global, &args)),
        Verb::Search(args) => done(commands::search::run(global, &args)),
        Verb::Usage(args) => done(commands::usage::run(global, &args)),
        Verb::Show(args) => done(commands::show::run(global, &args)),
        Verb::Export(args) => done(commands::export::run(global, &args)),
        Verb::Wait(args) => done(commands::wait::run(global, &args)),
        Verb::Send(args) => done(commands::send::run(global, &args)),
        Verb::Interrupt(args) => done(commands::interrupt::run(global, &args)),
        Verb::Stop(args) => done(commands::stop::run(global, &args)),
        Verb::Permit(args) => done(commands::permit::run(global, &args)),
        Verb::Prune(args) => done(commands::prune::run(global, &args)),
        Verb::Agents(args) => done(commands::agents::run(global, &args)),
        Verb::Doctor(args) => done(commands::doctor::run(global, &args)),
        Verb::Serve(args) => done(commands::serve::run(global, &args)),
        Verb::Token(args) => done(commands::token::run(global, &args)),
        Verb::Trust(args) => done(commands::trust::run(global, &args)),
        Verb::Claude(args) => commands::claude::run(global, args.args.into_iter()),
        Verb::Unified => done(commands::front::unified(global)),
        Verb::Rpc => done(commands::front::rpc(global)),
        Verb::Backend => done(commands::front::backend(global)),
        Verb::ModelServer(args) => done(commands::model_server::run(&args)),
        Verb::Schema(args) => done(commands::schema::run(&args)),
        Verb::Completions(args) => done(commands::completions::run(&args)),
        Verb::Man(args) => done(commands::man::run(&args)),
        // `claude` and `demo-agent` print their own help.
        Verb::Help(help) => {
            let words = help.verb.into_iter().map(OsString::from);
            let words = std::iter::once("agentwire".into()).chain(words);
            match parse(words.chain(["--help".into()])) {
                Ok(args) => run(args),
                Err(code) => Ok(code),
            }
        }
    }
}

fn log(global: &Global) {
    print::log(global.log_level.unwrap_or_default(), global.log_format.unwrap_or_default());
}

/// Prints the error, if any, and returns the exit code.
fn ended(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        // The reader of our output is gone; there is no one to report to.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The exit code of an internal command.
fn small(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error);
            ExitCode::from(keeper::NO_GATEWAY)
        }
    }
}

/// The arguments for `claude`, if we run as it: by the program's name, or by the first argument.
fn claude_flags() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    let is_it = Path::new(&program).file_name().is_some_and(|name| name == "claude");
    (is_it || words.next()? == "claude").then(|| words.collect())
}

fn done<E: Into<Failure>>(result: Result<(), E>) -> Result<ExitCode, Failure> {
    result.map(|()| ExitCode::SUCCESS).map_err(Into::into)
}
