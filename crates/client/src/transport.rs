//! The ways to a server: calls over HTTP, and a WebSocket for what a session does.

mod http;
mod socket;
#[cfg(feature = "tls")]
mod tls;

use std::io;
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub(crate) use self::http::{Call, Caller, encode};
pub(crate) use self::socket::{Order, follow};
#[cfg(feature = "tls")]
pub(crate) use self::tls::Prepared;
use crate::discovery::Server;
use crate::error::Error;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection, encrypted or not.
pub(crate) type Wire = Box<dyn Duplex>;

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Opens a connection.
async fn dial(server: &Server) -> Result<Wire, Error> {
    let unreachable =
        |why: &dyn std::fmt::Display| Error::Unreachable { at: server.url(), why: why.to_string() };
    let opened = tokio::time::timeout(CONNECT, open(server)).await;
    let opened =
        opened.map_err(|_| Error::TimedOut { at: server.url(), seconds: CONNECT.as_secs() });
    opened?.map_err(|error| unreachable(&error))
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
