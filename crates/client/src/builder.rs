//! [`ClientBuilder`]: selects the gateway and how to connect to it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::client::{AgentClient, BUFFER, PATIENCE};
#[cfg(feature = "http")]
use crate::discovery::{Credentials, Server};
use crate::error::{AgentError, AgentErrorType};
#[cfg(feature = "http")]
use crate::transport::Call;
use crate::transport::Transport;
#[cfg(feature = "http")]
use crate::transport::http::{HttpTransport, Streaming};
#[cfg(feature = "stdio")]
use crate::transport::stdio::StdioTransport;
#[cfg(feature = "http")]
use agentwire_protocol::ListQuery;

const PROGRAM: &str = "agentwire";

/// Selects the gateway of a client.
///
/// ```rust,no_run
/// use std::time::Duration;
///
/// use agentwire_client::{AgentClient, AgentError};
///
/// async fn connect() -> Result<AgentClient, AgentError> {
///     AgentClient::builder()
///         .url("http://127.0.0.1:8080")
///         .token_file("/run/secrets/agentwire")
///         .patience(Duration::from_secs(30))
///         .connect()
///         .await
/// }
/// ```
///
/// Values set here take precedence over the environment. The first of these that applies is used:
///
/// 1. The server at [`Self::url`], and no other. Without it, the server at `AGENTWIRE_URL`, unless
///    [`Self::data_dir`] or [`Self::program`] is set.
/// 2. The server that runs on this machine, found through the data directory ([`Self::data_dir`],
///    `AGENTWIRE_DATA_DIR`, or the default). If it answers, no other gateway is tried: a refusal is an
///    error.
/// 3. A child process `agentwire unified`. The program is [`Self::program`], `AGENTWIRE_BIN`, or the
///    `agentwire` on `PATH`.
///
/// The token for a server is [`Self::token`], the content of [`Self::token_file`], or `AGENTWIRE_TOKEN`.
/// The server on this machine publishes its own token; only the first two replace it.
#[derive(Clone)]
pub struct ClientBuilder {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    program: Option<PathBuf>,
    #[cfg(feature = "http")]
    streaming: Streaming,
    buffer: usize,
    patience: Duration,
    working_directory: Option<String>,
    environment: fn(&str) -> Option<OsString>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            url: None,
            token: None,
            token_file: None,
            ca_file: None,
            data_dir: None,
            program: None,
            #[cfg(feature = "http")]
            streaming: Streaming::default(),
            buffer: BUFFER,
            patience: PATIENCE,
            working_directory: None,
            environment: |name| std::env::var_os(name),
        }
    }
}

impl ClientBuilder {
    /// Use the server at this address.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Send this token to the server.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Send the token in this file to the server.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// Trust the certificates in this PEM file in addition to the system's.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// The data directory in which to look for a server on this machine, and in which a child process
    /// stores its sessions.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// The program to start if there is no server: a path, or a name on `PATH`.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// How to receive events from a server. If this does not work on the network, a simpler way is used.
    #[cfg(feature = "http")]
    pub fn streaming(mut self, streaming: Streaming) -> Self {
        self.streaming = streaming;
        self
    }

    /// How many bytes of a session's events may wait for the reader; 1 MiB by default. When the buffer is
    /// full, the client stops reading from the gateway; no event is dropped.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer = bytes;
        self
    }

    /// How long the gateway may be unreachable before a stream fails; two minutes by default.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The working directory for sessions whose config has none, on the gateway's machine. Without it, they
    /// work in the gateway's own directory.
    pub fn working_directory(mut self, path: impl Into<String>) -> Self {
        self.working_directory = Some(path.into());
        self
    }

    /// Selects a gateway and connects to it.
    pub async fn connect(self) -> Result<AgentClient, AgentError> {
        let transport = self.select_transport().await?;
        let client = self.client(transport);
        // A server has just answered; a child process starts when it is needed.
        client.note_answered();
        Ok(client)
    }

    /// Makes a client that uses this transport, with the buffer, patience and working directory set here.
    pub fn over(self, transport: impl Transport) -> AgentClient {
        self.client(Arc::new(transport))
    }

    fn client(self, transport: Arc<dyn Transport>) -> AgentClient {
        AgentClient::new(transport, self.buffer, self.patience, self.working_directory)
    }

    /// Selects the transport to a gateway. If there is none, the error lists everything that was tried.
    pub async fn select_transport(&self) -> Result<Arc<dyn Transport>, AgentError> {
        #[cfg_attr(
            not(any(feature = "http", feature = "stdio")),
            expect(unused_mut, reason = "without a transport there is nothing to try")
        )]
        let mut tried = Vec::<String>::new();
        #[cfg(feature = "http")]
        {
            let is_here = self.data_dir.is_some() || self.program.is_some();
            let from_environment = || self.variable("AGENTWIRE_URL").filter(|_| !is_here);
            if let Some(url) = self.url.clone().or_else(from_environment) {
                let mut credentials = self.credentials();
                if credentials.token_file.is_none() {
                    let from_environment = || self.variable("AGENTWIRE_TOKEN");
                    credentials.token = credentials.token.or_else(from_environment);
                }
                let server = credentials.apply_to(Server::new(&url)?)?;
                return self.verified(HttpTransport::new(server)).await;
            }
            match self.local_server().await {
                Ok(transport) => return Ok(transport),
                Err(error) if is_away(&error) => tried.push(error.to_string()),
                // The server owns its sessions, so a child process beside it is no substitute.
                Err(error) => return Err(error),
            }
        }
        #[cfg(feature = "stdio")]
        match self.found_program() {
            Ok(program) => {
                let mut child = StdioTransport::new(program);
                if let Some(data_dir) = &self.data_dir {
                    child = child.env("AGENTWIRE_DATA_DIR", data_dir);
                }
                return Ok(Arc::new(child));
            }
            Err(why) => tried.push(why),
        }
        let message = format!("failed to find a gateway: {}", tried.join("; "));
        Err(AgentError::new(AgentErrorType::ConnectionFailed, message).retryable())
    }

    #[cfg(feature = "http")]
    async fn local_server(&self) -> Result<Arc<dyn Transport>, AgentError> {
        let data_dir = self.usual_data_dir().ok_or_else(|| {
            let message = "there is no home directory; set AGENTWIRE_DATA_DIR";
            AgentError::new(AgentErrorType::ConnectionFailed, message)
        })?;
        self.verified(HttpTransport::discover_with(&data_dir, self.credentials())?).await
    }

    /// Returns the transport if the server answers and accepts the token.
    #[cfg(feature = "http")]
    async fn verified(&self, transport: HttpTransport) -> Result<Arc<dyn Transport>, AgentError> {
        let transport = transport.with_streaming(self.streaming);
        transport
            .call(Call::List(Box::new(ListQuery {
                live: true,
                limit: Some(1),
                ..ListQuery::default()
            })))
            .await?;
        Ok(Arc::new(transport))
    }

    #[cfg(feature = "http")]
    fn credentials(&self) -> Credentials {
        let Self { token, token_file, ca_file, .. } = self.clone();
        Credentials { token, token_file, ca_file }
    }

    #[cfg(feature = "http")]
    fn usual_data_dir(&self) -> Option<PathBuf> {
        let path = |name| self.variable(name).map(PathBuf::from);
        let base = || {
            let given = path("XDG_DATA_HOME").filter(|path| path.is_absolute());
            given.or_else(|| Some(path("HOME")?.join(".local/share")))
        };
        self.data_dir
            .clone()
            .or_else(|| path("AGENTWIRE_DATA_DIR"))
            .or_else(|| Some(base()?.join("agentwire")))
    }

    /// The program to start, or the reason that there is none.
    #[cfg_attr(not(feature = "stdio"), expect(dead_code, reason = "a child is a feature"))]
    fn found_program(&self) -> Result<PathBuf, String> {
        let given = self.program.clone().or_else(|| self.variable("AGENTWIRE_BIN").map(Into::into));
        let name = given.unwrap_or_else(|| PROGRAM.into());
        if name.as_os_str().as_encoded_bytes().contains(&b'/') {
            return match is_program(&name) {
                true => Ok(name),
                false => Err(format!("{} is not an executable program", name.display())),
            };
        }
        let path = (self.environment)("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(&name))
            .find(|program| is_program(program));
        found.ok_or_else(|| {
            let name = name.display();
            format!("{name} is not on PATH; install it or set AGENTWIRE_BIN")
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?.into_string().ok()?;
        Some(value).filter(|value| !value.trim().is_empty())
    }
}

/// Whether no server is there, or it does not answer.
#[cfg(feature = "http")]
fn is_away(error: &AgentError) -> bool {
    let is_silent =
        matches!(error.kind(), AgentErrorType::ConnectionFailed | AgentErrorType::Timeout);
    is_silent && error.code().is_none()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Shows no token, and no address that may contain one because it is not a server's.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientBuilder");
        #[cfg(feature = "http")]
        shown.field("url", &self.url.as_deref().map(Server::new));
        shown
            .field("data_dir", &self.data_dir)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "http", feature = "stdio"))]
#[path = "builder_tests.rs"]
mod tests;
