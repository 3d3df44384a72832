//! The examples of docs/protocols/claude-front.md, exchanged with the program.

use serde_json::Value;

use crate::claude::client::ClaudeHome;
use crate::examples::{Wire, exchange};
use crate::shared::ClaudeClient;

impl Wire for ClaudeClient {
    fn say(&mut self, line: &[u8]) {
        self.send_raw(std::str::from_utf8(line).expect("UTF-8"));
    }

    fn read(&mut self) -> Value {
        ClaudeClient::read(self)
    }

    fn may_pass(&self, said: &Value) -> bool {
        said["type"] != "result" && said["type"] != "control_request"
    }

    fn close(self) {
        let (unread, _) = self.rest();
        assert_eq!(unread, [] as [Value; 0]);
    }
}

#[test]
fn the_document_says_what_is() {
    let connect = || ClaudeHome::new().client(&["--permission-prompt-tool", "stdio"]);
    let shown = exchange("claude-front.md", connect);
    assert!(shown > 15, "only {shown} lines are shown");
}
