//! The keys of `config.toml`. Their descriptions are part of the schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agentwire_dialects::programs;
use agentwire_protocol::schema::without_null;
use agentwire_protocol::{AgentType, ApprovalMode};
use schemars::generate::SchemaSettings;
use schemars::transform::Transform as _;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::value::{
    Address, ContainmentName, Directory, Dollars, PositiveSeconds, Program, Seconds, StoreName,
    TrustName, count,
};
use crate::args::{LogFormat, LogLevel};

/// The settings of agentwire. Every key is optional. Environment variables and flags override the
/// file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    /// The default agent. If unset: the first installed one.
    pub(super) agent: Option<AgentType>,
    /// How to start each agent.
    pub(super) agents: Agents,
    /// Timeouts and limits.
    pub(super) limits: Limits,
    /// Which tools run without asking, and which never run.
    pub(super) policy: Policy,
    /// How agents' processes are contained.
    pub(super) process: Process,
    /// Where sessions are stored.
    pub(super) store: Store,
    /// Settings of `agentwire serve`.
    pub(super) server: Server,
    /// Prices of models by name, for agents that do not report their cost.
    pub(super) prices: BTreeMap<String, Price>,
    /// Project directories by name.
    pub(super) projects: BTreeMap<String, Directory>,
}

/// How to start each agent.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Agents(BTreeMap<AgentName, Agent>);

impl Agents {
    pub(super) fn take(&mut self, agent: AgentType) -> Agent {
        self.0.remove(&AgentName(agent.as_str())).unwrap_or_default()
    }
}

/// One key per agent.
impl JsonSchema for Agents {
    fn schema_name() -> Cow<'static, str> {
        "Agents".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agent = generator.subschema_for::<Agent>();
        let properties = programs().iter().map(|known| {
            let mut agent = agent.clone();
            agent.insert("description".to_owned(), known.about.into());
            (known.agent.as_str().to_owned(), agent.to_value())
        });
        let properties: serde_json::Map<_, _> = properties.collect();
        json_schema!({
            "type": "object",
            "description": "How each agent is started.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// An agent as a key of the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AgentName(&'static str);

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = AgentType::NAMES.into_iter().find(|known| **known == *name);
        known.map(Self).ok_or_else(|| D::Error::unknown_field(&name, &AgentType::NAMES))
    }
}

/// How to start an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Agent {
    /// The program, by name or absolute path, or a list of the program and its first arguments.
    pub(super) command: Option<Program>,
    /// Arguments to pass before agentwire's own.
    pub(super) args: Vec<String>,
    /// Environment variables to set.
    pub(super) env: BTreeMap<String, String>,
    /// Default driver; `agentwire agents` lists the drivers.
    pub(super) driver: Option<String>,
    /// Default model.
    pub(super) model: Option<String>,
}

/// Timeouts in seconds, and limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    /// When an unanswered request is denied; 0 (default) waits forever.
    pub(super) request_timeout: Option<Seconds>,
    /// When a call to the agent fails; default 60.
    pub(super) call_timeout: Option<PositiveSeconds>,
    /// When an agent that ignores an interrupt gets a signal; default 10.
    pub(super) interrupt_grace: Option<Seconds>,
    /// When an agent that ignores a stop gets SIGTERM; default 5.
    pub(super) stop_grace: Option<Seconds>,
    /// Time between one signal and the next stronger one; default 2.
    pub(super) signal_grace: Option<Seconds>,
    /// When a working agent without output counts as stalled; default 300.
    pub(super) stall_after: Option<PositiveSeconds>,
    /// Maximum number of running sessions; default 256.
    #[serde(deserialize_with = "count")]
    pub(super) sessions: Option<NonZeroUsize>,
    /// Maximum MiB of large lines, messages, pages and events in memory; default 384, minimum 48.
    #[serde(deserialize_with = "count")]
    pub(super) in_flight: Option<NonZeroUsize>,
}

/// Which tools run without asking, and which never run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Policy {
    /// Default approval mode; `ask` if unset.
    pub(super) approval: Option<ApprovalMode>,
    /// Tools that run without asking, unless the session has its own list.
    pub(super) allow: Option<Vec<String>>,
    /// Tools that never run, whatever the session allows.
    pub(super) block: Vec<String>,
    /// Whether a project's own files may make an agent run something: `ask` (default), `always` or
    /// `never`.
    pub(super) trust: Option<TrustName>,
}

/// How agents' processes are contained.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Process {
    /// `auto` (default) takes the best that works; `namespace` gives each agent a pid namespace, in
    /// which agentwire's own files are hidden; `keeper` gives it a supervisor process. A choice
    /// that does not work here is refused.
    pub(super) containment: Option<ContainmentName>,
}

/// Where sessions are stored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    /// `sqlite` (default) is a file in the data directory; `memory` loses everything when the
    /// process ends.
    pub(super) kind: Option<StoreName>,
}

/// Settings of `agentwire serve`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    /// Address of the HTTP API and page; default `127.0.0.1:8080`. Port 0 picks a free port.
    pub(super) http: Option<Address>,
    /// Address of the insights protocol; default `127.0.0.1:8765`.
    pub(super) insights: Option<Address>,
    /// Additional Host headers to accept.
    pub(super) hosts: Vec<String>,
    /// Whether to open the page in a browser.
    pub(super) open: bool,
    /// Maximum number of connections; default 4096.
    #[serde(deserialize_with = "count")]
    pub(super) connections: Option<NonZeroUsize>,
    /// TLS certificate chain (PEM file, leaf first).
    pub(super) tls_cert: Option<PathBuf>,
    /// TLS private key (PEM file).
    pub(super) tls_key: Option<PathBuf>,
    /// Public address behind a TLS proxy: `https://NAME[:PORT]`.
    pub(super) public_url: Option<String>,
    /// Log level for stderr; default `warn`.
    pub(super) log_level: Option<LogLevel>,
    /// Log format for stderr; default `text`.
    pub(super) log_format: Option<LogFormat>,
}

/// US dollars per million tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// Input tokens.
    pub(super) input: Dollars,
    /// Output tokens.
    pub(super) output: Dollars,
    /// Tokens read from a cache; default: the price of `input`.
    #[serde(default)]
    pub(super) cache_read: Option<Dollars>,
    /// Tokens written to a cache; default: the price of `input`.
    #[serde(default)]
    pub(super) cache_write: Option<Dollars>,
}

/// The schema of the file, as `agentwire schema config` prints it.
pub(crate) fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<File>();
    schema.insert("title".to_owned(), "agentwire config.toml".into());
    (without_null as fn(&mut Schema)).transform(&mut schema);
    schema
}
