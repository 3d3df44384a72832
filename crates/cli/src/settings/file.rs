//! The words of `config.toml`.

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
    TrustName,
};
use crate::args::{LogFormat, LogLevel};

/// The settings of agentwire. Everything may be left out; the environment and flags win.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    /// The agent to start where none is named. If left out: the first that is installed.
    pub(super) agent: Option<AgentType>,
    /// How each agent is started.
    pub(super) agents: Agents,
    /// How long things may take.
    pub(super) limits: Limits,
    /// What runs unasked and what never runs.
    pub(super) policy: Policy,
    /// What holds an agent's processes.
    pub(super) process: Process,
    /// What keeps the logs.
    pub(super) store: Store,
    /// What `agentwire serve` runs with.
    pub(super) server: Server,
    /// What models cost, by name, for agents that do not say it themselves.
    pub(super) prices: BTreeMap<String, Price>,
    /// Directories by the name of a project.
    pub(super) projects: BTreeMap<String, Directory>,
}

/// How each agent is started.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Agents(BTreeMap<AgentName, Agent>);

impl Agents {
    /// What is said of that agent.
    pub(super) fn take(&mut self, agent: AgentType) -> Agent {
        self.0.remove(&AgentName(agent.as_str())).unwrap_or_default()
    }
}

/// A key for each agent, and no other.
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

/// How an agent is started.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Agent {
    /// The program, by name or absolute path, or a list of the program and its first arguments.
    pub(super) command: Option<Program>,
    /// Arguments before those that agentwire gives.
    pub(super) args: Vec<String>,
    /// Variables to set in its environment.
    pub(super) env: BTreeMap<String, String>,
    /// How it is driven, where the session does not say; `agentwire agents` lists the ways.
    pub(super) driver: Option<String>,
    /// Its model, where the session does not say.
    pub(super) model: Option<String>,
}

/// How long things may take, in seconds, and how many there may be.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    /// Until an unanswered request is denied; 0, the default, waits.
    pub(super) request_timeout: Option<Seconds>,
    /// Until a call to the agent fails; 60 if left out.
    pub(super) call_timeout: Option<PositiveSeconds>,
    /// From an interrupt that the agent does not heed to a signal; 10 if left out.
    pub(super) interrupt_grace: Option<Seconds>,
    /// From a stop that the agent does not heed to SIGTERM; 5 if left out.
    pub(super) stop_grace: Option<Seconds>,
    /// From one signal to the next stronger one; 2 if left out.
    pub(super) signal_grace: Option<Seconds>,
    /// Silence after which a working agent counts as stalled; 300 if left out.
    pub(super) stall_after: Option<PositiveSeconds>,
    /// How many sessions may run at once; 256 if left out.
    pub(super) sessions: Option<NonZeroUsize>,
    /// How many MiB of large lines, messages, pages and events may be in memory at once; 384 if left
    /// out, 48 at least.
    pub(super) in_flight: Option<NonZeroUsize>,
}

/// What runs unasked and what never runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Policy {
    /// When to ask, where the session does not say; `ask` if left out.
    pub(super) approval: Option<ApprovalMode>,
    /// Tools that run unasked, where the session does not say.
    pub(super) allow: Option<Vec<String>>,
    /// Tools that never run, whatever the session says.
    pub(super) block: Vec<String>,
    /// Whether a project's own files may make an agent run something: `ask` (the default), `always` or
    /// `never`.
    pub(super) trust: Option<TrustName>,
}

/// What holds an agent's processes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Process {
    /// `auto`, the default, takes the best that works; `namespace` gives each agent a pid namespace, in
    /// which agentwire's own files are hidden; `keeper` gives it a process that watches over it. What
    /// does not work here is refused.
    pub(super) containment: Option<ContainmentName>,
}

/// What keeps the logs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    /// `sqlite`, the default, is a file in the data directory; `memory` keeps nothing beyond the
    /// process.
    pub(super) kind: Option<StoreName>,
}

/// What `agentwire serve` runs with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    /// Where it listens; `127.0.0.1:8080` if left out. Port 0 picks one.
    pub(super) http: Option<Address>,
    /// Where the insights wire listens; `127.0.0.1:8765` if left out.
    pub(super) insights: Option<Address>,
    /// Further names under which clients reach it, as their Host header has them.
    pub(super) hosts: Vec<String>,
    /// Whether it opens its page in a browser.
    pub(super) open: bool,
    /// How many clients may be connected at once; 4096 if left out.
    pub(super) connections: Option<NonZeroUsize>,
    /// The certificate to encrypt with, a file in PEM.
    pub(super) tls_cert: Option<PathBuf>,
    /// The key of the certificate, a file in PEM.
    pub(super) tls_key: Option<PathBuf>,
    /// Where a proxy that encrypts offers this server: `https://NAME[:PORT]`.
    pub(super) public_url: Option<String>,
    /// How much it tells on stderr; `warn` if left out.
    pub(super) log_level: Option<LogLevel>,
    /// How it tells that; `text` if left out.
    pub(super) log_format: Option<LogFormat>,
}

/// Dollars for a million tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// Read.
    pub(super) input: Dollars,
    /// Written.
    pub(super) output: Dollars,
    /// Read from a cache; as `input` if left out.
    #[serde(default)]
    pub(super) cache_read: Option<Dollars>,
    /// Written to a cache; as `input` if left out.
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
