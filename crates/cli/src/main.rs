//! The `agentwire` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentwire::main()
}
