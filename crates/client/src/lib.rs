//! Who calls: the client of an agentwire server. It knows the protocol and no engine.
//!
//! [`AgentClient`] speaks to one server, which is named by its address or found through the
//! `server.json` of a data directory; [`Session`] is one of its sessions. What a session does is read
//! as pages, or as a stream that outlives the connection: [`Events`] keeps its place in the log, so
//! that nothing is lost or doubled when the server restarts.
//!
//! ```no_run
//! # async fn example() -> Result<(), agentwire_client::Error> {
//! use agentwire_client::{AgentClient, Server, Update};
//!
//! let client = AgentClient::new(Server::new("http://127.0.0.1:8080")?.with_token("secret")?);
//! let session = client.session(client.find("1a2b").await?);
//! let mut events = session.events(0);
//! while let Some(update) = events.next().await? {
//!     if let Update::Events(lines) = update {
//!         for (number, line) in lines.iter() {
//!             // `line` is the event's JSON, byte for byte as the server keeps it.
//!             let _ = (number, line);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod discovery;
mod error;
mod lines;
mod session;
mod transport;

pub use client::{AgentClient, OpenRequest};
pub use discovery::Server;
pub use error::Error;
pub use lines::EventLines;
pub use session::{Commands, Details, Events, Page, Pages, Session, Update};
