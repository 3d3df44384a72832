//! `serve`, `token` and `trust`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agentwire_server::tokens::Scope;
use clap::{Subcommand, ValueEnum};

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address of the HTTP API and page; port 0 picks a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,

    /// Address of the insights protocol; port 0 picks a free port [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR")]
    pub(crate) insights: Option<SocketAddr>,

    /// Whether clients need a token; `off` is accepted on loopback only
    #[arg(long, value_enum, default_value_t = Auth::Token)]
    pub(crate) auth: Auth,

    /// Additional Host header to accept (repeatable)
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,

    /// TLS certificate chain (PEM, leaf first)
    #[arg(long, value_name = "FILE", env = "AGENTWIRE_TLS_CERT", hide_env_values = true)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", env = "AGENTWIRE_TLS_KEY", hide_env_values = true)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Public address behind a TLS proxy: `https://NAME[:PORT]`
    #[arg(long, value_name = "URL", env = "AGENTWIRE_PUBLIC_URL", hide_env_values = true)]
    pub(crate) public_url: Option<String>,

    /// Maximum number of connections [default: 4096]
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<NonZeroUsize>,

    /// Open the page in your browser, signed in
    #[arg(long)]
    pub(crate) open: bool,

    /// Print the ready line as JSON, also on a terminal
    #[arg(long)]
    pub(crate) ready_json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// Every client needs a token
    Token,
    /// Every local client has full access
    Off,
}

#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB")]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Print the operator's token
    Show,
    /// Create a token and print it once
    Create {
        /// What the token allows
        #[arg(long, value_enum)]
        scope: ScopeArg,
        /// Name, for `token ls` and the log
        #[arg(long, default_value = "unnamed")]
        name: String,
    },
    /// List tokens (secrets are not shown)
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// Token id, as shown by `token ls`
        id: String,
    },
}

#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB")]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) verb: TrustVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustVerb {
    /// List trusted directories and their agents
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop trusting a directory, for every agent
    Revoke {
        /// Directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Read sessions and events
    Watch,
    /// Also start, prompt and stop sessions
    Drive,
    /// Also answer requests
    Approve,
    /// Everything
    Admin,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Watch => Self::Watch,
            ScopeArg::Drive => Self::Drive,
            ScopeArg::Approve => Self::Approve,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

pub(super) const SERVE_HELP: &str = r#"Try it:
  agentwire serve &
  TOKEN=$(agentwire token show)
  curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d '{"agentType":"demo","prompt":"/say hello"}' http://127.0.0.1:8080/v1/sessions
  curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/v1/sessions

Beyond this machine, TLS is required:
  agentwire serve --http 0.0.0.0:8443 --host agents.example --tls-cert cert.pem --tls-key key.pem
  agentwire serve --public-url https://agents.example      # behind a TLS proxy

When it is ready and stderr is not a terminal, or with --ready-json, stderr gets one JSON line:
  {"ready":true,"http":"http://127.0.0.1:8080","insights":"ws://127.0.0.1:8765","tokenFile":"…"}
Ctrl-C or SIGTERM stops it: clients are notified, agents end, nothing is lost.
Reference: docs/server.md"#;

pub(super) const TOKEN_HELP: &str = "\
Examples:
  agentwire token show
  agentwire token create --scope watch --name dashboard
  agentwire token ls
  agentwire token revoke 1f2e3d4c

Scopes: watch reads; drive also starts, prompts and stops sessions; approve also answers requests; \
admin may do everything, including what widens an agent's power. A running server applies changes at once.";
