//! How clients come in: over what, by which names, with what, and how many. Whoever listens beyond this
//! machine needs a token and a wire that nobody reads along.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use agentwire_protocol::{ErrorCode, GatewayError};
use http::Uri;

use super::tls::Tls;
use crate::tokens::Tokens;

/// How many clients may be connected at once, unless the operator says otherwise.
pub const CONNECTIONS: usize = 4096;

/// How clients come in.
#[derive(Debug)]
pub struct Entrance {
    /// Who may come in; nobody is asked if there are none.
    pub tokens: Option<Tokens>,
    /// What the wire is encrypted with.
    pub tls: Option<Tls>,
    /// Where a proxy that encrypts offers this server.
    pub public_url: Option<PublicUrl>,
    /// Further names under which the server is reached.
    pub hosts: Vec<String>,
    /// How many clients may be connected at once.
    pub connections: usize,
}

impl Entrance {
    /// Refuses addresses at which others than this machine's users could come in as they like.
    pub fn check(&self, addresses: &[SocketAddr]) -> Result<(), GatewayError> {
        let refused = |message: String| Err(GatewayError::new(ErrorCode::Forbidden, message));
        let wide = addresses.iter().find(|at| !at.ip().is_loopback());
        if self.tokens.is_none() && (wide.is_some() || self.public_url.is_some()) {
            return refused(
                "--auth off is only for loopback addresses without a proxy: whoever reaches the \
                 server could run any command"
                    .to_owned(),
            );
        }
        match wide {
            Some(at) if self.tls.is_none() && self.public_url.is_none() => refused(format!(
                "{at} is reached from other machines, and tokens would be read along the way: give \
                 --tls-cert and --tls-key, or --public-url https://NAME if a proxy that encrypts \
                 stands before it, or listen at a loopback address such as 127.0.0.1"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// The address at which a proxy that encrypts offers this server: `https://NAME[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    authority: String,
}

impl PublicUrl {
    /// The origin, as browsers name it.
    pub fn origin(&self) -> String {
        format!("https://{}", self.authority)
    }

    /// What the Host header may be.
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
        let wrong = |why: &str| format!("{why}; give https://NAME or https://NAME:PORT");
        let url: Uri = text.parse().map_err(|_| wrong("it is no address"))?;
        let authority = url.authority().ok_or_else(|| wrong("it has no name"))?;
        if url.scheme_str() != Some("https") {
            return Err(wrong("the proxy must speak https"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(wrong("it must be the whole of a site, without a path"));
        }
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong("it must be a name and a port at most"));
        }
        let authority = authority.as_str().to_ascii_lowercase();
        let authority = authority.strip_suffix(":443").unwrap_or(&authority).to_owned();
        Ok(Self { authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entrance(has_token: bool, public_url: Option<&str>) -> (Entrance, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let entrance = Entrance {
            tokens: has_token.then(|| Tokens::open(dir.path()).expect("tokens")),
            tls: None,
            public_url: public_url.map(|url| url.parse().expect("an address")),
            hosts: Vec::new(),
            connections: CONNECTIONS,
        };
        (entrance, dir)
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
            let (entrance, _dir) = entrance(has_token, public_url);
            assert_eq!(entrance.check(&addresses).is_ok(), may, "{addresses:?} {public_url:?}");
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
