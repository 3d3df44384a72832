//! `ls`, `show`, `logs`, `export` and `wait` tell the same on the server's machine and on another.

use crate::harness::{EVERYWHERE, From, Place, numbers, short, text};

#[test]
fn what_is_read_is_the_same_everywhere() {
    let place = Place::new();
    let over = place.session("/think hmm\n/say one\n/raw {\"a\": 1, \"a\": 2}\n/say two");
    place.until(&over, "turnCompleted", 0);
    place.told(From::Here, &["stop", over.id().as_str()]);
    let asks = place.session("/bash echo 'a b'");
    place.request(&asks);
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
        let here = place.told(From::Here, &args);
        assert!(!here.is_empty(), "{args:?}");
        assert_eq!(here, place.told(From::There, &args), "{args:?}");
    }
    let exported = place.told(From::There, &["export", over]);
    let numbers = numbers(&exported);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(exported.contains(r#"{\"a\": 1, \"a\": 2}"#), "{exported}");
    // The other machine was only asked, and keeps nothing.
    let kept: Vec<_> = std::fs::read_dir(place.path("elsewhere")).expect("a directory").collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn a_long_log_comes_whole() {
    let place = Place::new();
    let session = place.session("/repeat 50000 word ");
    place.until(&session, "turnCompleted", 0);
    let id = session.id().as_str();
    let exported = place.told(From::There, &["export", id]);
    assert_eq!(exported, place.told(From::Here, &["export", id]));
    place.told(From::There, &["stop", id]);
    let followed = place.told(From::There, &["logs", "-f", "--format", "jsonl", id]);
    let numbers = numbers(&followed);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(followed.starts_with(&exported));
}

#[test]
fn wait_sees_how_it_ends() {
    for from in EVERYWHERE {
        let place = Place::new();
        let session = place.session("/sleep 300\n/fail no good");
        let told = place.refused_but_told(from, &["wait", session.id().as_str()]);
        assert!(told.contains(short(&session)) && told.contains("failed"), "{told}");
        let hangs = place.session("/hang");
        let told = place.refused_but_told(from, &["wait", hangs.id().as_str(), "--timeout", "0.2"]);
        assert!(told.contains("within 0.2 s (state: working)"), "{told}");
        let mut waiting = place.verb(from, &["wait", hangs.id().as_str(), "--for", "ended"]);
        let waiting = waiting.spawn().expect("it starts");
        place.told(from, &["stop", hangs.id().as_str()]);
        let output = waiting.wait_with_output().expect("it ends");
        assert!(text(&output.stdout).contains(hangs.id().as_str()), "{output:?}");
    }
}

impl Place {
    /// What it says on stderr; it fails.
    fn refused_but_told(&self, from: From, args: &[&str]) -> String {
        let output = self.run(from, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        crate::harness::error(&output)
    }
}
