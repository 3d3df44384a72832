//! Beyond this machine, the server needs a token and encryption, by itself or by a proxy.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::IntoClientRequest as _;

use crate::shared::{PATIENCE, Server};

struct Pair {
    dir: TempDir,
}

impl Pair {
    fn new() -> Self {
        Self::valid((2020, 2200))
    }

    /// A certificate that is valid in these years.
    fn valid((from, to): (i32, i32)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let certificate = params.self_signed(&key).expect("a certificate");
        std::fs::write(dir.path().join("cert.pem"), certificate.pem()).expect("a file");
        std::fs::write(dir.path().join("key.pem"), key.serialize_pem()).expect("a file");
        Self { dir }
    }

    fn certificate(&self) -> String {
        self.dir.path().join("cert.pem").display().to_string()
    }

    fn key(&self) -> String {
        self.dir.path().join("key.pem").display().to_string()
    }

    fn server(&self, more: &[&str]) -> Server {
        let (certificate, key) = (self.certificate(), self.key());
        let mut args = vec!["--tls-cert", &*certificate, "--tls-key", &*key];
        args.extend_from_slice(more);
        Server::with(&args)
    }

    /// A connection that trusts the certificate.
    fn connect(&self, address: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_file(self.certificate()).expect("a certificate");
        roots.add(own).expect("it is one");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        StreamOwned::new(client, stream)
    }

    fn ask(&self, server: &Server, head: &str) -> String {
        let mut stream = self.connect(&server.http);
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().expect("a port")
}

#[test]
fn clients_come_over_tls() {
    let pair = Pair::new();
    let server = pair.server(&[]);
    let found = std::fs::read_to_string(server.data().join("server.json")).expect("a file");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    for said in [&server.ready, &found] {
        assert_eq!(said["http"], format!("https://{}", server.http));
        assert_eq!(said["insights"], format!("wss://{}", server.insights));
    }
    let shown = CertificateDer::from_pem_file(pair.certificate()).expect("a certificate");
    assert_eq!(found["certificate"], STANDARD.encode(shown));
    let host = format!("localhost:{}", port(&server.http));
    let get = |more: &str| {
        let token = &server.token;
        let head = format!(
            "GET /v1/sessions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{more}\
             connection: close\r\n\r\n"
        );
        pair.ask(&server, &head)[..12].to_owned()
    };
    assert_eq!(get(""), "HTTP/1.1 200");
    // Only pages with an https origin are accepted.
    assert_eq!(get(&format!("origin: https://{host}\r\n")), "HTTP/1.1 200");
    assert_eq!(get(&format!("origin: http://{host}\r\n")), "HTTP/1.1 403");
    // A whole session over a WebSocket, at both addresses.
    for (address, path) in [(&server.http, "/rpc"), (&server.insights, "/")] {
        let url = format!("wss://localhost:{}{path}", port(address));
        let mut request = url.into_client_request().expect("a request");
        let bearer = format!("Bearer {}", server.token).parse().expect("a value");
        request.headers_mut().insert("authorization", bearer);
        let (mut socket, _) =
            tungstenite::client(request, pair.connect(address)).expect("the socket opens");
        let call = match path {
            "/rpc" => json!({ "jsonrpc": "2.0", "id": 1, "method": "run",
                "params": { "agent": "demo", "prompt": "/blob 300000\n/say hello" } }),
            _ => json!({ "type": "session.create", "payload": { "prompt": "/say hello",
                "cwd": server.work(), "permission_mode": "default" } }),
        };
        socket.send(tungstenite::Message::text(call.to_string())).expect("it listens");
        loop {
            let text = socket.read().expect("a message").to_string();
            if text.contains("session.completed") || text.contains("\"id\":1") {
                assert!(!text.contains("\"error\""), "{text}");
                break;
            }
        }
    }
    assert_eq!(server.stop(), Some(0));
}

/// Clients that do not speak TLS, or fail in the handshake, cost nobody anything.
#[test]
fn failed_handshakes_cost_nothing() {
    let pair = Pair::new();
    let server = pair.server(&["--max-connections", "20"]);
    let head = format!(
        "GET /v1/sessions HTTP/1.1\r\nhost: localhost:{}\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        port(&server.http),
        server.token
    );
    for nonsense in
        [head.as_bytes(), b"\x16\x03\x01\xff\xff", b"\0\0\0\0", b"\x16\x03\x01\0\x05abcde"]
    {
        for _ in 0..30 {
            let mut stream = server.stream();
            let _ = stream.write_all(nonsense);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(!answer.starts_with(b"HTTP/1.1 2"));
        }
    }
    // Connections that wait in the handshake take no places from clients with a token.
    let waiting: Vec<_> = (0..60).map(|_| server.stream()).collect();
    for _ in 0..10 {
        let answer = pair.ask(&server, &head);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(waiting);
}

/// Starts a server that must refuse to start.
fn refused(args: &[&str]) -> Output {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("config.toml"), "").expect("a file");
    let insights =
        if args.contains(&"--insights") { &[][..] } else { &["--insights", "127.0.0.1:0"] };
    let output = Command::new(env!("CARGO_BIN_EXE_agentwire"))
        .arg("serve")
        .args(insights)
        .args(args)
        .env("AGENTWIRE_DATA_DIR", place.path())
        .env("AGENTWIRE_CONFIG", place.path().join("config.toml"))
        .env_remove("AGENTWIRE_TLS_CERT")
        .env_remove("AGENTWIRE_TLS_KEY")
        .env_remove("AGENTWIRE_PUBLIC_URL")
        .output()
        .expect("it runs");
    assert!(!output.status.success(), "{args:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("\"ready\""), "{args:?} {said}");
    assert!(!place.path().join("server.json").exists());
    output
}

#[test]
fn a_wide_address_needs_more_than_a_port() {
    let pair = Pair::new();
    let (certificate, key) = (pair.certificate(), pair.key());
    let tls = ["--tls-cert", &*certificate, "--tls-key", &*key];
    let (wide, near) = (["--http", "0.0.0.0:0"], ["--http", "127.0.0.1:0"]);
    let proxy = ["--public-url", "https://agents.example"];
    let off = ["--auth", "off"];
    for (args, words) in [
        (wide.to_vec(), "--tls-cert"),
        (vec!["--http", "[::]:0"], "--public-url"),
        (vec!["--http", "127.0.0.1:0", "--insights", "0.0.0.0:0"], "--tls-cert"),
        ([&wide[..], &off].concat(), "loopback"),
        ([&wide[..], &tls, &off].concat(), "loopback"),
        ([&wide[..], &proxy, &off].concat(), "loopback"),
        ([&near[..], &proxy, &off].concat(), "--auth off"),
        ([&near[..], &["--public-url", "http://agents.example"]].concat(), "https"),
        ([&near[..], &["--public-url", "https://agents.example/x"]].concat(), "path"),
        ([&near[..], &tls[..2]].concat(), "--tls-key"),
    ] {
        let said = refused(&args);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains(words), "{args:?} {said}");
    }
    // With everything it needs, it listens and answers to the names it was given.
    let server = pair.server(&["--http", "0.0.0.0:0", "--host", "agents.example"]);
    for (host, status) in [("agents.example", "200"), ("localhost", "200"), ("evil.example", "403")]
    {
        let head = format!(
            "GET /v1/sessions HTTP/1.1\r\nhost: {host}:{}\r\nauthorization: Bearer {}\r\n\
             connection: close\r\n\r\n",
            port(&server.http),
            server.token
        );
        let answer = pair.ask(&server, &head);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host} {answer}");
    }
}

#[test]
fn behind_a_proxy_its_name_is_ours() {
    let server = Server::with(&["--http", "0.0.0.0:0", "--public-url", "https://agents.example"]);
    let bearer = format!("Bearer {}", server.token);
    let get = |host: &str, origin: &str| {
        let headers = [("authorization", &*bearer), ("host", host), ("origin", origin)];
        server.raw("GET", "/v1/sessions", &headers, b"").status
    };
    assert_eq!(get("agents.example", "https://agents.example"), 200);
    assert_eq!(get("Agents.Example:443", "https://agents.example"), 200);
    assert_eq!(get("agents.example", "http://agents.example"), 403);
    assert_eq!(get("agents.example", "https://evil.example"), 403);
    assert_eq!(get("evil.example", "https://evil.example"), 403);
    assert_eq!(server.raw("GET", "/v1/sessions", &[("host", "agents.example")], b"").status, 401);
    let found = std::fs::read_to_string(server.data().join("server.json")).expect("a file");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["publicUrl"], "https://agents.example");
}

#[test]
fn files_that_cannot_serve_are_told_before_anybody_is() {
    let pair = Pair::new();
    let (other, expired) = (Pair::new(), Pair::valid((2000, 2001)));
    let early = Pair::valid((2190, 2200));
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let read = |path: String| std::fs::read_to_string(path).expect("a file");
    let (certificate, key) = (PathBuf::from(pair.certificate()), PathBuf::from(pair.key()));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (certificate, key, words) in [
        (dir.path().join("none"), key.clone(), "failed to read the certificate"),
        (certificate.clone(), dir.path().join("none"), "failed to read the key"),
        (dir.path().to_owned(), key.clone(), "failed to read the certificate"),
        (write("empty", ""), key.clone(), "has no PEM certificate"),
        (certificate.clone(), write("empty", ""), "has no PEM key"),
        (key.clone(), certificate.clone(), "has no PEM certificate"),
        (write("broken", broken), key, "is not a server certificate"),
        (certificate.clone(), write("text", "hello"), "has no PEM key"),
        (certificate, PathBuf::from(other.key()), "does not belong to the certificate"),
        (PathBuf::from(expired.certificate()), PathBuf::from(expired.key()), "expired"),
        (PathBuf::from(early.certificate()), PathBuf::from(early.key()), "not yet valid"),
    ] {
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        let args = ["--http", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
        let said = refused(&args);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains(words), "{words}: {said}");
    }
    // A certificate chain is accepted.
    let chain = write("chain", &(read(pair.certificate()) + &read(other.certificate())));
    let chain = chain.display().to_string();
    let key = pair.key();
    drop(Server::with(&["--tls-cert", &chain, "--tls-key", &key]));
}
