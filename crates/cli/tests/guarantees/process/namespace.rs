//! What an agent can see in its pid namespace, and what it cannot.

use std::fs;

use agentwire_dialects::agent::Exit;
use agentwire_sessions::process::{FileIdentity, Spawn, Veil};
use tokio::time::timeout;

use crate::process::harness::{LONG, contain_namespace, marker, rest, shell};

#[tokio::test]
async fn an_agent_sees_its_own_processes_alone() {
    let Some(contain) = contain_namespace().await else { return };
    let own = std::process::id();
    let script = format!(
        "echo $PPID; kill -0 {own} 2>/dev/null && echo reached; ls -d /proc/[0-9]* | wc -l; \
         cat /proc/$$/comm; kill -9 1; kill -STOP 1; sleep 0.1; id -u; exit 5"
    );
    let mut process = contain.spawn(shell(&script, &marker())).await.unwrap();
    let text = rest(&mut process).await;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let user = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(lines.first(), Some(&"1"), "{text}");
    assert!(lines[1].parse::<u32>().unwrap() < 10, "{text}");
    assert_eq!(&lines[2..], ["sh", user.as_str()], "{text}");
    // The first process of the namespace is still there to report the exit.
    assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(5));
}

#[tokio::test]
async fn what_is_hidden_is_empty_and_what_is_shown_is_not() {
    let Some(contain) = contain_namespace().await else { return };
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("data/run/inner")).unwrap();
    fs::create_dir_all(path("work")).unwrap();
    for name in ["data/secret", "data/run/inner/file", "key", "work/file"] {
        fs::write(path(name), name).unwrap();
    }
    let veil = Veil {
        hidden: vec![path("data"), path("key"), path("missing")],
        shown: vec![path("data/run"), path("data/absent")],
        identities: [path("data"), path("key")].map(identity).into(),
    };
    let script = "cat data/secret 2>/dev/null; cat key; ls data; cat data/run/inner/file work/file; \
                  echo new > data/run/new; echo x 2>/dev/null > data/x || echo closed; \
                  umount data 2>/dev/null; rm -rf data/run/new; ls data";
    let spawn = Spawn { directory: place.path().into(), veil, ..shell(script, &marker()) };
    let mut process = contain.spawn(spawn).await.unwrap();
    let text = rest(&mut process).await;
    assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(0));
    if rustix::process::geteuid().is_root() {
        // Root can unmount the veil; until then it hides as much as for everyone.
        assert!(text.starts_with("run\ndata/run/inner/filework/fileclosed\n"), "{text}");
    } else {
        assert_eq!(text, "run\ndata/run/inner/filework/fileclosed\nrun\n");
    }
    assert_eq!(fs::read_to_string(path("data/secret")).unwrap(), "data/secret", "outside");
    assert_eq!(fs::read_to_string(path("key")).unwrap(), "key");
}

fn identity(path: std::path::PathBuf) -> FileIdentity {
    let found = fs::metadata(&path).unwrap();
    FileIdentity::of(path, &found)
}

/// An agent may move a hidden path between the gateway's check and the keeper's. Then nothing starts.
#[tokio::test]
async fn what_was_moved_before_it_is_hidden_keeps_the_agent_from_starting() {
    let Some(contain) = contain_namespace().await else { return };
    for name in ["data", "key"] {
        for is_replaced in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let path = |name: &str| place.path().join(name);
            fs::create_dir(path("data")).unwrap();
            fs::write(path("key"), "key").unwrap();
            let veil = Veil {
                hidden: vec![path("data"), path("key")],
                identities: [path("data"), path("key")].map(identity).into(),
                ..Veil::default()
            };
            fs::rename(path(name), path("moved")).unwrap();
            match name {
                _ if !is_replaced => {}
                "data" => fs::create_dir(path("data")).unwrap(),
                _ => fs::write(path("key"), "other").unwrap(),
            }
            let mark = path("ran");
            let script = format!("touch {}", mark.display());
            let spawn = Spawn { directory: "/".into(), veil, ..shell(&script, &marker()) };
            assert!(contain.spawn(spawn).await.is_err(), "{name} {is_replaced}");
            assert!(!mark.exists(), "{name} {is_replaced}");
        }
    }
}
