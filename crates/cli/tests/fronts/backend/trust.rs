//! An untrusted project: the client is asked before the agent starts.

use serde_json::json;

use crate::backend::client::Client;
use crate::claude::trust::{project, start};
use crate::shared::Home;

#[test]
fn the_client_is_asked_whether_a_project_is_trusted() {
    for is_trusted in [false, true] {
        let home = Home::new();
        let program = project(&home).display().to_string();
        let variables = [("AGENTWIRE_AGENT", "claude"), ("AGENTWIRE_CLAUDE_BIN", &*program)];
        let mut client = Client::at(&home, &variables);
        let session = client.create("/say hello", &json!({}));
        let callback = client.next("callback.request");
        let asked = &callback["payload"];
        assert_eq!(asked["tool_name"], "TrustDirectory", "{callback}");
        let runs = &asked["tool_input"]["files"][0]["runs"];
        assert_eq!(runs[0], "apiKeyHelper: evil", "{callback}");
        assert!(!home.path("argv.log").exists(), "it started before it was asked about");
        let answer = match is_trusted {
            true => json!({ "behavior": "allow" }),
            false => json!({ "behavior": "deny", "message": "no" }),
        };
        client.answer(&callback, &answer);
        assert_eq!(client.result(), "hello");
        assert_eq!(!start(&home).contains("--setting-sources=user"), is_trusted);
        client.kill(&session);
        client.finish();
    }
}
