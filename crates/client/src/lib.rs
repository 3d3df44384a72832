//! The Rust client library of agentwire: start, follow and control sessions of any coding agent through a
//! gateway. The gateway is a server, a child process of your program, or your program itself.
//!
//! ```rust,standalone_crate
//! # use agentwire_client::transport::in_process::InProcessTransport;
//! use agentwire_client::{AgentClient, AgentType, EventKind, Request, SessionRequest};
//!
//! # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
//! # let client = AgentClient::over(InProcessTransport::with_settings(trial.settings()).await?);
//! # if false {
//! let client = AgentClient::connect().await?;
//! # }
//! let prompt = "/say Hello.\n/bash echo hi"; // a script for the demo agent
//! let session = client.create(SessionRequest::new(AgentType::Demo, prompt)).await?;
//! let mut events = session.events();
//! let mut said = String::new();
//! while let Some(event) = events.try_next().await? {
//!     if let Some(request) = event.request() {
//!         match request {
//!             Request::Permission(asked) => asked.allow().await?,
//!             other => other.deny("nobody is there to answer").await?,
//!         };
//!     }
//!     if let EventKind::TextChunk(chunk) = &event.kind {
//!         said.push_str(&chunk.content.decode());
//!     }
//!     if event.ends_turn() {
//!         break;
//!     }
//! }
//! assert_eq!(said, "Hello.");
//! assert!(session.usage().total_tokens > 0);
//! client.close().await; // otherwise a child process is killed in the middle of its work
//! # Ok::<_, agentwire_client::AgentError>(()) }) }
//! ```
//!
//! - [`AgentClient`] is a client of one gateway. [`ClientBuilder`] finds the gateway, and a [`Transport`]
//!   connects to it.
//! - [`Session`] is one session. [`EventStream`] reads its events over connections that may break: each
//!   event once, in order, and a missing event is reported as a [`Gap`].
//! - [`Request`] is a question of an agent, with methods to answer it.
//! - [`AgentError`] is a failure, with the specification's type and the agent's own message.
//!
//! Everything needs a tokio runtime. `docs/client.md` describes the guarantees.

#![warn(missing_docs)]

mod builder;
mod client;
#[cfg(feature = "http")]
mod discovery;
mod error;
mod event;
mod event_lines;
mod follow;
mod request;
mod session;
mod stream;
pub mod transport;

/// Compiles the programs in the documents.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
#[doc = include_str!("../../../README.md")]
pub struct Documents;

pub use agentwire_protocol as protocol;
pub use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, EventKind, GatewayError, Json,
    LabelChange, OpenRequest, Profile, Prompt, SandboxMode, SessionConfig, SessionDetails,
    SessionId, SessionRequest, SessionSort, SessionState, SessionSummary, Settlement, TokenUsage,
};
pub use tokio_util::sync::CancellationToken;

pub use builder::ClientBuilder;
pub use client::{AgentClient, SessionFilter};
#[cfg(feature = "http")]
pub use discovery::Server;
pub use error::{AgentError, AgentErrorType, Gap};
pub use event::Event;
pub use event_lines::EventLines;
pub use request::{CallbackRequest, PermissionRequest, QuestionRequest, Request};
pub use session::{CancellableSession, OnDrop, Session};
pub use stream::{Batches, EventStream, Update, Updates};
#[cfg(feature = "http")]
pub use transport::http::{HttpTransport, Streaming};
#[cfg(feature = "in-process")]
pub use transport::in_process::InProcessTransport;
pub use transport::scripted::ScriptedTransport;
#[cfg(feature = "stdio")]
pub use transport::stdio::StdioTransport;
pub use transport::{Call, Transport};
