//! TLS: a server must match its address, or show exactly the certificate that it published.

use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::dial::Wire;
use crate::discovery::{Server, Trust};

/// The TLS configuration. Building it reads the system's certificates, which takes a while.
pub(crate) type Prepared = Arc<OnceCell<Arc<ClientConfig>>>;

pub(super) async fn wrap(server: &Server, stream: TcpStream) -> io::Result<Wire> {
    let name = ServerName::try_from(server.host().to_owned()).map_err(io::Error::other)?;
    let trust = server.trust();
    let prepared = trust.prepared.get_or_try_init(|| async {
        let trust = trust.clone();
        let made = tokio::task::spawn_blocking(move || config(&trust)).await;
        made.map_err(io::Error::other)?.map(Arc::new)
    });
    let config = Arc::clone(prepared.await?);
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(Box::new(stream))
}

fn config(trust: &Trust) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    if let Some(own) = &trust.own {
        let own = STANDARD.decode(own).map_err(|error| {
            io::Error::other(format!("failed to read the certificate in server.json: {error}"))
        })?;
        let own = CertificateDer::from(own);
        let verifier = Arc::new(PinnedCertificate { own, provider });
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        return Ok(builder.with_no_client_auth());
    }
    // The system's certificates (`SSL_CERT_FILE` names another list). Unreadable ones are skipped.
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = &trust.authorities {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(io::Error::other)?;
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| {
        let text = format!("failed to read the certificates in {}: {error}", path.display());
        io::Error::other(text)
    })
}

/// Accepts only the certificate that the server on this machine published, for any name. Anyone who can
/// read that file can also read the token.
#[derive(Debug)]
struct PinnedCertificate {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *shown == self.own {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
