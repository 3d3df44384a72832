//! The examples of docs/protocols/claude-front.md, exchanged with the program.

use serde_json::Value;

use crate::claude::client::{Client, Place};
use crate::examples::{Wire, exchange};

struct Example {
    client: Client,
    _place: Place,
}

impl Wire for Example {
    fn say(&mut self, line: &[u8]) {
        self.client.say(line);
    }

    fn read(&mut self) -> Value {
        self.client.read()
    }

    fn may_pass(&self, said: &Value) -> bool {
        said["type"] != "result" && said["type"] != "control_request"
    }

    fn close(self) {
        let (unread, _) = self.client.rest();
        assert_eq!(unread, [] as [Value; 0]);
    }
}

#[test]
fn the_document_says_what_is() {
    let connect = || {
        let place = Place::new();
        let client = place.client(&["--permission-prompt-tool", "stdio"]);
        Example { client, _place: place }
    };
    let shown = exchange("claude-front.md", connect);
    assert!(shown > 15, "only {shown} lines are shown");
}
