//! `agentwire`: what you type.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentwire::main()
}
