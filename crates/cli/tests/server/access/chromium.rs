//! A page of another site in a real browser: it can read nothing and start nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::shared::{BROWSER, PATIENCE, Server};

/// The browser with this home, or none if its tests are off.
pub(super) fn chromium(home: &Path) -> Option<Command> {
    if !BROWSER.is_on() {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut programs =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let program = programs.find(|program| program.is_file());
    let mut command = Command::new(program.expect("chromium is on PATH"));
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
        .args(["--disable-component-update", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TMPDIR", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    Some(command)
}

pub(super) struct Browser {
    pub(super) child: Child,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Serves the page and returns its reports.
fn evil_site(page: String) -> (u16, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (report, reports) = mpsc::sync_channel(8);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (page, report) = (page.clone(), report.clone());
            std::thread::spawn(move || answer(stream, &page, &report));
        }
    });
    (port, reports)
}

fn answer(stream: TcpStream, page: &str, report: &mpsc::SyncSender<Value>) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line);
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let target = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("/").to_owned();
    let (kind, text) = match target.as_str() {
        "/report" => {
            let _ = report.send(serde_json::from_slice(&body).unwrap_or(Value::Null));
            ("text/plain", "thanks".to_owned())
        }
        "/own" if head[0].starts_with("GET") && is_script(&head) => {
            ("text/javascript", "0".to_owned())
        }
        "/own" => ("text/plain", "our own words".to_owned()),
        _ => ("text/html", page.to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let mut stream = reader.into_inner();
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(text.as_bytes());
}

fn is_script(head: &[String]) -> bool {
    head.iter().any(|line| line.to_ascii_lowercase().starts_with("sec-fetch-dest: script"))
}

/// What the page tries on each address; `read` is what it could read.
const PAGE: &str = r##"<!doctype html><meta charset=utf-8><body><script>
const sites = SITES, token = TOKEN, session = SESSION;
const start = JSON.stringify({ agentType: "demo", prompt: "/say owned" });
const board = JSON.stringify({ agentId: "demo", prompt: "/say owned" });
const report = { tried: 0, read: [], opened: [] };
const soon = (promise, ms) => Promise.race([promise, new Promise(done => setTimeout(done, ms))]);
async function tries(what, url, options) {
  report.tried += 1;
  try {
    const answer = await soon(fetch(url, options), 5000);
    const text = answer ? await answer.text() : "";
    if (text) report.read.push([what, url, text.slice(0, 80)]);
  } catch (error) {}
}
function socket(url, protocols) {
  report.tried += 1;
  return soon(new Promise(done => {
    const wire = protocols ? new WebSocket(url, protocols) : new WebSocket(url);
    wire.onopen = () => {
      report.opened.push(url);
      for (const frame of [
        { jsonrpc: "2.0", id: 1, method: "run", params: { agent: "demo", prompt: "/say owned" } },
        { type: "session.create", payload: { prompt: "/say owned", cwd: "/", permission_mode: "default" } },
        { id: 1, command: "start", agentType: "demo", prompt: "/say owned" },
      ]) wire.send(JSON.stringify(frame));
      setTimeout(done, 500);
    };
    wire.onerror = done;
  }), 5000);
}
function element(name, url, fields) {
  report.tried += 1;
  return soon(new Promise(done => {
    const node = Object.assign(document.createElement(name), fields);
    node.onload = () => {
      if (name !== "iframe") report.read.push([name, url, "loaded"]);
      else try {
        const text = node.contentDocument && node.contentDocument.body.innerText;
        if (text) report.read.push([name, url, text.slice(0, 80)]);
      } catch (error) {}
      done();
    };
    node.onerror = done;
    node[name === "link" ? "href" : "src"] = url;
    document.body.append(node);
  }), 3000);
}
function form(url, kind, fields) {
  report.tried += 1;
  return soon(new Promise(done => {
    const frame = document.createElement("iframe");
    frame.name = "f" + report.tried;
    document.body.append(frame);
    const node = document.createElement("form");
    Object.assign(node, { method: "post", action: url, enctype: kind, target: frame.name });
    for (const [name, value] of fields) {
      const input = document.createElement("input");
      Object.assign(input, { name, value });
      node.append(input);
    }
    document.body.append(node);
    frame.onload = () => {
      try {
        const text = frame.contentDocument && frame.contentDocument.body.innerText;
        if (text) report.read.push(["form", url, text.slice(0, 80)]);
      } catch (error) {}
      done();
    };
    node.submit();
  }), 3000);
}
(async () => {
  const work = [
    // In each of these ways the page can read its own files; otherwise they would prove nothing.
    () => tries("fetch", "/own"),
    () => element("iframe", "/own"),
    () => element("script", "/own"),
    () => form("/own", "text/plain", [["x", "y"]]),
  ];
  for (const host of sites) {
    const http = "http://" + host, ws = "ws://" + host;
    const paths = ["/v1/sessions", "/api/sessions", "/v1/status", "/v1/sessions/" + session,
      "/v1/sessions/" + session + "/events", "/openapi.json", "/docs", "/healthz", "/metrics", "/"];
    for (const path of paths) {
      const url = http + path;
      work.push(() => tries("fetch", url));
      work.push(() => tries("no-cors", url, { mode: "no-cors" }));
      work.push(() => tries("credentials", url, { credentials: "include" }));
      work.push(() => tries("headers", url, { headers: { authorization: "Bearer " + token } }));
      work.push(() => element("iframe", url));
      work.push(() => element("script", url));
      work.push(() => element("img", url));
      work.push(() => element("link", url, { rel: "stylesheet" }));
    }
    for (const [path, body] of [["/v1/sessions", start], ["/api/sessions", board]]) {
      const url = http + path;
      for (const kind of ["text/plain", "application/json", "application/x-www-form-urlencoded"])
        for (const mode of ["cors", "no-cors"]) {
          const options = { method: "POST", mode, body, headers: { "content-type": kind } };
          work.push(() => tries("post", url, options));
          work.push(() => tries("post with token", url,
            { ...options, headers: { ...options.headers, authorization: "Bearer " + token } }));
        }
      work.push(() => tries("beacon", url, { method: "POST", mode: "no-cors", keepalive: true,
        body: new Blob([body], { type: "text/plain" }) }));
      work.push(() => tries("put", url, { method: "PUT", body }));
      work.push(async () => { report.tried += 1; navigator.sendBeacon(url, body); });
      // With the `=` between name and value this is JSON.
      work.push(() => form(url, "text/plain", [[body.slice(0, -2), body.slice(-2)]]));
      work.push(() => form(url, "application/x-www-form-urlencoded",
        [["agentType", "demo"], ["agentId", "demo"], ["prompt", "/say owned"]]));
      work.push(() => form(url, "multipart/form-data",
        [["agentType", "demo"], ["agentId", "demo"], ["prompt", "/say owned"]]));
    }
    for (const what of ["/interrupt", "/stop", "/prompt"])
      work.push(() => tries("command", http + "/v1/sessions/" + session + what,
        { method: "POST", mode: "no-cors", body: JSON.stringify({ prompt: "/say owned" }) }));
    for (const path of ["/rpc", "/insights", "/", "/v1/sessions/" + session + "/ws",
        "/ws/sessions/" + session]) {
      work.push(() => socket(ws + path));
      work.push(() => socket(ws + path, ["agentwire"]));
      work.push(() => socket(ws + path, ["agentwire", "ticket." + token]));
    }
    work.push(() => soon(new Promise(done => {
      report.tried += 1;
      const events = new EventSource(http + "/v1/sessions/" + session + "/events");
      events.onopen = () => { report.read.push(["EventSource", http, "open"]); done(); };
      events.onmessage = event => report.read.push(["EventSource", http, event.data]);
      events.onerror = () => { events.close(); done(); };
    }), 5000));
  }
  const next = async () => { while (work.length) await work.shift()(); };
  await Promise.all([...Array(16)].map(next));
  await fetch("/report", { method: "POST", body: JSON.stringify(report) });
})().catch(error =>
  fetch("/report", { method: "POST", body: JSON.stringify({ failed: String(error) }) }));
</script>"##;

#[test]
fn a_page_of_another_site_reads_nothing_and_starts_nothing() {
    // One server that requires a token, and one that does not. The page even knows the token of the first,
    // because it must be kept out by more than that.
    let servers = [Server::start(), Server::with(&["--auth", "off"])];
    let waiting: Vec<String> =
        servers.iter().map(|server| server.session("/write a.txt x")).collect();
    for (server, session) in servers.iter().zip(&waiting) {
        server.until(session, "requestRaised");
    }
    for (server, session) in servers.iter().zip(&waiting) {
        let port = |address: &str| address.rsplit(':').next().expect("a port").to_owned();
        let sites = json!([
            server.http,
            server.insights,
            format!("localhost:{}", port(&server.http)),
            format!("localhost:{}", port(&server.insights)),
        ]);
        let page = PAGE
            .replace("SITES", &sites.to_string())
            .replace("TOKEN", &json!(server.token).to_string())
            .replace("SESSION", &json!(session).to_string());
        let home = tempfile::tempdir().expect("a directory");
        let Some(mut browser) = chromium(home.path()) else { return };
        let (evil, reports) = evil_site(page);
        browser.arg(format!("http://127.0.0.1:{evil}/"));
        let browser = Browser { child: browser.spawn().expect("the browser starts") };
        let report = reports.recv_timeout(3 * PATIENCE).expect("the page reports");
        drop(browser);
        // The page runs, and reads only what it may.
        assert!(report["tried"].as_u64().is_some_and(|tried| tried > 400), "{report}");
        let read = report["read"].as_array().expect("a list");
        let (own, others): (Vec<_>, Vec<_>) = read.iter().partition(|read| read[1] == "/own");
        let mut own: Vec<_> = own.iter().filter_map(|read| read[0].as_str()).collect();
        own.sort_unstable();
        assert_eq!(own, ["fetch", "form", "iframe", "script"], "{report}");
        assert_eq!((others, &report["opened"]), (vec![], &json!([])), "{report}");
        let sessions = server.get("/v1/sessions");
        let sessions = sessions["sessions"].as_array().expect("sessions");
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        assert_eq!(sessions[0]["state"], "waitingPermission", "{sessions:?}");
        assert_eq!(sessions[0]["turns"], 1, "{sessions:?}");
    }
}
