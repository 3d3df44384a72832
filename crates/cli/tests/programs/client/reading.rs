//! `ls`, `show`, `logs`, `export` and `wait` print the same on the server's machine and on another.

use crate::client::harness::{EVERYWHERE, From, Machines, numbers, short};
use crate::shared::text;

#[test]
fn what_is_read_is_the_same_everywhere() {
    let machines = Machines::new();
    let over = machines.session("/think hmm\n/say one\n/raw {\"a\": 1, \"a\": 2}\n/say two");
    machines.until(&over, "turnCompleted", 0);
    machines.told(From::Here, &["stop", over.id().as_str()]);
    let asks = machines.session("/bash echo 'a b'");
    machines.request(&asks);
    let (over, asks) = (over.id().as_str(), asks.id().as_str());
    for args in [
        vec!["ls", "--json"],
        vec!["ls", "--json", "--limit", "1"],
        vec!["show", asks, "--json"],
        vec!["show", &over[..6], "--json"],
        vec!["logs", over],
        vec!["logs", "-f", over],
        vec!["logs", over, "--format", "jsonl"],
        vec!["logs", over, "--format", "jsonl", "--profile", "core"],
        vec!["logs", over, "--format", "jsonl", "--after", "3"],
        vec!["logs", over, "--native"],
        vec!["logs", asks],
        vec!["export", over],
        vec!["export", over, "--format", "markdown"],
        vec!["export", asks, "--format", "text"],
        vec!["wait", over],
        vec!["wait", asks, "--for", "request", "--json"],
        vec!["attach", over],
        vec!["attach", over, "--format", "jsonl"],
        vec!["permit", "ls", "--json"],
    ] {
        let here = machines.told(From::Here, &args);
        assert!(!here.is_empty(), "{args:?}");
        assert_eq!(here, machines.told(From::There, &args), "{args:?}");
    }
    let exported = machines.told(From::There, &["export", over]);
    let numbers = numbers(&exported);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(exported.contains(r#"{\"a\": 1, \"a\": 2}"#), "{exported}");
    // The other machine only asks the server, and stores nothing.
    let kept: Vec<_> =
        std::fs::read_dir(machines.path("elsewhere")).expect("a directory").collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn a_long_log_comes_whole() {
    let machines = Machines::new();
    let session = machines.session("/repeat 50000 word ");
    machines.until(&session, "turnCompleted", 0);
    let id = session.id().as_str();
    let exported = machines.told(From::There, &["export", id]);
    assert_eq!(exported, machines.told(From::Here, &["export", id]));
    machines.told(From::There, &["stop", id]);
    let followed = machines.told(From::There, &["logs", "-f", "--format", "jsonl", id]);
    let numbers = numbers(&followed);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(followed.starts_with(&exported));
}

#[test]
fn wait_sees_how_it_ends() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/sleep 300\n/fail no good");
        let told = machines.refused_but_told(from, &["wait", session.id().as_str()]);
        assert!(told.contains(short(&session)) && told.contains("failed"), "{told}");
        let hangs = machines.session("/hang");
        let told =
            machines.refused_but_told(from, &["wait", hangs.id().as_str(), "--timeout", "0.2"]);
        assert!(told.contains("within 0.2 s (state: working)"), "{told}");
        let mut waiting = machines.verb(from, &["wait", hangs.id().as_str(), "--for", "ended"]);
        let waiting = waiting.spawn().expect("it starts");
        machines.told(from, &["stop", hangs.id().as_str()]);
        let output = waiting.wait_with_output().expect("it ends");
        assert!(text(&output.stdout).contains(hangs.id().as_str()), "{output:?}");
    }
}

impl Machines {
    /// Runs a command that must fail with code 1, and returns its stderr.
    fn refused_but_told(&self, from: From, args: &[&str]) -> String {
        let output = self.run(from, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        crate::shared::error(&output)
    }
}
