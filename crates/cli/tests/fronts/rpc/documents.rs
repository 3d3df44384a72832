//! The examples of docs/protocols/jsonrpc.md, exchanged with the program.

use serde_json::Value;

use crate::examples::{Wire, exchange};
use crate::rpc::client::Client;

impl Wire for Client {
    fn say(&mut self, line: &[u8]) {
        Client::say(self, line);
    }

    fn read(&mut self) -> Value {
        Client::read(self)
    }

    fn may_pass(&self, said: &Value) -> bool {
        said["method"] == "message" || said["method"] == "session/ended"
    }

    fn close(self) {
        Client::close(self);
    }
}

#[test]
fn the_document_says_what_is() {
    let shown = exchange("jsonrpc.md", Client::new);
    assert!(shown > 15, "only {shown} lines are shown");
}
