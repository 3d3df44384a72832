//! Calls to the servers' tools.

use serde_json::{Value, json};

use super::{Link, MessagePurpose};
use crate::commands::demo_agent::agent::{Agent, Halt};
use crate::commands::demo_agent::json::JsonFields as _;
use crate::commands::demo_agent::tools::{Outcome, ToolCall};

impl Agent {
    pub(in crate::commands::demo_agent) fn call_server(
        &mut self,
        call: &ToolCall<'_>,
    ) -> Result<Outcome, Halt> {
        let number = self.servers.iter().position(|server| server.tool(call.name).is_some());
        let tool = number.and_then(|number| self.servers.get(number)?.tool(call.name));
        let (Some(number), Some(tool)) = (number, tool) else {
            return Ok(Outcome::failed("the server is gone"));
        };
        let params = json!({
            "name": tool,
            "arguments": call.input,
            "_meta": { "claudecode/toolUseId": call.id },
        });
        let id = self.send_to_server(number, MessagePurpose::ToolCall, "tools/call", params)?;
        let result = match self.await_call(number, id) {
            Ok(result) => result,
            Err(halt) => {
                self.cancel_call(number, id);
                return Err(halt);
            }
        };
        Ok(match result {
            Ok(result) => {
                let content = result.at("content").clone();
                if result.at("isError") == true {
                    let given = Outcome { content, is_error: true, structured: None };
                    Outcome::failed(&given.text())
                } else {
                    Outcome::done(content.clone(), content)
                }
            }
            Err(error) => Outcome::failed(&format!("MCP error {error}")),
        })
    }

    fn await_call(&mut self, number: usize, id: u64) -> Result<Result<Value, String>, Halt> {
        loop {
            let Some(server) = self.servers.get_mut(number) else {
                return Ok(Err("the server is gone".to_owned()));
            };
            if let Some(at) = server.results.iter().position(|(done, _)| *done == id) {
                return Ok(server.results.swap_remove(at).1);
            }
            let hosted = matches!(server.link, Link::Hosted);
            if hosted && !self.listening {
                return Ok(Err("the client is gone".to_owned()));
            }
            self.wait(None)?;
        }
    }

    /// The caller no longer waits.
    fn cancel_call(&mut self, number: usize, id: u64) {
        let Some(server) = self.servers.get_mut(number) else { return };
        server.waiting.retain(|(waiting, _)| *waiting != id);
        if let Link::Child(child) = &server.link {
            let params = json!({ "requestId": id, "reason": "interrupted" });
            child.send(&json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
            }));
        }
    }
}
