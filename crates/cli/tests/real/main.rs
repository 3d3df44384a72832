//! The real programs, driven end to end and offline:
//! `AGENTWIRE_TEST_REAL=1 cargo test -p agentwire --test real`.
//!
//! Each column of the matrix is a program of a pinned version and a driver, each row a scenario. The
//! programs are installed from the npm registry into the target directory (`packages.rs`). After that only
//! loopback can be reached (`offline.rs`), and the model is a script in the prompt (`agentwire-models`).
//!
//! `-- WORD…` runs only columns or rows whose name contains one of the words, `-- =NAME…` those with
//! exactly that name. `AGENTWIRE_REAL_VERSION` selects another version, such as `latest`. `cargo bench -p
//! agentwire --test real` runs `bench.rs`: what agentwire costs compared with the bare programs.
//! `AGENTWIRE_UPDATE=1` rewrites the matrix in `docs/agents.md`; otherwise it must match the results.
//!
//! After that, the official SDKs drive `agentwire claude` over the same programs (`sdk.rs`); `-- sdk WORD…`
//! runs only this.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod agents;
mod bench;
#[path = "../../../dialects/tests/render/check.rs"]
mod check;
#[expect(dead_code, reason = "only the SDKs are installed here")]
#[path = "../sdks/child.rs"]
mod child;
mod column;
mod harness;
#[expect(dead_code, reason = "only the SDKs are installed here")]
#[path = "../sdks/install.rs"]
mod install;
mod matrix;
mod mcp;
mod offline;
mod packages;
mod recording;
mod results;
mod scenarios;
mod sdk;
#[expect(dead_code, unused_imports, reason = "each test program uses a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
#[expect(dead_code, reason = "a client of one session needs less")]
#[path = "../shared/speaker/mod.rs"]
mod speaker;
#[path = "../shared/specified.rs"]
mod specified;
mod talk;
mod trouble;

use std::process::ExitCode;

use crate::shared::REAL;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some(column::VERB) => column::run(&args.collect::<Vec<_>>()),
        Some(sdk::VERB) => sdk::run_column(&args.collect::<Vec<_>>()),
        Some(mcp::VERB) => mcp::run(),
        Some(bench::VERB) => bench::measure(&args.collect::<Vec<_>>()),
        first => {
            // Ignore the options that the test runner adds.
            let all: Vec<String> = first.map(str::to_owned).into_iter().chain(args).collect();
            let words: Vec<_> = all.iter().filter(|word| !word.starts_with('-')).cloned().collect();
            if all.iter().any(|word| word == "--bench") { bench::run(&words) } else { run(&words) }
        }
    }
}

/// Runs the programs, then the SDKs over them; with words, only one of the two.
fn run(words: &[String]) -> ExitCode {
    if !REAL.is_on() {
        return ExitCode::SUCCESS;
    }
    match words {
        [] if results::directory().is_none() => {
            let (programs, sdks) = (matrix::run(words), sdk::run(words));
            if programs == ExitCode::SUCCESS { sdks } else { programs }
        }
        [first, rest @ ..] if first == sdk::NAME => sdk::run(rest),
        _ => matrix::run(words),
    }
}
