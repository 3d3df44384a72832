//! A server with the demo agent, for programs that others wrote.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Ends with the test, however that ends.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Server {
    /// Starts one that has its home and its data there.
    pub(crate) fn start(home: &Path) -> Self {
        fs::create_dir(home.join("work")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command.args(["serve", "--http", "127.0.0.1:0", "--insights", "127.0.0.1:0"]);
        // No other agent shall be found.
        command.env_clear().env("PATH", "/nowhere").env("HOME", home);
        command.env("AGENTWIRE_DATA_DIR", home.join("data")).current_dir(home.join("work"));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let ready: Value = serde_json::from_str(&line).unwrap();
        let token = fs::read_to_string(ready["tokenFile"].as_str().unwrap()).unwrap();
        let address = ready["http"].as_str().unwrap().to_owned();
        Self { child, address, token: token.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}
