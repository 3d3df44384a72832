//! Scripted model servers: the model APIs that coding agents call, on 127.0.0.1, with no key.
//!
//! What the model answers stands in the prompt itself, as steps in double square brackets:
//!
//! ```text
//! [[think about it]] [[tool Bash {"command":"echo hi"}]] [[say it printed {result}]]
//! ```
//!
//! [`STEPS`] lists them, [`PLACEHOLDERS`] what is filled into texts. A call of tools and a `stop` end a response; the steps after it
//! belong to the next request. The server keeps no conversations: where a script stands is read
//! from the request, by counting the model's responses since the last prompt that has markers.
//!
//! # The way of a request
//!
//! ```text
//! bytes ─► server ─► Api::read ─► Conversation ─► Scene (script and place) ─► Plan ─► Api::stream ─► bytes
//! ```
//!
//! # How an API is added
//!
//! 1. A file `NAME.rs` (with `NAME/read.rs` and `NAME/write.rs` beside it) with a unit type that
//!    implements `api::Api`; `anthropic` is the model to follow.
//! 2. `owns` says which requests are its own, known or not, so that a 404 has its form.
//! 3. `read` makes an `api::Ask` of a request: a turn (a `conversation::Conversation`), a
//!    value to answer at once (lists of models, counts of tokens), a stream that no script plays,
//!    or unknown.
//! 4. `stream` and `whole` write a `plan::Plan` in the API's words, `failure` an error.
//! 5. `program` says how the program that calls it is told of the server.
//! 6. One line in `api::apis`, and a file in `tests/wire` that reads the API's words from a socket.
//!
//! Reading decides what is a side call of the program (a title, a summary, a probe) and gives its
//! answer in `Conversation::side`; a side call never plays the script.

mod anthropic;
mod api;
mod conversation;
mod gemini;
mod openai;
mod plan;
mod play;
mod record;
mod sample;
mod scene;
mod script;
mod server;
mod usage;

pub use api::programs;
pub use record::Seen;
pub use script::{PLACEHOLDERS, STEPS};
pub use server::{ModelServer, Options};
pub use usage::Usage;
