//! TCP connections to a server, with or without TLS.

use std::io;
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

#[cfg(feature = "tls")]
use super::tls;
use crate::discovery::Server;
use crate::error::AgentError;

/// The time limit for opening a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

pub(super) type Wire = Box<dyn Duplex>;

pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

pub(super) async fn dial(server: &Server) -> Result<Wire, AgentError> {
    let opened = tokio::time::timeout(CONNECT, open(server)).await;
    let opened = opened.map_err(|_| AgentError::timed_out(server, CONNECT.as_secs()))?;
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            AgentError::unreachable(server, format!("{error}; is it running?"))
        }
        _ => AgentError::unreachable(server, error),
    })
}

async fn open(server: &Server) -> io::Result<Wire> {
    let stream = TcpStream::connect((server.host(), server.port())).await?;
    stream.set_nodelay(true)?;
    match server.is_tls() {
        false => Ok(Box::new(stream)),
        #[cfg(feature = "tls")]
        true => tls::wrap(server, stream).await,
        #[cfg(not(feature = "tls"))]
        true => Err(io::ErrorKind::Unsupported.into()),
    }
}
