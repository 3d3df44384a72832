//! MCP servers that the client hosts, with an agent that does not support them.
#![expect(clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::time::{Duration, Instant};

use agentwire_protocol::event::{EventKind, RequestKind, RequestOutcome, SettledBy};
use agentwire_protocol::session::McpServer;
use agentwire_protocol::{AgentType, Command, ErrorCode, Event, Json, Settlement};
use agentwire_sessions::settings::AgentCommand;
use agentwire_sessions::{NewSession, SessionHandle};
use serde_json::{Value, json};

use crate::gateway::{Gateway, Reader, prompt, stop};
use crate::shared::{AGENTWIRE, PATIENCE};

/// A gateway whose ACP agent is [`agent`].
async fn gateway() -> Gateway {
    Gateway::with(|settings| {
        let own = std::env::current_exe().expect("this program");
        let args = ["--exact", "bridge::agent", "--ignored", "--nocapture"];
        let command = AgentCommand {
            program: Some(own.to_string_lossy().into_owned()),
            args: args.map(str::to_owned).into(),
            env: BTreeMap::from([("TEST_IS_AGENT".to_owned(), "1".to_owned())]),
            ..AgentCommand::default()
        };
        settings.agents.insert("acp", command);
    })
    .await
}

fn session(gateway: &Gateway, prompt: &str) -> NewSession {
    let mut new = gateway.session(AgentType::Acp, prompt);
    let server = McpServer { kind: Some("sdk".to_owned()), ..McpServer::default() };
    new.config.mcp_servers = Some(BTreeMap::from([("calc".to_owned(), server)]));
    new
}

fn answer(request: &str, output: &Value) -> Command {
    let output = Some(Json::of(output));
    Command::Settle(Settlement { hook_output: output, ..Settlement::allow(request) })
}

/// The next message for the server: the request's id and its input.
async fn message(reader: &mut Reader) -> (String, Value) {
    let event = reader.until(|kind| matches!(kind, EventKind::RequestRaised(_))).await;
    let EventKind::RequestRaised(request) = event.kind else { unreachable!() };
    assert_eq!(request.kind, RequestKind::Mcp);
    assert_eq!(request.name.expect("a server").to_string(), "calc");
    let input = request.input.expect("a message");
    (request.request_id.to_string(), input.read().expect("JSON"))
}

/// The agent's text up to the end of the turn.
async fn told(reader: &mut Reader) -> String {
    let mut text = String::new();
    loop {
        match reader.next().await.expect("the end of the turn").kind {
            EventKind::TextChunk(chunk) => text.push_str(&chunk.content.decode()),
            EventKind::TurnCompleted(_) => return text,
            EventKind::TurnFailed(failed) => panic!("{failed:?}"),
            _ => {}
        }
    }
}

/// Answers `initialize` and the notification after it.
async fn greet(session: &SessionHandle, reader: &mut Reader) {
    let (request, said) = message(reader).await;
    assert_eq!(said["method"], "initialize");
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "calc", "version": "1" } });
    let response = json!({ "jsonrpc": "2.0", "id": said["id"], "result": result });
    let command = answer(&request, &json!({ "mcp_response": response }));
    session.send(command).await.expect("accepted");
    let (request, said) = message(reader).await;
    assert_eq!(said, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    // The SDKs answer notifications like this; the agent must not see it.
    let response = json!({ "jsonrpc": "2.0", "id": 0, "result": {} });
    let command = answer(&request, &json!({ "mcp_response": response }));
    session.send(command).await.expect("accepted");
}

/// Waits until no relay of the session and no socket is left.
fn gone(socket: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let relays = || {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let cmdlines = processes.map(|entry| entry.path().join("cmdline"));
        let word = socket.to_string_lossy().into_owned();
        cmdlines
            .filter_map(|path| std::fs::read(path).ok())
            .filter(|line| String::from_utf8_lossy(line).contains(&word))
            .count()
    };
    while relays() > 0 || socket.parent().expect("a directory").exists() {
        assert!(Instant::now() < deadline, "left behind: {} relays, {socket:?}", relays());
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_servers_serve_an_agent_that_cannot_host_them() {
    let gateway = gateway().await;
    let session = gateway.hub.start(session(&gateway, "tools")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    greet(&session, &mut reader).await;
    let (list, said) = message(&mut reader).await;
    assert_eq!(said["method"], "tools/list");
    let tools = json!({ "tools": [{ "name": "add" }] });
    // A bare JSON-RPC reply, with an id chosen by the client.
    session.send(answer(&list, &json!({ "id": 99, "result": tools }))).await.expect("accepted");
    // Two calls at once, answered in reverse order.
    let (first, one) = message(&mut reader).await;
    let (second, two) = message(&mut reader).await;
    assert_eq!((&one["params"]["name"], &two["params"]["name"]), (&json!("add"), &json!("mul")));
    let empty = session.send(answer(&first, &json!({ "neither": true }))).await;
    assert_eq!(empty.expect_err("no answer").code, ErrorCode::InvalidMessage);
    let denied = Settlement::deny(second.as_str(), "no multiplying");
    session.send(Command::Settle(denied)).await.expect("accepted");
    session.send(answer(&first, &json!({ "result": { "sum": 5 } }))).await.expect("accepted");
    let twice = session.send(answer(&first, &json!({ "result": {} }))).await;
    assert_eq!(twice.expect_err("settled").code, ErrorCode::RequestSettled);
    let heard: Value = serde_json::from_str(&told(&mut reader).await).expect("JSON");
    assert_eq!(heard["initialize"]["result"]["serverInfo"]["name"], "calc");
    assert_eq!(heard["list"], json!({ "jsonrpc": "2.0", "id": "list", "result": tools }));
    assert_eq!(heard["add"], json!({ "jsonrpc": "2.0", "id": 3, "result": { "sum": 5 } }));
    assert_eq!(heard["mul"]["id"], 4);
    assert_eq!(heard["mul"]["error"]["message"], "no multiplying");
    assert_eq!(heard["rubbish"]["error"]["code"], -32700);

    // The server sends the first message.
    prompt(&session, "listen").await;
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let says = |server: &str| Command::Query {
        method: "mcpMessage".to_owned(),
        args: vec![Json::of(&server), Json::of(&changed)],
    };
    session.send(says("calc")).await.expect("accepted");
    let unknown = session.send(says("other")).await.expect_err("refused");
    assert_eq!(unknown.code, ErrorCode::InvalidMessage);
    assert_eq!(told(&mut reader).await, changed.to_string());

    prompt(&session, "where").await;
    let socket = PathBuf::from(told(&mut reader).await);
    assert!(socket.exists());
    stop(&session).await;
    gone(&socket);

    // Only the agent knows about the relay.
    let record = gateway.hub.record(session.id()).await.expect("a record");
    let wanted = McpServer { kind: Some("sdk".to_owned()), ..McpServer::default() };
    assert_eq!(record.config.mcp_servers, None, "it is gone with its client");
    let events = gateway.events(&session).await;
    let EventKind::SessionStarted(started) = &events[0].kind else { panic!("{:?}", events[0]) };
    assert_eq!(started.config.mcp_servers.as_ref().expect("servers")["calc"], wanted);
    once(&events);
}

/// Asserts that every request was settled exactly once.
fn once(events: &[Event<'_>]) {
    let mut raised: Vec<String> = Vec::new();
    let mut settled: Vec<String> = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::RequestRaised(request) => raised.push(request.request_id.to_string()),
            EventKind::RequestSettled(request) => settled.push(request.request_id.to_string()),
            _ => {}
        }
    }
    raised.sort_unstable();
    settled.sort_unstable();
    assert!(!raised.is_empty());
    assert_eq!(raised, settled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_token_nobody_speaks() {
    let gateway = gateway().await;
    let session = gateway.hub.start(session(&gateway, "where")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let socket = PathBuf::from(told(&mut reader).await);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for said in ["\n", "wrong\n", &format!("{}\n", "0".repeat(64)), &format!("{call}\n")] {
        let mut stream = UnixStream::connect(&socket).expect("a socket");
        stream.write_all(said.as_bytes()).expect("written");
        let _ = stream.write_all(format!("{call}\n").as_bytes());
        let mut heard = Vec::new();
        // The gateway may close the connection before it has read everything.
        let _ = stream.read_to_end(&mut heard);
        assert_eq!(heard, b"", "{said}");
    }
    let by_hand = Program::new(AGENTWIRE).arg("mcp-bridge").arg(&socket).output().expect("a relay");
    assert_eq!(by_hand.status.code(), Some(2));
    let wrong = Program::new(AGENTWIRE)
        .arg("mcp-bridge")
        .arg(&socket)
        .env("AGENTWIRE_MCP_TOKEN", "wrong")
        .stdin(Stdio::piped())
        .output();
    assert_eq!(wrong.expect("a relay").stdout, b"");
    prompt(&session, "tools").await;
    greet(&session, &mut reader).await;
    stop(&session).await;
    gone(&socket);
    let events = gateway.events(&session).await;
    let is_forged = |event: &Event<'_>| match &event.kind {
        EventKind::RequestRaised(request) => {
            request.input.as_ref().is_some_and(|input| input.get() == call)
        }
        _ => false,
    };
    assert!(!events.iter().any(is_forged));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_nobody_waits_for_is_settled() {
    let gateway = gateway().await;
    let session = gateway.hub.start(session(&gateway, "cancel")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    greet(&session, &mut reader).await;
    let (call, said) = message(&mut reader).await;
    assert_eq!(said["method"], "tools/call");
    let is_call = |kind: &EventKind<'_>| matches!(kind, EventKind::RequestSettled(settled) if settled.request_id == *call);
    let EventKind::RequestSettled(settled) = reader.until(is_call).await.kind else {
        unreachable!()
    };
    assert_eq!((settled.outcome, settled.by), (RequestOutcome::Withdrawn, SettledBy::Agent));
    // The server is notified, too.
    let (_, said) = message(&mut reader).await;
    assert_eq!(said["method"], "notifications/cancelled");
    let late = session.send(answer(&call, &json!({ "result": {} }))).await;
    assert_eq!(late.expect_err("settled").code, ErrorCode::RequestSettled);
    let (ping, _) = message(&mut reader).await;
    session.send(Command::Settle(Settlement::allow(ping.as_str()))).await.expect("accepted");
    // The cancelled call got no answer.
    assert_eq!(told(&mut reader).await, r#"{"id":5,"jsonrpc":"2.0","result":{}}"#);
    // A request that is open at the end of the session is denied, with the reason.
    prompt(&session, "hang").await;
    let (open, said) = message(&mut reader).await;
    assert_eq!(said["method"], "tools/call");
    stop(&session).await;
    let events = gateway.events(&session).await;
    let end = events.iter().find_map(|event| match &event.kind {
        EventKind::RequestSettled(settled) if settled.request_id.to_string() == open => {
            Some(settled.clone())
        }
        _ => None,
    });
    let end = end.expect("a settlement");
    assert_eq!((end.outcome, end.by), (RequestOutcome::Denied, SettledBy::Gateway));
    assert_eq!(end.reason.expect("a reason").to_string(), "the session was stopped");
    once(&events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_an_answer_in_time_is_denied() {
    let mut gateway = gateway().await;
    let mut settings = gateway.hub.settings().clone();
    settings.timing.request = Some(Duration::from_millis(1));
    settings.data_dir = gateway.home.path("other");
    gateway.hub = agentwire_sessions::Hub::open(settings).await.expect("a hub");
    let session = gateway.hub.start(session(&gateway, "tools")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let heard: Value = serde_json::from_str(&told(&mut reader).await).expect("JSON");
    assert_eq!(heard["initialize"]["error"]["message"], "nobody answered within 0 s");
    stop(&session).await;
    once(&gateway.events(&session).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_message_passes_both_ways() {
    let gateway = gateway().await;
    let pool = gateway.hub.log().budget().work.clone();
    let session = gateway.hub.start(session(&gateway, "long")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let all = pool.take(pool.total()).await;
    greet(&session, &mut reader).await;
    // The message is large, so it waits for its share of the budget.
    until(|| pool.waiting() == 1).await;
    drop(all);
    let (call, said) = message(&mut reader).await;
    // The answer may take long, so nothing is held until it arrives.
    until(|| pool.used() == 0).await;
    let text = said["params"]["arguments"]["text"].as_str().expect("text");
    assert_eq!(text.len(), LONG);
    session.send(answer(&call, &json!({ "result": { "text": text } }))).await.expect("accepted");
    assert_eq!(told(&mut reader).await, LONG.to_string());
    stop(&session).await;
}

const LONG: usize = 5 << 20;

async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "the condition never holds");
        tokio::task::yield_now().await;
    }
}

/// The MCP server that the agent was given, as the agent uses it.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    socket: String,
}

impl Server {
    fn start(given: &Value) -> Self {
        assert_eq!(given["name"], "calc");
        let args: Vec<String> = serde_json::from_value(given["args"].clone()).expect("arguments");
        let pairs = given["env"].as_array().expect("variables");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let mut child = Program::new(text(&given["command"]))
            .args(&args)
            .envs(pairs.iter().map(|pair| (text(&pair["name"]), text(&pair["value"]))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server");
        let stdin = child.stdin.take().expect("stdin");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, stdin, stdout, socket: args[1].clone() }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("a server that reads");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a server that speaks");
        serde_json::from_str(&line).expect("JSON")
    }

    fn greet(&mut self) -> Value {
        self.say(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
        let initialize = self.hear();
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        initialize
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.say(&call.to_string());
    }

    /// Does what the prompt asks for and returns the agent's text.
    fn work(&mut self, prompt: &str) -> String {
        match prompt {
            "where" => self.socket.clone(),
            "listen" => self.hear().to_string(),
            "hang" => {
                self.call(9, "add", &json!({}));
                String::new()
            }
            "cancel" => {
                self.greet();
                self.call(2, "add", &json!({}));
                let params = json!({ "requestId": 2, "reason": "no longer" });
                let method = "notifications/cancelled";
                let cancel = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                self.say(&cancel.to_string());
                self.say(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
                self.hear().to_string()
            }
            "long" => {
                self.greet();
                self.call(2, "add", &json!({ "text": "x".repeat(LONG) }));
                self.hear()["result"]["text"].as_str().expect("text").len().to_string()
            }
            _ => {
                let initialize = self.greet();
                self.say(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
                let list = self.hear();
                self.call(3, "add", &json!({ "a": 2, "b": 3 }));
                self.call(4, "mul", &json!({ "a": 2, "b": 3 }));
                let both = [self.hear(), self.hear()];
                let find = |id: u64| both.iter().find(|reply| reply["id"] == id);
                self.say("rubbish");
                json!({ "initialize": initialize, "list": list, "add": find(3), "mul": find(4),
                    "rubbish": self.hear() })
                .to_string()
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent that speaks ACP and starts the MCP server it is given.
#[test]
#[ignore = "run as the agent of the tests above"]
fn agent() {
    if std::env::var_os("TEST_IS_AGENT").is_none() {
        return;
    }
    let mut out = std::io::stdout();
    let mut say = |message: Value| {
        writeln!(out, "{message}").expect("a gateway that reads");
        out.flush().expect("a gateway that reads");
    };
    let mut server = None;
    for line in std::io::stdin().lines() {
        let line: Value = serde_json::from_str(&line.expect("input")).expect("JSON");
        let result = match line["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            Some("session/new") => {
                server = Some(Server::start(&line["params"]["mcpServers"][0]));
                json!({ "sessionId": "s" })
            }
            Some("session/prompt") => {
                let text = line["params"]["prompt"][0]["text"].as_str().expect("a prompt");
                let said = server.as_mut().expect("a server").work(text);
                if text == "hang" {
                    continue;
                }
                let content = json!({ "type": "text", "text": said });
                let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
                say(json!({ "jsonrpc": "2.0", "method": "session/update",
                    "params": { "sessionId": "s", "update": update } }));
                json!({ "stopReason": "end_turn" })
            }
            _ => continue,
        };
        say(json!({ "jsonrpc": "2.0", "id": line["id"], "result": result }));
    }
}
