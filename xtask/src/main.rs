//! Commands for maintainers of agentwire: `cargo xtask drift`, `cargo xtask dictionary`.

mod dictionary;
mod drift;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands for maintainers of agentwire
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Drift(drift::Args),
    Dictionary(dictionary::Args),
}

fn main() -> ExitCode {
    match Args::parse().task {
        Task::Drift(args) => drift::run(&args),
        Task::Dictionary(args) => dictionary::run(&args),
    }
}
