//! Settings of the server: `[server]` of the file, overridden by flags.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::file;
use super::value::Address;
use crate::args::{LogFormat, LogLevel, Serve};

const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const INSIGHTS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8765);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) http: SocketAddr,
    pub(crate) insights: SocketAddr,
    pub(crate) hosts: Vec<String>,
    pub(crate) open: bool,
    pub(crate) connections: Option<usize>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) public_url: Option<String>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) log_format: Option<LogFormat>,
}

impl From<file::Server> for Server {
    fn from(file: file::Server) -> Self {
        let or = |given: Option<Address>, usual| given.map_or(usual, |Address(given)| given);
        Self {
            http: or(file.http, HTTP),
            insights: or(file.insights, INSIGHTS),
            hosts: file.hosts,
            open: file.open,
            connections: file.connections.map(NonZeroUsize::get),
            tls_cert: file.tls_cert,
            tls_key: file.tls_key,
            public_url: file.public_url,
            log_level: file.log_level,
            log_format: file.log_format,
        }
    }
}

impl Server {
    /// Flags override the file, except host names, which add up.
    pub(crate) fn with(mut self, args: &Serve) -> Self {
        self.http = args.http.unwrap_or(self.http);
        self.insights = args.insights.unwrap_or(self.insights);
        self.hosts.extend(args.hosts.iter().cloned());
        self.open |= args.open;
        let most = args.max_connections.map(NonZeroUsize::get);
        self.connections = most.or(self.connections);
        // An empty variable counts as unset.
        let file = |path: &Option<PathBuf>| path.clone().filter(|it| !it.as_os_str().is_empty());
        self.tls_cert = file(&args.tls_cert).or(self.tls_cert);
        self.tls_key = file(&args.tls_key).or(self.tls_key);
        let public_url = args.public_url.clone().filter(|url| !url.is_empty());
        self.public_url = public_url.or(self.public_url);
        self
    }
}
