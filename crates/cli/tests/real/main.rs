//! The real programs, driven end to end and offline:
//! `AGENTWIRE_TEST_REAL=1 cargo test -p agentwire --test real`.
//!
//! Each column of the matrix is a program of a pinned version and a driver, each row a scenario. The
//! programs come from the npm registry into the target directory (`packages.rs`); after that nothing but
//! loopback can be reached (`offline.rs`), and the model is a script in the prompt (`agentwire-models`).
//!
//! `-- WORD…` runs only what has a name that contains one of the words, `-- =NAME…` what has that name;
//! `AGENTWIRE_REAL_VERSION` takes another version, such as `latest`. `cargo bench -p agentwire --test real`
//! is the same program (`bench.rs`): what agentwire costs beside the bare programs. With
//! `AGENTWIRE_UPDATE=1` the matrix in `docs/agents.md` is written anew; else it
//! must be the one that was found.
//!
//! Then the official SDKs drive `agentwire claude` over the same programs (`sdk.rs`); `-- sdk WORD…` runs
//! this alone.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect shall fail"
)]

mod agents;
mod bench;
#[path = "../../../dialects/tests/render/check.rs"]
mod check;
#[expect(dead_code, reason = "nothing but the SDKs is fetched here")]
#[path = "../sdks/child.rs"]
mod child;
mod column;
mod harness;
#[expect(dead_code, reason = "nothing but the SDKs is fetched here")]
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
#[expect(dead_code, unused_imports, reason = "each test program needs a part of it")]
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
            // What the test runner adds says nothing to us.
            let all: Vec<String> = first.map(str::to_owned).into_iter().chain(args).collect();
            let words: Vec<_> = all.iter().filter(|word| !word.starts_with('-')).cloned().collect();
            if all.iter().any(|word| word == "--bench") { bench::run(&words) } else { run(&words) }
        }
    }
}

/// The programs, and the SDKs over them; with words, one of both.
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
