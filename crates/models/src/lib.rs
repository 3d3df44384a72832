//! Scripted model servers: the model APIs that coding agents call, on 127.0.0.1, with no key.
//!
//! The prompt itself contains the model's answer, as steps in double square brackets:
//!
//! ```text
//! [[think about it]] [[tool Bash {"command":"echo hi"}]] [[say it printed {result}]]
//! ```
//!
//! [`STEPS`] lists the steps, [`PLACEHOLDERS`] what can be filled into texts. A tool call or a `stop` ends
//! a response; the following steps belong to the next request. The server stores no conversations: it finds
//! the position in a script by counting the model's responses in the request since the last prompt with
//! markers.
//!
//! # How a request is answered
//!
//! ```text
//! bytes ─► server ─► Api::read ─► Conversation ─► ResponseSteps ─► ResponsePlan ─► Api::stream ─► bytes
//! ```
//!
//! # How to add an API
//!
//! 1. Write `NAME.rs` (with `NAME/read.rs` and `NAME/write.rs`) with a unit type that implements
//!    `api::Api`; follow `anthropic`.
//! 2. `owns` says which requests belong to the API, even unknown ones, so that a 404 has its format.
//! 3. `read` parses a request into an `api::ApiCall`: a turn (a `conversation::Conversation`), a value to
//!    answer at once (model lists, token counts), a stream without a script, or unknown.
//! 4. `stream` and `whole` write a `response_plan::ResponsePlan` in the API's format, `failure` an error.
//! 5. `program` returns the command that points the API's program at the server.
//! 6. Add one line to `api::apis`, and a file to `tests/wire` that checks the API over a socket.
//!
//! `read` also recognises calls that a program makes on its own behalf (a title, a summary, a probe) and
//! puts the answer into `Conversation::side`. Such a call never plays the script.

mod anthropic;
mod api;
mod conversation;
mod gemini;
mod json;
mod openai;
mod planner;
mod request_record;
mod response_plan;
mod schema_sample;
mod script;
mod server;
mod stream_body;
mod usage;

pub use api::programs;
pub use request_record::RecordedRequest;
pub use script::{PLACEHOLDERS, STEPS};
pub use server::{ModelServer, Options};
pub use usage::Usage;
