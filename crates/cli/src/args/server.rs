//! `serve`, `token` and `trust`.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agentwire_server::tokens::Scope;
use clap::{Subcommand, ValueEnum};

use super::{Choice, one_of, positive_size};

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address of the HTTP API and page; port 0 picks a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,

    /// Address of the insights protocol; port 0 picks a free port [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR", value_parser = address)]
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
    #[arg(long, value_name = "N", value_parser = positive_size)]
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
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Print the operator's token
    #[command(after_long_help = SHOW_HELP)]
    Show,
    /// Create a token and print it once
    #[command(after_long_help = CREATE_HELP)]
    Create {
        /// What the token allows
        #[arg(long, value_parser = one_of(SCOPES))]
        scope: Scope,
        /// Name, for `token ls` and the log
        #[arg(long, default_value = "unnamed")]
        name: String,
    },
    /// List tokens (secrets are not shown)
    #[command(after_long_help = TOKEN_LS_HELP)]
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    #[command(after_long_help = REVOKE_HELP)]
    Revoke {
        /// Token id, as shown by `token ls`
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
    /// List trusted directories and their agents
    #[command(after_long_help = TRUST_LS_HELP)]
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop trusting a directory, for every agent
    #[command(after_long_help = DISTRUST_HELP)]
    Revoke {
        /// Directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

const SCOPES: &[Choice<Scope>] = &[
    ("watch", Scope::Watch, "Read sessions and events"),
    ("drive", Scope::Drive, "Also start, prompt and stop sessions"),
    ("approve", Scope::Approve, "Also answer requests"),
    ("admin", Scope::Admin, "Everything"),
];

/// An address; without a host, or with `localhost`, on this machine only.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    let port: u16 =
        port.parse().map_err(|_| "expected IP:PORT, such as 127.0.0.1:8080".to_owned())?;
    Ok((Ipv4Addr::LOCALHOST, port).into())
}

pub(super) const SERVE_HELP: &str = r#"Try it:
  agentwire serve &
  TOKEN=$(agentwire token show)
  curl -s --retry 9 --retry-connrefused \
    -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d '{"agentType":"demo","prompt":"/say hello"}' http://127.0.0.1:8080/v1/sessions
  curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/v1/sessions

Beyond this machine, TLS is required:
  agentwire serve --http 0.0.0.0:8443 --host agents.example \
    --tls-cert cert.pem --tls-key key.pem
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

const SHOW_HELP: &str = "\
Examples:
  agentwire token show
  TOKEN=$(agentwire token show)

The token is created if there is none.";

const CREATE_HELP: &str = "\
Examples:
  agentwire token create --scope watch --name dashboard
  agentwire token create --scope drive --name ci > ci.token";

const TOKEN_LS_HELP: &str = "\
Examples:
  agentwire token ls
  agentwire token ls --json | jq -r '.tokens[].name'";

const REVOKE_HELP: &str = "\
Examples:
  agentwire token revoke 1f2e3d4c";

pub(super) const TRUST_HELP: &str = "\
Examples:
  agentwire trust ls
  agentwire trust revoke ~/project

You trust a directory when a session asks, or with `agentwire run --trust`. Reference: docs/trust.md";

const TRUST_LS_HELP: &str = "\
Examples:
  agentwire trust ls
  agentwire trust ls --json | jq -r '.trusted[].directory'";

const DISTRUST_HELP: &str = "\
Examples:
  agentwire trust revoke ~/project";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_loopback() {
        let read = |text| address(text).map(|address| address.to_string());
        for (text, address) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:8080", "[::1]:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("0", "127.0.0.1:0"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(address));
        }
        for text in ["", "localhost", "agents.example:80", "127.0.0.1", "99999", "::1:8080:x", ":"]
        {
            let error = read(text).expect_err(text);
            assert_eq!(error, "expected IP:PORT, such as 127.0.0.1:8080");
        }
    }
}
