//! What the test programs share: a test's directories, the program on pipes, a running server.

mod claude;
mod home;
mod http;
mod processes;
mod program;
mod server;
mod skip;

pub(crate) use claude::ClaudeClient;
pub(crate) use home::{AGENTWIRE, Home, PATIENCE, error, text, write_program};
pub(crate) use http::{Answer, Socket, read_answer};
pub(crate) use processes::{marked, naming, working_in};
pub(crate) use program::{Ended, Program};
pub(crate) use server::Server;
pub(crate) use skip::{BROWSER, REAL, SDKS, skipped};
