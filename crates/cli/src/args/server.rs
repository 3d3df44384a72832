//! The server's words.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agentwire_server::tokens::Scope;
use clap::{Subcommand, ValueEnum};

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 picks one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,

    /// Where the insights wire listens; port 0 picks one [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR")]
    pub(crate) insights: Option<SocketAddr>,

    /// Whether clients need a token; `off` only where nobody but this machine can come
    #[arg(long, value_enum, default_value_t = Auth::Token)]
    pub(crate) auth: Auth,

    /// A further name under which clients reach the server, as their Host header has it
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,

    /// The certificate to encrypt with, in PEM, those that vouch for it after it
    #[arg(long, value_name = "FILE", env = "AGENTWIRE_TLS_CERT", hide_env_values = true)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "AGENTWIRE_TLS_KEY", hide_env_values = true)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Where a proxy that encrypts offers this server: `https://NAME[:PORT]`
    #[arg(long, value_name = "URL", env = "AGENTWIRE_PUBLIC_URL", hide_env_values = true)]
    pub(crate) public_url: Option<String>,

    /// How many clients may be connected at once [default: 4096]
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<NonZeroUsize>,

    /// Open the server's page in your browser, signed in
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// Every client needs one
    Token,
    /// Everyone may do everything
    Off,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Print the operator's own token
    Show,
    /// Make a token; it is printed this once
    Create {
        /// What it allows
        #[arg(long, value_enum)]
        scope: ScopeArg,
        /// Whose it is
        #[arg(long, default_value = "unnamed")]
        name: String,
    },
    /// List tokens, but not themselves
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// Its id, as `token ls` has it
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) verb: TrustVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustVerb {
    /// List the directories that are trusted, and for which agent
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget that a directory is trusted, for every agent
    Revoke {
        /// The directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Read sessions and events
    Watch,
    /// Start, prompt and stop sessions, too
    Drive,
    /// Answer requests, too
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

Other machines reach it only encrypted:
  agentwire serve --http 0.0.0.0:8443 --host agents.example --tls-cert cert.pem --tls-key key.pem
  agentwire serve --public-url https://agents.example      # behind a proxy that encrypts

One JSON line on stderr says when it listens:
  {"ready":true,"http":"http://127.0.0.1:8080","insights":"ws://127.0.0.1:8765","tokenFile":"…"}
SIGTERM or Ctrl-C ends it: clients are told, agents end, everything is kept. docs/server.md has it all."#;

pub(super) const TOKEN_HELP: &str = "\
Examples:
  agentwire token show
  agentwire token create --scope watch --name dashboard
  agentwire token ls
  agentwire token revoke 1f2e3d4c

Scopes: watch reads; drive starts, prompts and stops; approve answers what agents ask; admin may do
everything, also what widens an agent's power. A running server knows of every change at once.";
