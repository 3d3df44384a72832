//! The response to a client when the server is full.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// How long sending the response may take.
const SEND_LIMIT: Duration = Duration::from_secs(1);

/// Tells a client to come back later, and reads what it still sends: closing the connection before that
/// could discard the response.
pub(super) async fn refuse(stream: TcpStream, tls: Option<TlsAcceptor>) {
    let _ = tokio::time::timeout(SEND_LIMIT, async {
        match tls {
            None => send_response(stream).await,
            Some(tls) => send_response(tls.accept(stream).await?).await,
        }
    })
    .await;
}

/// The same without waiting, for when too many clients are being refused already.
pub(super) fn refuse_now(stream: &TcpStream) {
    let _ = stream.try_write(response().as_bytes());
}

async fn send_response(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    stream.write_all(response().as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn response() -> String {
    let body = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"code":"overloaded","detail":"too many clients are connected; try again later"}"#;
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         cache-control: no-store\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
