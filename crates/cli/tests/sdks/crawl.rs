//! Every route of the server's description is tried, with data that it allows and data that it does not.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::child::{assert_none_left, run};
use crate::install::crawler;

const DEADLINE: Duration = Duration::from_secs(240);

/// Ends with the test, however that ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.0);
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_server_is_as_it_is_described() {
    let Some(mut command) = crawler().await else { return };
    let place = tempfile::Builder::new().prefix("agentwire-crawl-").tempdir().unwrap();
    let home = place.path();
    std::fs::create_dir(home.join("work")).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_agentwire"));
    server.args(["serve", "--http", "127.0.0.1:0", "--insights", "127.0.0.1:0"]);
    // No other agent shall be found.
    server.env_clear().env("PATH", "/nowhere").env("HOME", home);
    server.env("AGENTWIRE_DATA_DIR", home.join("data")).current_dir(home.join("work"));
    let mut server = Server(server.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(server.0.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let ready: Value = serde_json::from_str(&line).unwrap();
    let token = std::fs::read_to_string(ready["tokenFile"].as_str().unwrap()).unwrap();
    let address = format!("{}/openapi.json", ready["http"].as_str().unwrap());
    command.args(["run", &address, "--header", &format!("Authorization: Bearer {}", token.trim())]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "12"]);
    // What a schema cannot say (which modes an agent has, that a socket is wanted) is refused all the same.
    command.args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"]);
    command.args(["--generation-deterministic", "--no-color"]);
    command.args(["--continue-on-failure", "--request-timeout", "30"]);
    command.env("HOME", home).current_dir(home);
    let ended = run(command, DEADLINE, &home.join("output")).await;
    drop(server);
    assert_none_left(home.to_str().unwrap()).await;
    let said = std::fs::read_to_string(home.join("output")).unwrap();
    if let Err(said) = ended {
        panic!("{said}");
    }
    // Nothing of the description was left out.
    let (tested, all) = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Selected: ")?.split_once('/'))
        .unwrap();
    assert_eq!(tested, all, "{said}");
    assert!(said.contains(&format!("Tested: {all}")), "{said}");
}
