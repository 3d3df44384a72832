//! Which gateway a client talks to, and how: what is named, else what answers.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::client::{AgentClient, BUFFER, PATIENCE};
#[cfg(feature = "http")]
use crate::discovery::{Equipment, Server};
use crate::error::{AgentError, AgentErrorType};
#[cfg(feature = "http")]
use crate::transport::Call;
use crate::transport::Transport;
#[cfg(feature = "http")]
use crate::transport::http::{HttpTransport, Streaming};
#[cfg(feature = "stdio")]
use crate::transport::stdio::StdioTransport;

/// The program's name.
const PROGRAM: &str = "agentwire";

/// How a client finds its gateway. What is said here wins over the environment; what is said nowhere is
/// looked for:
///
/// 1. the server at [`Self::url`], and no other; or at `AGENTWIRE_URL`, unless [`Self::data_dir`] or
///    [`Self::program`] is said;
/// 2. the server that runs on this machine, which says where it is in the data directory
///    ([`Self::data_dir`], `AGENTWIRE_DATA_DIR`, or the usual one). If it answers it is that or none: one
///    that refuses us is an error;
/// 3. a child of this program: `agentwire unified`, the program being [`Self::program`], `AGENTWIRE_BIN` or
///    the one on `PATH`.
///
/// The token of a server is [`Self::token`], that in [`Self::token_file`], or `AGENTWIRE_TOKEN`; the server
/// on this machine has said where its own is, which only the first two replace.
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
    /// The server at this address.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// With this token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// With the token in this file.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// Trusting the certificates in this PEM file, beside those that the system trusts.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Where the server on this machine says where it is, and where a child keeps its sessions.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// The program to start where there is no server: a path, or a name on `PATH`.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// How events come from a server; what does not get through is left for what is simpler all the same.
    #[cfg(feature = "http")]
    pub fn streaming(mut self, streaming: Streaming) -> Self {
        self.streaming = streaming;
        self
    }

    /// How many bytes of a session's events may wait for their reader, 1 MiB unless it is said. Once there
    /// are so many, no more are read from the gateway; nothing is dropped.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer = bytes;
        self
    }

    /// How long a gateway may be away before a stream gives it up, two minutes unless it is said.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where sessions work whose config says nothing of it: a directory of the gateway's machine. Without
    /// this, where the gateway runs.
    pub fn working_directory(mut self, path: impl Into<String>) -> Self {
        self.working_directory = Some(path.into());
        self
    }

    /// A client of the gateway that was found.
    pub async fn connect(self) -> Result<AgentClient, AgentError> {
        let transport = self.select_transport().await?;
        let client = self.client(transport);
        // A server has answered, and a child is started when it is wanted.
        client.note_there();
        Ok(client)
    }

    /// A client over that transport, with what was said here of sessions: buffer, patience, directory.
    pub fn over(self, transport: impl Transport) -> AgentClient {
        self.client(Arc::new(transport))
    }

    fn client(self, transport: Arc<dyn Transport>) -> AgentClient {
        AgentClient::new(transport, self.buffer, self.patience, self.working_directory)
    }

    /// The way to the gateway that was found; if there is none, the error names all that was tried.
    pub async fn select_transport(&self) -> Result<Arc<dyn Transport>, AgentError> {
        #[cfg_attr(
            not(any(feature = "http", feature = "stdio")),
            expect(unused_mut, reason = "without a way there is nothing to try")
        )]
        let mut tried = Vec::<String>::new();
        #[cfg(feature = "http")]
        {
            let is_here = self.data_dir.is_some() || self.program.is_some();
            let told = || self.variable("AGENTWIRE_URL").filter(|_| !is_here);
            if let Some(url) = self.url.clone().or_else(told) {
                let mut equipment = self.equipment();
                if equipment.token_file.is_none() {
                    let told = || self.variable("AGENTWIRE_TOKEN");
                    equipment.token = equipment.token.or_else(told);
                }
                let server = equipment.put_on(Server::new(&url)?)?;
                return self.answering(HttpTransport::new(server)).await;
            }
            match self.local().await {
                Ok(transport) => return Ok(transport),
                Err(error) if is_away(&error) => tried.push(error.to_string()),
                // It is there, and its sessions are its own: a child beside it would not do.
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

    /// The server on this machine.
    #[cfg(feature = "http")]
    async fn local(&self) -> Result<Arc<dyn Transport>, AgentError> {
        let data_dir = self.usual_data_dir().ok_or_else(|| {
            let message = "there is no home directory; set AGENTWIRE_DATA_DIR";
            AgentError::new(AgentErrorType::ConnectionFailed, message)
        })?;
        self.answering(HttpTransport::discover_with(&data_dir, self.equipment())?).await
    }

    /// That server, if it answers and lets us in.
    #[cfg(feature = "http")]
    async fn answering(&self, transport: HttpTransport) -> Result<Arc<dyn Transport>, AgentError> {
        let transport = transport.with_streaming(self.streaming);
        transport.call(Call::List { only_live: true, after: None, limit: 1 }).await?;
        Ok(Arc::new(transport))
    }

    #[cfg(feature = "http")]
    fn equipment(&self) -> Equipment {
        let Self { token, token_file, ca_file, .. } = self.clone();
        Equipment { token, token_file, ca_file }
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

    /// The program to start, or why there is none.
    #[cfg_attr(not(feature = "stdio"), expect(dead_code, reason = "a child is a feature"))]
    fn found_program(&self) -> Result<PathBuf, String> {
        let given = self.program.clone().or_else(|| self.variable("AGENTWIRE_BIN").map(Into::into));
        let name = given.unwrap_or_else(|| PROGRAM.into());
        if name.as_os_str().as_encoded_bytes().contains(&b'/') {
            return match is_program(&name) {
                true => Ok(name),
                false => Err(format!("{} is no program that can be started", name.display())),
            };
        }
        let path = (self.environment)("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(&name))
            .find(|program| is_program(program));
        found.ok_or_else(|| {
            let name = name.display();
            format!("{name} is not on PATH; install it, or name it by AGENTWIRE_BIN")
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?.into_string().ok()?;
        Some(value).filter(|value| !value.trim().is_empty())
    }
}

/// Whether there is no server, or none that says anything.
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

/// Tokens stay unsaid, and so does what may hold one: an address that is none of a server.
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
#[path = "select_tests.rs"]
mod tests;
