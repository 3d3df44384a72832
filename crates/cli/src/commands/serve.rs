//! `agentwire serve`: runs the server.

mod memory;
mod notify;
mod open;
mod server_file;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use agentwire_server::http::{CONNECTIONS, ListenPolicy, Listener, Setup, Tls};
use agentwire_server::tokens::Tokens;
use agentwire_server::traces::{self, Traces};
use agentwire_sessions::{Hub, process};
use serde::Serialize;
use serde_json::json;

pub(crate) use self::memory::give_back;
use self::server_file::ServerFile;
use crate::args::{Auth, Global, Serve};
use crate::drive::Signals;
use crate::failure::Failure;
use crate::{engine, format, installed, print, settings};

/// How long to wait for the last trace spans to be sent.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// The content of `server.json`, by which other verbs find the server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerInfo<'f> {
    pid: u32,
    http: &'f str,
    insights: &'f str,
    token_file: Option<&'f Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_url: Option<&'f str>,
    /// The server's TLS certificate, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<&'f str>,
    version: &'static str,
}

pub(crate) fn run(global: &Global, args: &Serve) -> Result<(), Failure> {
    give_back();
    let mut loaded = settings::load(global)?;
    loaded.server = loaded.server.with(args);
    let server = &loaded.server;
    print::log(
        global.log_level.or(server.log_level).unwrap_or_default(),
        global.log_format.or(server.log_format).unwrap_or_default(),
    );
    let tls = match (&server.tls_cert, &server.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::load(certificate, key)?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(wrong("--tls-cert and --tls-key must be given together".to_owned()));
        }
    };
    // No agent sees the key, and none reads it without asking.
    loaded.engine.private.extend(server.tls_key.clone());
    loaded.engine.secrets.extend(server.tls_key.clone());
    let public_url = server.public_url.as_ref();
    let public_url = public_url.map(|url| url.parse().map_err(|why| (url, why))).transpose();
    let public_url = public_url
        .map_err(|(url, why): (_, String)| wrong(format!("invalid --public-url {url}: {why}")))?;
    let data_dir = loaded.engine.data_dir.clone();
    engine::make_data_dir(&loaded.engine)?;
    let tokens = match args.auth {
        Auth::Token => Some(Tokens::open(&data_dir)?),
        Auth::Off => None,
    };
    let entrance = ListenPolicy {
        tokens,
        tls,
        public_url,
        hosts: server.hosts.clone(),
        connections: server.connections.unwrap_or(CONNECTIONS),
    };
    process::raise_descriptors();
    let runtime = engine::runtime()?;
    let result = runtime.block_on(serve(loaded, entrance, &data_dir, args.ready_json));
    runtime.shutdown_background();
    result
}

fn wrong(message: String) -> Failure {
    GatewayError::new(ErrorCode::InvalidMessage, message).into()
}

async fn serve(
    loaded: settings::Loaded,
    entrance: ListenPolicy,
    data_dir: &Path,
    ready_json: bool,
) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let server = loaded.server.clone();
    let token_file = entrance.tokens.as_ref().map(|tokens| tokens.main_file().to_owned());
    let certificate = entrance.tls.as_ref().map(|tls| tls.shown().to_owned());
    let public_url = entrance.public_url.as_ref().map(ToString::to_string);
    let (web, socket) = match certificate {
        Some(_) => ("https", "wss"),
        None => ("http", "ws"),
    };
    let listener = Listener::bind(server.http, Some(server.insights), entrance).await?;
    let at = listener.http()?;
    let http = format!("{web}://{at}");
    let insights = listener.insights()?.map(|at| format!("{socket}://{at}")).unwrap_or_default();
    let (named, projects) = (loaded.agent, loaded.projects.clone());
    let hub = engine::hub(loaded).await?;
    let agent =
        named.or_else(|| engine::installed(hub.settings())).unwrap_or_else(engine::built_in);
    hub.follow_index();
    let traces = traces(&hub);
    let (engine, contain) = (hub.settings().clone(), hub.containment().clone());
    let listening = listener.serve(Setup {
        hub: hub.clone(),
        agent,
        projects,
        directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        prices: engine.prices.clone(),
        spans: traces.as_ref().map(|traces| traces.spans().clone()),
        agents: Box::new(move || {
            let (engine, contain) = (engine.clone(), contain.clone());
            Box::pin(async move {
                Json::of(&json!({ "agents": installed::look(&engine, Some(&contain)).await }))
            })
        }),
    })?;
    let info = ServerInfo {
        pid: std::process::id(),
        http: &http,
        insights: &insights,
        token_file: token_file.as_deref(),
        public_url: public_url.as_deref(),
        certificate: certificate.as_deref(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let server_file = ServerFile::publish(data_dir, format!("{}\n", Json::of(&info).get()))?;
    let ready =
        json!({ "ready": true, "http": http, "insights": insights, "tokenFile": token_file });
    print::aside(&match io::stderr().is_terminal() && !ready_json {
        true => welcome(&info, &format!("{web}://{}", near(at))),
        false => ready.to_string(),
    });
    tracing::info!(http, insights, version = env!("CARGO_PKG_VERSION"), "ready");
    notify::notify(notify::READY);
    let page = match server.open {
        true => {
            let page = format!("{web}://{}", near(at));
            let place = token_file.as_deref().and_then(Path::parent).unwrap_or(data_dir);
            Some(open::Page::open(&page, listening.sign_in(), place).await)
        }
        false => None,
    };
    signals.end().await;
    tracing::info!("stopping");
    notify::notify(notify::STOPPING);
    drop(page);
    // Both at once: agents that ignore signals take most of the available time.
    tokio::join!(listening.stop(), hub.shutdown());
    if let Some(traces) = traces {
        traces.finish(LAST_SPANS).await;
    }
    drop(server_file);
    Ok(())
}

/// The text for a terminal when the server is ready.
fn welcome(info: &ServerInfo<'_>, page: &str) -> String {
    let version = info.version;
    let mut text = format!("agentwire {version} is ready\n\n");
    let mut row = |name: &str, value: &str| {
        let value = format::wrapped(value, print::error_columns(), 12, 12);
        let _ = writeln!(text, "  {name:<10}{value}");
    };
    row("Page", page);
    if let Some(url) = info.public_url {
        row("Public", url);
    }
    let needs = if info.token_file.is_some() { " (needs the token)" } else { "" };
    row("API", &format!("{page}/docs{needs}"));
    if !info.insights.is_empty() {
        row("Insights", info.insights);
    }
    match info.token_file {
        Some(file) => {
            row("Token", &file.display().to_string());
            row(
                "Sign in",
                "`agentwire serve --open` opens the page signed in; for another browser or program, \
                 `agentwire token show` prints the token",
            );
        }
        None => row("Token", "not needed: every local client has full access (--auth off)"),
    }
    row("Stop", "Ctrl-C; running agents end, sessions stay and can be resumed");
    text
}

/// The address for clients on this machine of a server that listens on all addresses.
fn near(at: SocketAddr) -> SocketAddr {
    let ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, at.port())
}

/// Starts traces, if OpenTelemetry's variables ask for them. A wrong variable does not stop the
/// server.
fn traces(hub: &Hub) -> Option<Traces> {
    match traces::Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings.map(|settings| Traces::start(hub, settings)),
        Err(why) => {
            tracing::warn!(why, "tracing is off");
            None
        }
    }
}
