//! Finds a server and holds its credentials: address, token and TLS trust.

mod ownership;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use serde::Deserialize;

use crate::error::AgentError;
#[cfg(feature = "tls")]
use crate::transport::http::Prepared;

/// A server: its address, and the token and trust to connect with.
#[derive(Clone)]
pub struct Server {
    is_tls: bool,
    authority: Authority,
    /// The path below a proxy's address; no `/` at the end.
    prefix: String,
    /// `Bearer TOKEN`
    bearer: Option<HeaderValue>,
    pid: Option<u32>,
    trust: Trust,
}

/// How a server proves its identity over TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// A PEM file of certificates to trust in addition to the system's.
    pub(crate) authorities: Option<PathBuf>,
    /// The server's own certificate in base64. Only this one is accepted, for any name.
    pub(crate) own: Option<String>,
    /// The TLS configuration built from the two fields above, shared by all connections.
    #[cfg(feature = "tls")]
    pub(crate) prepared: Prepared,
}

/// How a client locates its server.
#[derive(Clone)]
pub(crate) enum ServerLocation {
    Named(Server),
    /// The server of this data directory, looked up for each connection.
    Found(PathBuf, Credentials),
}

impl ServerLocation {
    pub(crate) fn server(&self) -> Result<Server, AgentError> {
        match self {
            Self::Named(server) => Ok(server.clone()),
            Self::Found(data_dir, credentials) => credentials.apply_to(Server::find(data_dir)?),
        }
    }
}

/// What the user configured. A field that is `None` keeps the value the server published.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Credentials {
    pub(crate) fn apply_to(&self, server: Server) -> Result<Server, AgentError> {
        let server = match &self.ca_file {
            Some(path) => server.trusting(path),
            None => server,
        };
        match (&self.token, &self.token_file) {
            (Some(token), _) => server.with_token(token),
            (None, Some(path)) => server.with_token_file(path),
            (None, None) => Ok(server),
        }
    }
}

/// What `agentwire serve` writes to its data directory. The server holds a lock on the file while it runs.
/// The pid alone proves nothing: another program may have it by now.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerFile {
    pid: u32,
    http: String,
    #[serde(default)]
    token_file: Option<PathBuf>,
    /// The server's TLS certificate, in base64.
    #[serde(default)]
    certificate: Option<String>,
}

impl Server {
    /// A server at an `http` or `https` address.
    pub fn new(url: &str) -> Result<Self, AgentError> {
        // The error does not repeat the address: a wrong one may contain a token.
        let invalid =
            |why: &str| AgentError::invalid(format!("failed to read the server's address: {why}"));
        let uri: Uri = url.trim().parse().map_err(|_| invalid("it is not a URL"))?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(_) | None => return Err(invalid("it must start with http:// or https://")),
        };
        if is_tls && !cfg!(feature = "tls") {
            return Err(invalid("this program was built without TLS"));
        }
        let authority = uri.authority().cloned().ok_or_else(|| invalid("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("it must not contain a token or a password"));
        }
        if uri.query().is_some() {
            return Err(invalid("it must not have a query"));
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { is_tls, authority, prefix, bearer: None, pid: None, trust: Trust::default() })
    }

    /// Adds a token. Fails if the token would travel unencrypted to another machine.
    pub fn with_token(mut self, token: &str) -> Result<Self, AgentError> {
        // A server found through `server.json` runs on this machine, at any address.
        if self.is_exposed() && self.pid.is_none() {
            let message = format!(
                "refusing to send a token to {} without TLS, where others can read it; use an https \
                 address",
                self.url()
            );
            return Err(AgentError::invalid(message));
        }
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| AgentError::invalid("the token contains invalid characters"))?;
        bearer.set_sensitive(true);
        self.bearer = Some(bearer);
        Ok(self)
    }

    /// Adds the token that is in this file.
    pub fn with_token_file(self, path: &Path) -> Result<Self, AgentError> {
        let token = std::fs::read_to_string(path).map_err(|error| {
            let shown = path.display();
            let hint = match error.kind() {
                ErrorKind::NotFound => {
                    "; create a new one with `agentwire token show` on the server's machine"
                }
                _ => "",
            };
            AgentError::invalid(format!("failed to read the token in {shown}: {error}{hint}"))
        })?;
        self.with_token(&token)
    }

    /// Trusts the certificates in this PEM file in addition to the system's.
    pub fn trusting(mut self, certificates: &Path) -> Self {
        self.trust.authorities = Some(certificates.to_owned());
        #[cfg(feature = "tls")]
        {
            self.trust.prepared = Prepared::default();
        }
        self
    }

    /// Finds the server that `server.json` in this data directory names. If that server has exited, the
    /// error says so.
    pub fn find(data_dir: &Path) -> Result<Self, AgentError> {
        ownership::check_data_dir(data_dir)?;
        let place = data_dir.join("server.json");
        let opened = ownership::open(&place).and_then(|mut file| {
            let text = io::read_to_string(&mut file)?;
            Ok((file, text))
        });
        let (file, text) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = "no server is running; start one with `agentwire serve`";
                return Err(AgentError::no_server(message.to_owned()));
            }
            Err(error) => {
                let message = format!("failed to read {}: {error}", place.display());
                return Err(AgentError::invalid(message));
            }
        };
        let server_file: ServerFile = serde_json::from_str(&text).map_err(|error| {
            let message =
                format!("failed to read {}: {error}; restart the server", place.display());
            AgentError::invalid(message)
        })?;
        // Check the lock before the token is sent: another program may listen at that address by now.
        if file.try_lock_shared().is_ok() {
            let message = format!(
                "no server is running: {} belongs to process {}, which has exited; start one with `agentwire serve`",
                place.display(),
                server_file.pid
            );
            return Err(AgentError::no_server(message));
        }
        let mut server = Self::new(&server_file.http)?;
        server.authority = loopback_of(server.authority);
        server.pid = Some(server_file.pid);
        server.trust.own = server_file.certificate;
        let Some(path) = server_file.token_file else { return Ok(server) };
        // The operator may have replaced a lost token since the server started.
        let newer = if path.exists() { None } else { operator_token(data_dir) };
        let path = newer.unwrap_or(path);
        ownership::check_token(&path)?;
        server.with_token_file(&path)
    }

    /// The server's address.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin("http"), self.prefix)
    }

    /// The server's process id, if it was found through `server.json`.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether others can read the traffic: no TLS, and not on this machine.
    pub fn is_exposed(&self) -> bool {
        !self.is_tls && !self.is_loopback()
    }

    pub(crate) fn is_at(&self, address: &Uri) -> bool {
        address.authority() == Some(&self.authority)
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    pub(crate) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls { 443 } else { 80 })
    }

    pub(crate) fn bearer(&self) -> Option<&HeaderValue> {
        self.bearer.as_ref()
    }

    #[cfg(feature = "tls")]
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The full URL of a path on the server; `scheme` is `http` or `ws`.
    pub(crate) fn address(&self, scheme: &str, path: &str) -> String {
        format!("{}{}{path}", self.origin(scheme), self.prefix)
    }

    fn origin(&self, scheme: &str) -> String {
        let secure = if self.is_tls { "s" } else { "" };
        format!("{scheme}{secure}://{}", self.authority)
    }

    fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

fn operator_token(data_dir: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Operator {
        file: PathBuf,
    }
    let text = io::read_to_string(ownership::open(&data_dir.join("operator.json")).ok()?).ok()?;
    serde_json::from_str(&text).ok().map(|Operator { file }| file)
}

/// Replaces the wildcard address of a server on this machine with loopback.
fn loopback_of(authority: Authority) -> Authority {
    let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
    let near = match authority.host() {
        "0.0.0.0" => format!("127.0.0.1{port}"),
        "[::]" => format!("[::1]{port}"),
        _ => return authority,
    };
    near.parse().unwrap_or(authority)
}

/// Formatted to fit into a sentence.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server at {}", self.url())
    }
}

/// Does not show the token.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn server_addresses_are_checked() {
        let server = Server::new("http://127.0.0.1:8080/").unwrap();
        assert_eq!(server.url(), "http://127.0.0.1:8080");
        assert_eq!(server.address("ws", "/v1/x?a=1"), "ws://127.0.0.1:8080/v1/x?a=1");
        assert_eq!((server.host(), server.port()), ("127.0.0.1", 8080));
        assert!(!server.is_exposed());
        let server = Server::new("http://[::1]/below/here/").unwrap();
        assert_eq!((server.host(), server.port()), ("::1", 80));
        assert_eq!(server.address("http", "/healthz"), "http://[::1]/below/here/healthz");
        assert!(!server.is_exposed());
        assert!(Server::new("http://agents.example:1").unwrap().is_exposed());
        for wrong in
            ["", "127.0.0.1:8080", "ws://h", "ftp://h", "http://", "http://u:p@h", "http://h?a"]
        {
            assert!(Server::new(wrong).is_err_and(|error| !error.is_retryable()), "{wrong}");
        }
    }

    #[test]
    fn an_invalid_address_shows_no_token() {
        for wrong in ["http://me:secret@h", "http://h?token=secret", "ws://secret@h", "h t:secret"]
        {
            let error = Server::new(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
    }

    #[test]
    fn wildcard_addresses_become_loopback() {
        for (written, reached) in [
            ("0.0.0.0:8443", "127.0.0.1:8443"),
            ("[::]:8443", "[::1]:8443"),
            ("0.0.0.0", "127.0.0.1"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(loopback_of(written.parse().unwrap()), reached);
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let server = Server::new("http://localhost").unwrap().with_token(" secret\n").unwrap();
        assert_eq!(server.bearer().unwrap(), "Bearer secret");
        assert!(!format!("{server:?} {:?}", server.bearer()).contains("secret"));
        assert!(Server::new("http://localhost").unwrap().with_token("a\nb").is_err());
    }

    #[test]
    fn an_unencrypted_token_is_sent_only_to_this_machine() {
        for near in ["http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1", "http://LocalHost"]
        {
            assert!(Server::new(near).unwrap().with_token("t").is_ok(), "{near}");
        }
        for far in [
            "http://10.0.0.1:8080",
            "http://agents.example",
            "http://localhost.agents.example",
            "http://0.0.0.0",
            "http://[::]",
            "http://[::2]",
            "http://127.0.0.1.nip.io",
        ] {
            let refused = Server::new(far).unwrap().with_token("secret").unwrap_err();
            assert!(refused.message().contains("https"), "{far}: {refused}");
            assert!(!refused.message().contains("secret"), "{refused}");
        }
        #[cfg(feature = "tls")]
        assert!(Server::new("https://agents.example").unwrap().with_token("t").is_ok());
    }

    #[test]
    fn a_replaced_token_is_found() {
        let place = tempfile::tempdir().unwrap();
        let (lost, newer) = (place.path().join("lost"), place.path().join("newer"));
        std::fs::write(&newer, "newer").unwrap();
        let write = |name: &str, value: serde_json::Value| {
            std::fs::write(place.path().join(name), value.to_string()).unwrap();
        };
        let file = serde_json::json!({ "pid": 1, "http": "http://127.0.0.1:1", "tokenFile": lost });
        write("server.json", file);
        let held = File::open(place.path().join("server.json")).unwrap();
        held.lock().unwrap();
        let error = Server::find(place.path()).unwrap_err();
        assert!(error.message().contains("token show"), "{error}");
        write("operator.json", serde_json::json!({ "digest": "d", "file": newer }));
        assert_eq!(Server::find(place.path()).unwrap().bearer().unwrap(), "Bearer newer");
    }

    #[test]
    fn files_of_another_user_are_refused() {
        use std::io::Write as _;
        use std::os::unix::fs::{chown, symlink};
        let place = tempfile::tempdir().unwrap();
        let [data, link] = ["it's data", "link"].map(|name| place.path().join(name));
        let secret = data.join("private");
        std::fs::create_dir_all(&secret).unwrap();
        let [server, token] = [data.join("server.json"), secret.join("token")];
        std::fs::write(&token, "secret").unwrap();
        let text =
            serde_json::json!({ "pid": 1, "http": "http://127.0.0.1:1", "tokenFile": token });
        std::fs::write(&server, text.to_string()).unwrap();
        let held = File::open(&server).unwrap();
        held.lock().unwrap();
        symlink(&data, &link).unwrap();
        assert!(Server::find(&data).is_ok() && Server::find(&link).is_ok());
        let refusal = |place: &Path| Server::find(place).unwrap_err().message().to_owned();
        // No server writes a link, so none is read.
        let moved = data.join("moved.json");
        std::fs::rename(&server, &moved).unwrap();
        symlink(&moved, &server).unwrap();
        assert!(refusal(&data).contains("is a link"), "{}", refusal(&data));
        std::fs::rename(&moved, &server).unwrap();
        if !rustix::process::geteuid().is_root() {
            let why = "only root can make a file another user's";
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            return;
        }
        for (path, says) in [
            (&data, r"chown 0 '"),
            (&server, r"mv '"),
            (&token, "cannot be trusted"),
            (&secret, "cannot be trusted"),
        ] {
            chown(path, Some(65534), None).unwrap();
            let message = refusal(&data);
            assert!(message.contains(says) && !message.contains("rm "), "{path:?}: {message}");
            assert!(!message.contains("'it's"), "{message}");
            chown(path, Some(0), None).unwrap();
            assert!(Server::find(&data).is_ok(), "{path:?}");
        }
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert!(refusal(&link).contains("the link"), "{}", refusal(&link));
    }

    #[test]
    fn an_exited_server_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("server.json");
        let failure = || Server::find(place.path()).unwrap_err();
        assert!(failure().is_retryable() && !failure().message().contains("has exited"));
        // Another process may have this pid by now.
        let pid = std::process::id();
        let write = |token: &str| {
            let text = format!(
                r#"{{"pid":{pid},"http":"http://127.0.0.1:1","insights":"","tokenFile":{token}}}"#
            );
            std::fs::write(&file, text).unwrap();
            File::open(&file).unwrap()
        };
        let lock = write("null");
        for _ in 0..2 {
            assert!(failure().is_retryable() && failure().message().contains("has exited"));
        }
        lock.lock().unwrap();
        for _ in 0..2 {
            assert_eq!(Server::find(place.path()).unwrap().pid(), Some(pid));
        }
        let _lock = write("\"/nowhere/at/all\"");
        assert!(!failure().is_retryable());
        std::fs::write(&file, "{").unwrap();
        assert!(!failure().is_retryable());
    }
}
