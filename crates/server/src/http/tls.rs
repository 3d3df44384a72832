//! TLS: reads and checks the certificate and its key before any client is served.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentwire_protocol::{ErrorCode, GatewayError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

#[derive(Clone)]
pub struct Tls {
    certificate: PathBuf,
    shown: String,
    pub(super) acceptor: TlsAcceptor,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate chain (leaf first) and its key. Both are PEM.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, GatewayError> {
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unread("certificate", certificate, &error))?;
        let (named, beside) = (certificate.display(), key.display());
        let [leaf, others @ ..] = chain.as_slice() else {
            return Err(wrong(format!("{named} has no PEM certificate")));
        };
        let secret =
            PrivateKeyDer::from_pem_file(key).map_err(|error| unread("key", key, &error))?;
        let provider = Arc::new(ring::default_provider());
        check_dates(leaf, others, &provider).map_err(|why| wrong(format!("{named} {why}")))?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config.with_no_client_auth().with_single_cert(chain.clone(), secret)
            });
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                wrong(format!("the key in {beside} does not belong to the certificate in {named}"))
            }
            error => wrong(format!("failed to use {named} with {beside}: {error}")),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let shown = STANDARD.encode(leaf);
        Ok(Self { certificate: certificate.to_owned(), shown, acceptor })
    }

    /// The certificate in use, in base64. The file may contain another one by now.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Whether the certificate is valid today. Who signed it, and for which names, is up to the operator and
/// the clients.
fn check_dates(
    leaf: &CertificateDer<'static>,
    others: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(leaf.clone()).map_err(|error| format!("is not a server certificate: {error}"))?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| format!("cannot be checked: {error}"))?;
    let Ok(name) = ServerName::try_from("localhost") else { return Ok(()) };
    match verifier.verify_server_cert(leaf, others, &name, &[], UnixTime::now()) {
        Err(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Err("has expired; renew it".to_owned()),
        Err(Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => Err("is not yet valid; is the clock right?".to_owned()),
        Err(Error::InvalidCertificate(CertificateError::BadEncoding)) => {
            Err("is not a server certificate".to_owned())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn unread(what: &str, path: &Path, error: &pem::Error) -> GatewayError {
    let path = path.display();
    wrong(match error {
        pem::Error::Io(error) => format!("failed to read the {what} {path}: {error}"),
        pem::Error::NoItemsFound if what == "key" => {
            format!("{path} has no PEM key; a key with a password is not supported")
        }
        error => format!("failed to read the {what} {path}: it is not valid PEM: {error}"),
    })
}

fn wrong(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}
