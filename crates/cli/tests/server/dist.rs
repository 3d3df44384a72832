//! The systemd unit and the container file: what they start exists.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use crate::shared::{PATIENCE, Server};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(name);
    std::fs::read_to_string(path).expect("a file of dist")
}

fn help() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
    let output = command.args(["serve", "--help"]).output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn are_known(words: &[&str]) {
    let help = help();
    assert!(words.contains(&"serve"), "{words:?}");
    for word in words.iter().filter(|word| word.starts_with('-')) {
        let is_known = help.split_whitespace().any(|known| known.trim_end_matches(',') == *word);
        assert!(is_known, "{word} is not a flag of serve");
    }
}

#[test]
fn the_unit_starts_the_server_and_leaves_the_rest_to_the_settings() {
    let unit = read("agentwire.service");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let words: Vec<&str> = started.expect("a command").split_whitespace().collect();
    assert!(words[0].ends_with("/agentwire"));
    // Flags would take precedence over the settings.
    assert_eq!(words[1..], ["serve"]);
    // No agent works in the home directory.
    let place = unit.lines().find_map(|line| line.strip_prefix("WorkingDirectory="));
    assert_eq!(place, Some("-%h/projects"));
    // Longer than the server takes to stop.
    let patience = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    assert!(patience.expect("a limit").parse::<u32>().expect("seconds") > 10);
}

#[test]
fn the_container_starts_the_server_as_a_plain_user() {
    let file = read("Containerfile");
    let list = |name: &str| -> Vec<String> {
        let line = file.lines().rev().find_map(|line| line.strip_prefix(name));
        serde_json::from_str(line.expect("a line")).expect("a list")
    };
    assert_eq!(list("ENTRYPOINT "), ["agentwire"]);
    let command = list("CMD ");
    are_known(&command.iter().map(String::as_str).collect::<Vec<_>>());
    let last = file.lines().rev().find_map(|line| line.strip_prefix("USER "));
    assert_eq!(last, Some("agentwire"));
    let settings = read("../docs/settings.md");
    for word in file.split(|c: char| !(c.is_ascii_uppercase() || c == '_')) {
        assert!(!word.starts_with("AGENTWIRE_") || settings.contains(word), "{word}");
    }
}

/// As `Type=notify` expects.
#[test]
fn systemd_hears_when_the_server_is_ready_and_when_it_stops() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let server = Server::set_up(&[], "", |command, _| {
        command.env("NOTIFY_SOCKET", &path);
    });
    let hear = || {
        let mut text = [0; 64];
        let count = socket.recv(&mut text).expect("a notification");
        String::from_utf8_lossy(&text[..count]).into_owned()
    };
    assert_eq!(hear(), "READY=1");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(hear(), "STOPPING=1");
}
