//! `model-server`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};

struct Server {
    child: Child,
    told: BufReader<ChildStderr>,
}

impl Server {
    fn start(home: &EngineHome, args: &[&str]) -> (Self, String) {
        let mut command = home.command(&[&["model-server"], args].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let told = BufReader::new(child.stderr.take().expect("stderr"));
        let mut server = Self { child, told };
        let ready = server.line();
        assert_eq!(ready.get("ready"), Some(&json!(true)));
        let address = ready.get("http").and_then(Value::as_str);
        let address = address.and_then(|url| url.strip_prefix("http://"));
        let address = address.expect("an address").to_owned();
        (server, address)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(address: &str, prompt: &str) -> String {
    let body = json!({
        "model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}],
    })
    .to_string();
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: secret\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn it_plays_prompts_until_it_is_told_to_end() {
    let home = EngineHome::new();
    let (mut server, address) = Server::start(&home, &["--log"]);
    assert!(ask(&address, "[[say it works]]").contains("it works"));
    let told = server.line();
    assert_eq!(told["request"], "POST /v1/messages");
    assert_eq!((&told["model"], &told["status"]), (&json!("m"), &json!(200)));
    assert!(!told.to_string().contains("secret"));
    let pid = i32::try_from(server.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_taken_port_is_told_with_what_to_do() {
    let home = EngineHome::new();
    let (_server, address) = Server::start(&home, &[]);
    let port = address.rsplit(':').next().expect("a port");
    let output = home.run(&["model-server", "--port", port]);
    assert_eq!(code(&output), Some(1));
    let told = error(&output);
    assert!(told.contains("failed to listen") && told.contains("--port"), "{told}");
}

#[test]
fn help_teaches_the_steps() {
    let help = EngineHome::new().told(&["model-server", "--help"]);
    for word in ["tool NAME JSON", "ratelimit", "{result}", "ANTHROPIC_BASE_URL", "[[say hi]]"] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
}
