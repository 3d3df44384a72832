//! A client of Claude's stream-json wire, for the demo agent and `agentwire claude`.

use serde_json::{Value, json};

use super::{Ended, Program};

pub(crate) struct ClaudeClient {
    program: Program,
    pub(crate) written: Vec<String>,
}

impl ClaudeClient {
    pub(crate) fn new(program: Program) -> Self {
        Self { program, written: Vec::new() }
    }

    /// Sends a line. Ignores a closed stdin: the output shows whether the program still reads.
    pub(crate) fn send_raw(&mut self, line: &str) {
        self.program.bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send(&mut self, line: &Value) {
        self.send_raw(&line.to_string());
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.send(&json!({
            "type": "user",
            "message": { "role": "user", "content": text },
            "parent_tool_use_id": null,
        }));
    }

    pub(crate) fn control(&mut self, request: Value) -> Value {
        let id = format!("client-{}", self.written.len());
        self.request(&id, request);
        let answers = |line: &Value| {
            line["type"] == "control_response" && line["response"]["request_id"] == *id
        };
        self.until(answers)["response"].clone()
    }

    /// Sends a control request without waiting for its answer.
    pub(crate) fn request(&mut self, id: &str, request: Value) {
        let mut line = json!({ "type": "control_request", "request_id": id });
        line["request"] = request;
        self.send(&line);
    }

    pub(crate) fn initialize(&mut self, mut fields: Value) -> Value {
        fields["subtype"] = json!("initialize");
        self.control(fields)
    }

    pub(crate) fn answer(&mut self, request: &Value, response: Value) {
        let mut settled = json!({ "subtype": "success", "request_id": request["request_id"] });
        settled["response"] = response;
        self.send(&json!({ "type": "control_response", "response": settled }));
    }

    pub(crate) fn next_line(&mut self) -> Option<String> {
        let written = &self.written;
        let why = || format!("the program is silent; it said:\n{}", written.join("\n"));
        let line = self.program.line_or(why)?;
        self.written.push(line.clone());
        Some(line)
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.next_line().expect("one more line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next line that fits. Skips the lines before it, and lines that are not JSON.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        while let Some(line) = self.next_line() {
            let Ok(line) = serde_json::from_str(&line) else { continue };
            if fits(&line) {
                return line;
            }
        }
        panic!("the program ended; it said:\n{}", self.written.join("\n"))
    }

    pub(crate) fn until_type(&mut self, kind: &str) -> Value {
        self.until(|line| line["type"] == kind)
    }

    pub(crate) fn until_request(&mut self, subtype: &str) -> Value {
        self.until(|line| line["request"]["subtype"] == subtype)
    }

    pub(crate) fn until_result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    /// Runs a turn, allows everything, and returns all its lines.
    pub(crate) fn turn(&mut self, prompt: &str) -> Vec<Value> {
        self.turn_with(prompt, |_| Some(json!({ "behavior": "allow" })))
    }

    /// Runs a turn. `reply` answers requests, or leaves them open.
    pub(crate) fn turn_with(
        &mut self,
        prompt: &str,
        reply: impl Fn(&Value) -> Option<Value>,
    ) -> Vec<Value> {
        self.prompt(prompt);
        self.finish_turn(reply)
    }

    pub(crate) fn finish_turn(&mut self, reply: impl Fn(&Value) -> Option<Value>) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.until(|_| true);
            if line["type"] == "control_request"
                && let Some(response) = reply(&line["request"])
            {
                self.answer(&line, response);
            }
            let ended = line["type"] == "result";
            lines.push(line);
            if ended {
                return lines;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.program.hang_up();
    }

    pub(crate) fn kill(&mut self) {
        self.program.kill();
    }

    /// Closes stdin, reads stdout to its end, and waits for the exit. Returns the exit code and stderr.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        self.close_stdin();
        while self.next_line().is_some() {}
        let Ended { code, stderr } = self.program.end();
        (code, stderr)
    }

    /// Closes stdin. Returns the rest of stdout, which must be JSON, and the exit code. Stderr must be
    /// empty.
    pub(crate) fn rest(mut self) -> (Vec<Value>, Option<i32>) {
        let read = self.written.len();
        let (code, stderr) = self.end();
        assert_eq!(stderr, "", "stderr is empty");
        let rest = self.written[read..].iter();
        (rest.map(|line| serde_json::from_str(line).expect("JSON")).collect(), code)
    }
}
