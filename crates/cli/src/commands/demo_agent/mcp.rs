//! MCP servers that we start, and those that the client hosts. Both exchange lines of JSON-RPC,
//! over a pipe or inside control requests.

mod calls;
mod child;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::child::Child;
use super::agent::{Agent, Halt};
use super::flags::VERSION;
use super::json::JsonFields as _;
use super::requests::{ClientAnswer, Requester};

const PROTOCOL: &str = "2025-11-25";

/// How long a turn waits for servers that are not ready.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Server {
    pub(super) name: String,
    config: Value,
    link: Link,
    state: ServerState,
    info: Value,
    tools: Vec<Value>,
    /// The next message's id.
    next: u64,
    waiting: Vec<(u64, MessagePurpose)>,
    /// Results of calls.
    results: Vec<(u64, Result<Value, String>)>,
}

enum Link {
    Child(Child),
    /// The client hosts it.
    Hosted,
    Nothing,
}

enum ServerState {
    Connecting,
    Connected,
    Failed(String),
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessagePurpose {
    Initialize,
    /// A notification, which a hosted server acknowledges.
    Acknowledge,
    Tools,
    ToolCall,
}

impl Server {
    fn new(name: &str, config: &Value, link: Link) -> Self {
        Self {
            name: name.to_owned(),
            config: config.clone(),
            link,
            state: ServerState::Connecting,
            info: Value::Null,
            tools: Vec::new(),
            next: 0,
            waiting: Vec::new(),
            results: Vec::new(),
        }
    }

    pub(super) fn source(&self) -> &'static str {
        match self.link {
            Link::Hosted => "sdk",
            Link::Child(_) | Link::Nothing => "dynamic",
        }
    }

    fn status(&self) -> &'static str {
        match self.state {
            ServerState::Connecting => "pending",
            ServerState::Connected => "connected",
            ServerState::Failed(_) => "failed",
        }
    }

    fn is_connecting(&self) -> bool {
        matches!(self.state, ServerState::Connecting)
    }

    fn fail(&mut self, error: &str) {
        self.state = ServerState::Failed(error.to_owned());
        self.link = match self.link {
            Link::Hosted => Link::Hosted,
            Link::Child(_) | Link::Nothing => Link::Nothing,
        };
        let calls =
            self.waiting.drain(..).filter(|(_, purpose)| *purpose == MessagePurpose::ToolCall);
        self.results.extend(calls.map(|(id, _)| (id, Err(error.to_owned()))));
    }

    /// The tool's name on this server, if it has the tool.
    fn tool<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix("mcp__")?.strip_prefix(plain(&self.name).as_str())?;
        let tool = rest.strip_prefix("__")?;
        self.tools.iter().any(|known| known.at("name") == tool).then_some(tool)
    }
}

/// A name that is valid as a part of a tool name.
fn plain(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

impl Agent {
    /// Starts the servers of `--mcp-config`.
    pub(super) fn connect_configured(&mut self) -> Result<(), Halt> {
        for config in self.flags.mcp_configs.clone() {
            let text = match config.trim_start().starts_with('{') {
                true => Ok(config.clone()),
                false => fs::read_to_string(&config),
            };
            let servers = text.map_err(|error| error.to_string()).and_then(|text| {
                serde_json::from_str::<Value>(&text).map_err(|error| error.to_string())
            });
            let servers = match servers {
                Ok(servers) => servers.at("mcpServers").as_object().cloned().unwrap_or_default(),
                Err(error) => {
                    let what = format!("Error: Invalid MCP configuration:\n{config}: {error}");
                    return Err(super::agent::die(&what));
                }
            };
            for (name, config) in &servers {
                self.connect(name, config)?;
            }
        }
        Ok(())
    }

    pub(super) fn connect(&mut self, name: &str, config: &Value) -> Result<(), Halt> {
        if self.servers.iter().any(|server| server.name == name) {
            return Ok(());
        }
        let number = self.servers.len();
        let kind = config.at("type").as_str().unwrap_or("stdio");
        let server = match kind {
            "sdk" => Server::new(name, config, Link::Hosted),
            "stdio" => match Child::start(config, &self.session.directory, number, &self.post) {
                Ok(child) => Server::new(name, config, Link::Child(child)),
                Err(error) => failed(name, config, &error.to_string()),
            },
            _ => failed(name, config, &format!("the demo agent does not support {kind} servers")),
        };
        let connecting = server.is_connecting();
        self.servers.push(server);
        if !connecting {
            return Ok(());
        }
        let client = json!({ "name": "agentwire-demo", "version": VERSION });
        let params =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        self.send_to_server(number, MessagePurpose::Initialize, "initialize", params).map(drop)
    }

    /// Sends a message; returns its id.
    fn send_to_server(
        &mut self,
        number: usize,
        purpose: MessagePurpose,
        method: &str,
        params: Value,
    ) -> Result<u64, Halt> {
        let Some(server) = self.servers.get_mut(number) else { return Ok(0) };
        let id = server.next;
        server.next += 1;
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if purpose != MessagePurpose::Acknowledge {
            message.set("id", id);
        }
        if !params.is_null() {
            message.set("params", params);
        }
        match &server.link {
            Link::Child(child) => {
                if purpose != MessagePurpose::Acknowledge {
                    server.waiting.push((id, purpose));
                }
                if !child.send(&message) {
                    server.fail("the server does not accept messages");
                }
            }
            Link::Hosted => {
                server.waiting.push((id, purpose));
                let requester = Requester::Server {
                    number,
                    message: id,
                    call: purpose == MessagePurpose::ToolCall,
                };
                let name = server.name.clone();
                self.request(
                    requester,
                    &json!({
                        "subtype": "mcp_message", "server_name": name, "message": message,
                    }),
                )?;
            }
            Link::Nothing => {}
        }
        Ok(id)
    }

    /// Handles a line from a server that we started.
    pub(super) fn server_line(&mut self, number: usize, line: &[u8]) -> Result<(), Halt> {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return Ok(()) };
        let Some(server) = self.servers.get_mut(number) else { return Ok(()) };
        if let (Some(method), Some(id)) = (message.at("method").as_str(), message.get("id")) {
            let reply = match method {
                "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
                _ => {
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            };
            if let Link::Child(child) = &server.link {
                child.send(&reply);
            }
            return Ok(());
        }
        match message.at("id").as_u64() {
            Some(id) => self.server_replied(number, id, reply(&message)),
            None => Ok(()),
        }
    }

    pub(super) fn server_ended(&mut self, number: usize) {
        if let Some(server) = self.servers.get_mut(number) {
            server.fail("Connection closed");
        }
    }

    /// Handles the client's answer for a server that it hosts.
    pub(super) fn server_answer(
        &mut self,
        number: usize,
        id: u64,
        answer: ClientAnswer,
    ) -> Result<(), Halt> {
        let result = match answer {
            ClientAnswer::Given(answer) => reply(answer.at("mcp_response")),
            ClientAnswer::Failed(error) => Err(error),
            ClientAnswer::Closed => Err("Connection closed".to_owned()),
        };
        self.server_replied(number, id, result)
    }

    /// Handles the next step of the handshake, or the result of a call.
    fn server_replied(
        &mut self,
        number: usize,
        id: u64,
        result: Result<Value, String>,
    ) -> Result<(), Halt> {
        let Some(server) = self.servers.get_mut(number) else { return Ok(()) };
        let Some(at) = server.waiting.iter().position(|(waiting, _)| *waiting == id) else {
            return Ok(());
        };
        let (_, purpose) = server.waiting.remove(at);
        match (purpose, result) {
            (MessagePurpose::ToolCall, result) => server.results.push((id, result)),
            (_, Err(error)) => server.fail(&error),
            (MessagePurpose::Initialize, Ok(result)) => {
                server.info = result.at("serverInfo").clone();
                let hosted = matches!(server.link, Link::Hosted);
                let method = "notifications/initialized";
                self.send_to_server(number, MessagePurpose::Acknowledge, method, Value::Null)?;
                // Over a pipe there is no acknowledgement.
                if !hosted {
                    self.send_to_server(number, MessagePurpose::Tools, "tools/list", Value::Null)?;
                }
            }
            (MessagePurpose::Acknowledge, Ok(_)) => {
                self.send_to_server(number, MessagePurpose::Tools, "tools/list", Value::Null)?;
            }
            (MessagePurpose::Tools, Ok(mut result)) => {
                let tools =
                    result.get_mut("tools").and_then(Value::as_array_mut).map(std::mem::take);
                server.tools.extend(tools.unwrap_or_default());
                match result.at("nextCursor").as_str() {
                    Some(cursor) => {
                        let params = json!({ "cursor": cursor });
                        self.send_to_server(number, MessagePurpose::Tools, "tools/list", params)?;
                    }
                    None => server.state = ServerState::Connected,
                }
            }
        }
        Ok(())
    }

    /// Waits until every server is ready or has failed.
    pub(super) fn await_servers(&mut self) -> Result<(), Halt> {
        let until = Instant::now().checked_add(PATIENCE);
        if !self.listening {
            self.fail_connecting("Connection closed", |link| matches!(link, Link::Hosted));
        }
        while self.servers.iter().any(Server::is_connecting) {
            if !self.wait(until)? {
                self.fail_connecting("Connection timed out", |_| true);
            } else if !self.listening {
                self.fail_connecting("Connection closed", |link| matches!(link, Link::Hosted));
            }
        }
        Ok(())
    }

    fn fail_connecting(&mut self, error: &str, which: impl Fn(&Link) -> bool) {
        let fits = |server: &&mut Server| server.is_connecting() && which(&server.link);
        self.servers.iter_mut().filter(fits).for_each(|server| server.fail(error));
    }

    pub(super) fn server_of(&self, tool: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.tool(tool).is_some())
    }

    pub(super) fn server_tools(&self) -> Vec<String> {
        let of_server = |server: &Server| {
            let prefix = format!("mcp__{}__", plain(&server.name));
            let names = server.tools.iter().filter_map(|tool| tool.at("name").as_str());
            names.map(|name| format!("{prefix}{name}")).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of_server).collect()
    }

    /// For `system/init`.
    pub(super) fn server_list(&self) -> Value {
        let entry = |server: &Server| json!({ "name": server.name, "status": server.status(), "source": server.source() });
        self.servers.iter().map(entry).collect()
    }

    /// For `mcp_status`.
    pub(super) fn server_status(&self) -> Value {
        let entry = |server: &Server| {
            let tools = server.tools.iter().map(|tool| json!({ "name": tool.at("name") }));
            let error = match &server.state {
                ServerState::Failed(error) => Some(error),
                ServerState::Connecting | ServerState::Connected => None,
            };
            let mut entry = json!({
                "name": server.name,
                "status": server.status(),
                "serverInfo": server.info,
                "transport": server.config.at("type").as_str().unwrap_or("stdio"),
                "scope": "dynamic",
                "source": server.source(),
                "tools": tools.collect::<Vec<_>>(),
                "error": error,
            });
            if let Some(fields) = entry.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            entry
        };
        json!({ "mcpServers": self.servers.iter().map(entry).collect::<Vec<_>>() })
    }
}

fn failed(name: &str, config: &Value, error: &str) -> Server {
    let mut server = Server::new(name, config, Link::Nothing);
    server.fail(error);
    server
}

/// The content of a reply; an error as one string.
fn reply(message: &Value) -> Result<Value, String> {
    match message.get("error") {
        Some(error) => {
            let text = error.at("message").as_str().unwrap_or("no reason given");
            Err(format!("{}: {text}", error.at("code")))
        }
        None => Ok(message.at("result").clone()),
    }
}
