//! What `agentwire agents` reports about a program.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::agents::Login;
use crate::harness::{PATIENCE, Place};

/// Its version, and whether it is signed in: first it is not, then it is. Programs older than the tested
/// versions are not asked.
pub(crate) fn login(place: &mut Place) {
    let home = place.workspace();
    (place.agent.set_up)(&home, &place.models.url());
    let before = told(place, place.stranger(&home, false));
    let is_asked = before["standing"] != "older" && !matches!(place.agent.login, Login::Untold);
    if !is_asked {
        assert_eq!(before["login"], "notTold", "{before}");
        return;
    }
    let after = match place.agent.login {
        Login::Variable | Login::Untold => told(place, place.stranger(&home, true)),
        Login::Command(words) => {
            sign_in(place.at_home(&home, Command::new(&place.program), false), words);
            told(place, place.stranger(&home, false))
        }
    };
    assert_eq!(before["login"], "notSignedIn", "{before}");
    assert_eq!(
        (&after["login"], &after["loginMethod"]),
        (&json!("signedIn"), &json!("apiKey")),
        "{after}"
    );
}

/// The report on the column's program. A reported version must be that of the package. agentwire does not
/// wait long for a program, so on a busy machine this repeats until the login is known, if the program
/// reports one.
fn told(place: &Place, mut command: Command) -> Value {
    command.args(["agents", "--json"]);
    let begun = Instant::now();
    loop {
        let output = command.output().expect("it runs");
        let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let agents = all["agents"].as_array().expect("a list");
        let agent = agents.iter().find(|agent| agent["name"] == place.agent.kind);
        let agent = agent.expect("an agent");
        assert_eq!(agent["path"], json!(&place.program));
        if place.agent.kind != "acp" && !agent["version"].is_null() {
            assert_eq!(agent["version"], place.agent.package.installed(&place.program), "{agent}");
        }
        let tells = !matches!(place.agent.login, Login::Untold) && agent["standing"] != "older";
        if !tells || agent["login"] != "notTold" || begun.elapsed() > PATIENCE {
            return agent.clone();
        }
    }
}

fn sign_in(mut command: Command, words: &[&str]) {
    let command = command.args(words).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let key = b"sk-made-up-key-for-tests-0123456789\n";
    child.stdin.take().expect("stdin").write_all(key).expect("it reads");
    assert!(child.wait().expect("it ends").success());
}
