//! Authentication: checks Host, Origin, content type and token before a request is routed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN,
    REFERRER_POLICY, SEC_WEBSOCKET_PROTOCOL, UPGRADE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt as _;

use super::listen_policy::{ListenPolicy, PublicUrl};
use super::problem::Problem;
use super::unauthenticated::UnauthenticatedConnection;
use super::{App, routes};
use crate::tokens::{Caller, Scope, Tokens};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The subprotocol that browsers request along with their ticket.
pub(crate) const SUBPROTOCOL: &str = "agentwire";

/// The values of the `Host` header that this server accepts, each with the origin of its pages.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: BTreeMap<String, String>,
}

impl Hosts {
    pub(crate) fn of(at: SocketAddr, policy: &ListenPolicy) -> Self {
        let public = policy.public_url.as_ref();
        Self::new(at, policy.tls.is_some(), &policy.hosts, public)
    }

    fn new(at: SocketAddr, is_tls: bool, others: &[String], public: Option<&PublicUrl>) -> Self {
        let (scheme, usual) = if is_tls { ("https", 443) } else { ("http", 80) };
        let mut names: Vec<String> = Vec::new();
        if at.ip().is_unspecified() || at.ip().is_loopback() {
            names.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        }
        match at.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => names.push(ip.to_string()),
            IpAddr::V6(ip) => names.push(format!("[{ip}]")),
        }
        names.extend(others.iter().map(|name| name.to_ascii_lowercase()));
        let mut all = BTreeMap::new();
        for name in names {
            let has_port = match name.rsplit_once(':') {
                Some((_, port)) => port.parse::<u16>().is_ok() && !name.ends_with(']'),
                None => false,
            };
            // A name that was given with a port is used unchanged.
            if has_port {
                all.insert(name.clone(), format!("{scheme}://{name}"));
            } else if at.port() == usual {
                let origin = format!("{scheme}://{name}");
                all.insert(format!("{name}:{usual}"), origin.clone());
                all.insert(name, origin);
            } else {
                let name = format!("{name}:{}", at.port());
                all.insert(name.clone(), format!("{scheme}://{name}"));
            }
        }
        if let Some(public) = public {
            all.extend(public.hosts().map(|host| (host, public.origin())));
        }
        Self { names: all }
    }

    /// Checks the host that a request names and the origin it comes from.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = one(headers, &HOST)?
            .ok_or_else(|| Problem::forbidden("the request needs a Host header"))?;
        let is_same = uri.authority().is_none_or(|at| at.as_str().eq_ignore_ascii_case(host));
        let own = self.names.get(&host.to_ascii_lowercase()).filter(|_| is_same);
        let own = own.ok_or_else(|| {
            Problem::forbidden(
                "the Host header does not name this server; add the name with --host",
            )
        })?;
        match one(headers, &ORIGIN)? {
            Some(origin) if !origin.eq_ignore_ascii_case(own) => {
                Err(Problem::forbidden("the request comes from a page of another origin"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks what the browser reports about the page that sent the request. `is_page` is for addresses that a
/// person may open from a link.
pub(crate) fn check_site(headers: &HeaderMap, is_page: bool) -> Result<(), Problem> {
    match one(headers, &SEC_FETCH_SITE)? {
        None | Some("same-origin") => Ok(()),
        Some("none") if is_page => Ok(()),
        Some("cross-site" | "same-site") if is_page => Ok(()),
        Some(_) => Err(Problem::forbidden("the request comes from a page of another site")),
    }
}

/// Checks that a body is JSON, which no HTML form can send. A request without a body needs no type. The
/// caller does not check requests that stop an agent: they are not refused for their type.
pub(crate) fn check_type(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if !matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
        return Ok(());
    }
    let kind = one(headers, &CONTENT_TYPE)?.ok_or_else(Problem::unsupported_type)?;
    let (kind, rest) = kind.split_once(';').unwrap_or((kind, ""));
    let rest = rest.trim().to_ascii_lowercase();
    let is_json = kind.trim().eq_ignore_ascii_case("application/json");
    match is_json && (rest.is_empty() || rest == "charset=utf-8" || rest == "charset=\"utf-8\"") {
        true => Ok(()),
        false => Err(Problem::unsupported_type()),
    }
}

/// The body is not JSON according to its headers. The handler refuses it, unless it denies something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntypedBody;

/// How long a body of unknown length and another type may take to show that it is empty.
const EMPTY_WAIT: Duration = Duration::from_secs(2);

/// Passes on a request whose headers name no JSON body: if it has no body, whatever its headers say, or if
/// its handler checks the type.
async fn untyped(request: Request, problem: Problem) -> Result<Request, Problem> {
    let (mut parts, mut body) = request.into_parts();
    if routes::is_settlement(&parts.method, parts.uri.path()) {
        parts.extensions.insert(UntypedBody);
        return Ok(Request::from_parts(parts, body));
    }
    let is_empty = match body.size_hint().exact() {
        Some(length) => length == 0,
        None => loop {
            let frame = tokio::time::timeout(EMPTY_WAIT, body.frame()).await;
            match frame.map_err(|_| Problem::too_slow(EMPTY_WAIT))? {
                None => break true,
                Some(Ok(frame)) if frame.data_ref().is_none_or(|data| data.is_empty()) => {}
                Some(_) => break false,
            }
        },
    };
    match is_empty {
        true => Ok(Request::from_parts(parts, Body::empty())),
        false => Err(problem),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential<'h> {
    Token(&'h str),
    Ticket(&'h str),
}

pub(crate) fn credential<'h>(
    method: &Method,
    is_socket: bool,
    headers: &'h HeaderMap,
) -> Result<Option<Credential<'h>>, Problem> {
    if let Some(value) = one(headers, &AUTHORIZATION)? {
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        return match scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() {
            true => Ok(Some(Credential::Token(token.trim()))),
            false => Err(Problem::unauthorized("Authorization must be `Bearer TOKEN`")),
        };
    }
    // A ticket is valid only for a WebSocket. In particular, it cannot buy another ticket.
    let is_upgrade = one(headers, &UPGRADE)?.is_some_and(|to| to.eq_ignore_ascii_case("websocket"));
    if !is_upgrade || !is_socket || *method != Method::GET {
        return Ok(None);
    }
    let offered = one(headers, &SEC_WEBSOCKET_PROTOCOL)?.unwrap_or_default();
    let ticket = offered.split(',').find_map(|name| name.trim().strip_prefix("ticket."));
    Ok(ticket.map(Credential::Ticket))
}

/// The headers of every response, unless the response sets its own.
const HEADERS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
];

/// Checks every request before it is routed.
pub(super) async fn authenticate(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match accept_request(&app, request).await {
        Ok((caller, mut request)) => {
            let is_authenticated = app.policy.tokens.is_none() || !caller.id().is_empty();
            if let Some(pending) =
                request.extensions().get::<UnauthenticatedConnection>().filter(|_| is_authenticated)
            {
                pending.authenticated();
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => {
            tracing::info!(why = problem.message(), "client refused");
            problem.into_response()
        }
    };
    let is_refused = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // A client that is refused may not use the connection for another try.
    if is_refused {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn accept_request(app: &App, request: Request) -> Result<(Caller, Request), Problem> {
    let caller = check_request(app, &request)?;
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    let stops = matches!(name, "interrupt" | "stop" | "cancel");
    let is_typed = if stops { Ok(()) } else { check_type(request.method(), request.headers()) };
    match is_typed {
        Ok(()) => Ok((caller, request)),
        Err(problem) => Ok((caller, untyped(request, problem).await?)),
    }
}

fn check_request(app: &App, request: &Request) -> Result<Caller, Problem> {
    let (headers, uri) = (request.headers(), request.uri());
    app.hosts.check(uri, headers)?;
    let is_page = app.is_main && matches!(uri.path(), "/" | "/healthz");
    check_site(headers, is_page)?;
    let is_open = app.is_main && routes::is_open(request.method(), uri.path());
    let caller = match &app.policy.tokens {
        _ if is_open => Caller::without_token("nobody", Scope::Watch),
        None => Caller::without_token("anyone", Scope::Admin),
        Some(tokens) => {
            let is_socket = match app.is_main {
                true => routes::is_socket(uri.path()),
                false => uri.path() == "/",
            };
            caller_of(app, tokens, credential(request.method(), is_socket, headers)?)?
        }
    };
    Ok(caller)
}

fn caller_of(app: &App, tokens: &Tokens, with: Option<Credential<'_>>) -> Result<Caller, Problem> {
    match with {
        Some(Credential::Token(token)) => {
            tokens.caller(token).ok_or_else(|| Problem::unauthorized("unknown token"))
        }
        Some(Credential::Ticket(ticket)) => {
            let caller = app.tickets.redeem(ticket, Instant::now());
            // The token may have been revoked since the ticket was issued.
            let caller = caller.filter(|caller| tokens.knows(caller));
            caller.ok_or_else(|| Problem::unauthorized("the ticket has been used or has expired"))
        }
        None => {
            let message =
                "this needs `Authorization: Bearer TOKEN`; `agentwire token show` prints it";
            Err(Problem::unauthorized(message))
        }
    }
}

/// The value of a header that may appear only once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(Problem::invalid(format!("the header {name} appears more than once")));
    }
    value
        .map(|value| {
            value.to_str().map_err(|_| Problem::invalid(format!("the header {name} is not text")))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"))
        });
        pairs.collect()
    }

    fn multi(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(
                name.parse::<HeaderName>().expect("a name"),
                value.parse().expect("a value"),
            );
        }
        map
    }

    fn local() -> Hosts {
        Hosts::new("127.0.0.1:8080".parse().expect("an address"), false, &[], None)
    }

    #[test]
    fn only_our_own_names_are_hosts() {
        let uri = Uri::from_static("/v1/sessions");
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"] {
            assert!(local().check(&uri, &headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "localhost",
            "localhost:80",
            "localhost:8081",
            "127.0.0.1:08080",
            "127.0.0.1:8080.",
            "localhost.:8080",
            "evil.example",
            "evil.example:8080",
            "127.1:8080",
            "2130706433:8080",
            "0x7f000001:8080",
            "0.0.0.0:8080",
            "[::]:8080",
            "[::ffff:127.0.0.1]:8080",
            "127.0.0.1:8080@evil.example",
            "evil.example@127.0.0.1:8080",
            "127.0.0.1:8080, evil",
            "127.0.0.1.nip.io:8080",
            "localhost.evil.example:8080",
            " localhost:8080",
            "localhost:8080/",
            "localhost:8080#",
            "localhost:8080?",
            "::1:8080",
            "[0:0:0:0:0:0:0:1]:8080",
            "127.0.0.2:8080",
        ] {
            let checked = host.parse::<http::HeaderValue>().map(|value| {
                let mut map = HeaderMap::new();
                map.insert(HOST, value);
                local().check(&uri, &map)
            });
            assert!(!matches!(checked, Ok(Ok(()))), "{host}");
        }
        assert!(local().check(&uri, &HeaderMap::new()).is_err());
        let twice = multi(&[("host", "localhost:8080"), ("host", "localhost:8080")]);
        assert!(local().check(&uri, &twice).is_err());
        let forwarded =
            headers(&[("host", "evil.example"), ("x-forwarded-host", "localhost:8080")]);
        assert!(local().check(&uri, &forwarded).is_err());
        let absolute = Uri::from_static("http://evil.example/v1/sessions");
        assert!(local().check(&absolute, &headers(&[("host", "localhost:8080")])).is_err());
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let uri = Uri::from_static("/");
        let from = |origin| headers(&[("host", "localhost:8080"), ("origin", origin)]);
        assert!(local().check(&uri, &from("http://localhost:8080")).is_ok());
        for origin in [
            "null",
            "http://localhost",
            "https://localhost:8080",
            "http://localhost:8081",
            "http://127.0.0.1:8080",
            "http://evil.example",
            "http://localhost:8080.evil.example",
            "http://localhost:8080/",
            "file://",
            "",
        ] {
            assert!(local().check(&uri, &from(origin)).is_err(), "{origin}");
        }
    }

    #[test]
    fn other_names_are_the_operators_choice() {
        let at = "0.0.0.0:443".parse().expect("an address");
        let others = ["Agents.example".to_owned(), "proxy:9443".to_owned()];
        let hosts = Hosts::new(at, true, &others, None);
        let uri = Uri::from_static("/");
        for host in ["agents.example", "agents.example:443", "proxy:9443", "localhost"] {
            assert!(hosts.check(&uri, &headers(&[("host", host)])).is_ok(), "{host}");
        }
        assert!(hosts.check(&uri, &headers(&[("host", "proxy")])).is_err());
        assert!(hosts.check(&uri, &headers(&[("host", "agents.example:80")])).is_err());
        let page = [("host", "agents.example:443"), ("origin", "https://agents.example")];
        assert!(hosts.check(&uri, &headers(&page)).is_ok());
    }

    #[test]
    fn a_declared_proxy_has_pages_of_its_own() {
        let at = "127.0.0.1:8080".parse().expect("an address");
        let public = "https://agents.example".parse().expect("an address");
        let hosts = Hosts::new(at, false, &[], Some(&public));
        let check = |host, origin| {
            hosts.check(&Uri::from_static("/"), &headers(&[("host", host), ("origin", origin)]))
        };
        assert!(check("agents.example", "https://agents.example").is_ok());
        assert!(check("agents.example:443", "https://agents.example").is_ok());
        assert!(check("localhost:8080", "http://localhost:8080").is_ok());
        for (host, origin) in [
            ("agents.example", "http://agents.example"),
            ("agents.example", "http://localhost:8080"),
            ("localhost:8080", "https://agents.example"),
            ("agents.example:8080", "https://agents.example"),
            ("sub.agents.example", "https://sub.agents.example"),
        ] {
            assert!(check(host, origin).is_err(), "{host} {origin}");
        }
    }

    #[test]
    fn bodies_are_json() {
        let of = |kind| {
            let headers = headers(&[("content-type", kind), ("content-length", "2")]);
            check_type(&Method::POST, &headers).is_ok()
        };
        assert!(of("application/json") && of("Application/JSON; charset=UTF-8"));
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/json2",
            "application/json; charset=latin1",
            "text/plain; application/json",
        ] {
            assert!(!of(kind), "{kind}");
        }
        assert!(check_type(&Method::POST, &HeaderMap::new()).is_err());
        assert!(check_type(&Method::GET, &HeaderMap::new()).is_ok());
    }

    #[test]
    fn a_client_says_who_it_is_by_token_or_ticket() {
        let found = |pairs: &[(&str, &str)]| {
            let map = headers(pairs);
            credential(&Method::GET, true, &map)
                .map(|it| it.map(|it| format!("{it:?}")))
                .map_err(|_| ())
        };
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&[("authorization", "bearer t")]), Ok(Some("Token(\"t\")".to_owned())));
        for wrong in ["Basic t", "Bearer", "Bearer ", "t"] {
            assert_eq!(found(&[("authorization", wrong)]), Err(()), "{wrong}");
        }
        let offered = [("upgrade", "websocket"), ("sec-websocket-protocol", "agentwire, ticket.x")];
        assert_eq!(found(&offered), Ok(Some("Ticket(\"x\")".to_owned())));
        assert_eq!(found(&offered[1..]), Ok(None));
        assert_eq!(credential(&Method::POST, true, &headers(&offered)).ok(), Some(None));
        assert_eq!(credential(&Method::GET, false, &headers(&offered)).ok(), Some(None));
    }
}
