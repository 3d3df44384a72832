//! A TLS server is verified by its name and authority, or by its own certificate.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentwire_client::{
    AgentClient, AgentError, AgentErrorType, HttpTransport, Server, SessionFilter,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server without sessions, with a certificate for this name.
async fn serve(place: &Path, name: &str) -> (SocketAddr, PathBuf, String) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let file = place.join(format!("{name}.pem"));
    std::fs::write(&file, cert.pem()).expect("a file");
    let key = PrivateKeyDer::try_from(KeyPair::serialize_der(&signing_key)).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = r#"{"sessions":[]}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, file, STANDARD.encode(cert.der()))
}

async fn sessions(server: Server) -> Result<usize, AgentError> {
    count(&AgentClient::over(HttpTransport::new(server))).await
}

async fn count(client: &AgentClient) -> Result<usize, AgentError> {
    client.sessions(SessionFilter::default()).await.map(|sessions| sessions.len())
}

fn is_unreachable(failed: Result<usize, AgentError>) -> bool {
    failed.is_err_and(|error| {
        error.kind() == AgentErrorType::ConnectionFailed
            && error.message().starts_with("failed to reach")
    })
}

fn at(host: &str, address: SocketAddr) -> Server {
    Server::new(&format!("https://{host}:{}", address.port())).expect("an address")
}

#[tokio::test]
async fn a_server_is_verified_by_name_and_authority() {
    let place = TempDir::new().expect("a directory");
    let (address, certificate, _) = serve(place.path(), "localhost").await;
    let server = at("localhost", address);
    assert!(is_unreachable(sessions(server.clone()).await));
    assert_eq!(sessions(server.clone().trusting(&certificate)).await, Ok(0));
    let by_another_name = at("127.0.0.1", address).trusting(&certificate);
    assert!(is_unreachable(sessions(by_another_name).await));
    let missing = sessions(server.trusting(&place.path().join("none"))).await;
    assert!(missing.is_err_and(|error| error.to_string().contains("failed to read")));
}

/// The server on this machine is verified by the certificate it published, for any name. After a restart it
/// may have another.
#[tokio::test]
async fn a_found_server_is_verified_by_its_own_certificate() {
    let place = TempDir::new().expect("a directory");
    let (address, _, certificate) = serve(place.path(), "agents.example").await;
    let (other, _, renewed) = serve(place.path(), "other.example").await;
    let write = |address: SocketAddr, certificate: &str| {
        let text = format!(
            r#"{{"pid":{},"http":"https://0.0.0.0:{}","certificate":{certificate:?}}}"#,
            std::process::id(),
            address.port(),
        );
        let file = place.path().join("server.json");
        std::fs::write(&file, text).expect("a file");
        let lock = std::fs::File::open(&file).expect("a file");
        lock.lock().expect("a lock");
        lock
    };
    let lock = write(address, &certificate);
    let client = AgentClient::over(HttpTransport::discover(place.path()).expect("a server"));
    assert_eq!(count(&client).await, Ok(0));
    drop(lock);
    let lock = write(other, &certificate);
    assert!(is_unreachable(count(&client).await));
    drop(lock);
    let _lock = write(other, &renewed);
    assert_eq!(count(&client).await, Ok(0));
}
