//! The listen policy: addresses, host names, tokens, TLS and the number of clients. A server that other
//! machines can reach needs tokens and encryption.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use agentwire_protocol::{ErrorCode, GatewayError};
use http::Uri;

use super::tls::Tls;
use crate::tokens::Tokens;

/// The default maximum number of connected clients.
pub const CONNECTIONS: usize = 4096;

#[derive(Debug)]
pub struct ListenPolicy {
    /// The tokens; without them, any client is allowed.
    pub tokens: Option<Tokens>,
    pub tls: Option<Tls>,
    /// The address of a proxy that encrypts, if there is one in front of this server.
    pub public_url: Option<PublicUrl>,
    /// Further names for the `Host` header.
    pub hosts: Vec<String>,
    pub connections: usize,
}

impl ListenPolicy {
    /// Refuses addresses at which clients from other machines would not be authenticated or encrypted.
    pub fn check(&self, addresses: &[SocketAddr]) -> Result<(), GatewayError> {
        let refused = |message: String| Err(GatewayError::new(ErrorCode::Forbidden, message));
        let wide = addresses.iter().find(|at| !at.ip().is_loopback());
        if self.tokens.is_none() && (wide.is_some() || self.public_url.is_some()) {
            return refused(
                "--auth off is only for loopback addresses without a proxy: anyone who reaches \
                 the server could run any command"
                    .to_owned(),
            );
        }
        match wide {
            Some(at) if self.tls.is_none() && self.public_url.is_none() => refused(format!(
                "{at} can be reached from other machines, and tokens would be sent unencrypted: give \
                 --tls-cert and --tls-key, or --public-url https://NAME if a proxy in front of it \
                 encrypts, or listen on a loopback address such as 127.0.0.1"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// The address of a proxy that encrypts: `https://NAME[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    authority: String,
}

impl PublicUrl {
    /// The origin, as browsers send it.
    pub fn origin(&self) -> String {
        format!("https://{}", self.authority)
    }

    /// The accepted values of the `Host` header.
    pub(super) fn hosts(&self) -> impl Iterator<Item = String> {
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let with_port = (!has_port).then(|| format!("{}:443", self.authority));
        [self.authority.clone()].into_iter().chain(with_port)
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin())
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{why}; use https://NAME or https://NAME:PORT");
        let url: Uri = text.parse().map_err(|_| wrong("it is not a URL"))?;
        let authority = url.authority().ok_or_else(|| wrong("it has no host name"))?;
        if url.scheme_str() != Some("https") {
            return Err(wrong("the proxy must use https"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(wrong("it must not have a path or a query"));
        }
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong("it must be a host name, optionally with a port"));
        }
        let authority = authority.as_str().to_ascii_lowercase();
        let authority = authority.strip_suffix(":443").unwrap_or(&authority).to_owned();
        Ok(Self { authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(has_token: bool, public_url: Option<&str>) -> (ListenPolicy, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let policy = ListenPolicy {
            tokens: has_token.then(|| Tokens::open(dir.path()).expect("tokens")),
            tls: None,
            public_url: public_url.map(|url| url.parse().expect("an address")),
            hosts: Vec::new(),
            connections: CONNECTIONS,
        };
        (policy, dir)
    }

    #[test]
    fn beyond_this_machine_needs_a_token_and_a_wire_that_nobody_reads() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (near, far) = (at("127.0.0.1:1"), at("0.0.0.0:1"));
        let proxy = Some("https://agents.example");
        for (has_token, public_url, addresses, may) in [
            (true, None, vec![near, at("[::1]:1"), at("127.9.9.9:1")], true),
            (true, None, vec![near, far], false),
            (true, None, vec![at("[::]:1")], false),
            (true, None, vec![at("192.0.2.1:1")], false),
            (true, proxy, vec![far], true),
            (true, proxy, vec![near], true),
            (false, None, vec![near], true),
            (false, None, vec![far], false),
            (false, proxy, vec![far], false),
            (false, proxy, vec![near], false),
        ] {
            let (policy, _dir) = policy(has_token, public_url);
            assert_eq!(policy.check(&addresses).is_ok(), may, "{addresses:?} {public_url:?}");
        }
    }

    #[test]
    fn a_public_address_is_a_whole_site_over_https() {
        let hosts = |text: &str| -> Vec<String> {
            text.parse::<PublicUrl>().expect("an address").hosts().collect()
        };
        assert_eq!(hosts("https://Agents.example/"), ["agents.example", "agents.example:443"]);
        assert_eq!(hosts("https://agents.example:443").len(), 2);
        assert_eq!(hosts("https://agents.example:8443"), ["agents.example:8443"]);
        assert_eq!(hosts("https://[2001:db8::1]"), ["[2001:db8::1]", "[2001:db8::1]:443"]);
        for wrong in [
            "",
            "agents.example",
            "http://agents.example",
            "https://",
            "https://agents.example/path",
            "https://agents.example?x",
            "https://user@agents.example",
            "wss://agents.example",
            "https://a b",
        ] {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }
}
