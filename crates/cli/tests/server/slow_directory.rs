//! A working directory that does not respond: a FUSE file system whose server never answers.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shared::{PATIENCE, Server, skipped};

/// Mounts the file system so that only the server and its children see it, then becomes the server.
const MOUNT: &str = "exec 7<>/dev/fuse && mount -i -t fuse -o \
                     fd=7,rootmode=40000,user_id=0,group_id=0 hang \"$0\" && exec \"$@\"";

fn in_directory(directory: &Path) -> Value {
    let config = json!({ "workingDirectory": directory });
    json!({ "agentType": "demo", "prompt": "/say hi", "config": config })
}

/// A server that sees such a file system, and its path.
fn server() -> Option<(Server, TempDir)> {
    let can_mount = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can_mount {
        skipped("no FUSE file system can be mounted here", "AGENTWIRE_REQUIRE_FUSE");
        return None;
    }
    let dead = tempfile::tempdir().expect("a directory");
    let at = dead.path().to_str().expect("UTF-8");
    let launcher = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, at];
    Some((Server::launched(&launcher, &[]), dead))
}

/// However many directories do not respond, and whatever links lead there, sessions elsewhere are created
/// and work.
#[test]
fn no_number_of_dead_directories_takes_the_place_of_others() {
    let Some((server, dead)) = server() else { return };
    // More than are checked at the same time.
    let count = 200;
    let paths = (0..count).map(|number| {
        let below = dead.path().join(format!("project-{number}"));
        if number % 2 == 0 {
            return below;
        }
        let link = server.work().join(format!("link-{number}"));
        std::os::unix::fs::symlink(below, &link).expect("a link");
        link
    });
    let paths: Vec<PathBuf> = paths.collect();
    std::thread::scope(|scope| {
        for paths in paths.chunks(count / 20) {
            let server = &server;
            scope.spawn(move || {
                for path in paths {
                    let answer = server.ask("POST", "/v1/sessions", Some(&in_directory(path)));
                    assert_eq!(answer.code(), "timeout", "{answer:?}");
                }
            });
        }
    });
    let session = server.session("/say fine");
    server.until(&session, "turnCompleted");
    // Permissions are judged, too: this one without a request.
    let config = json!({ "approvalMode": "autoEdit" });
    let body = json!({ "agentType": "demo", "prompt": "/write fine.txt y", "config": config });
    let session = server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned();
    server.until(&session, "turnCompleted");
    assert!(server.work().join("fine.txt").exists());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_directory_that_does_not_answer_holds_up_nobody_else() {
    let Some((server, dead)) = server() else { return };
    let below = dead.path().join("project");
    let further = json!({ "additionalDirectories": [below.join("further")] });
    let further = json!({ "agentType": "demo", "prompt": "/say hi", "config": further });
    let (over, is_over) = mpsc::sync_channel::<()>(1);
    std::thread::scope(|scope| {
        // More than there are serving threads. All of them wait, because they are fewer than may wait.
        let bodies = [in_directory(&below), further].into_iter().cycle().take(12);
        let waiting: Vec<_> = bodies
            .map(|body| {
                let server = &server;
                scope.spawn(move || server.ask("POST", "/v1/sessions", Some(&body)))
            })
            .collect();
        let asked = &server;
        scope.spawn(move || {
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                assert_eq!(asked.raw("GET", "/healthz", &[], b"").status, 200);
                let ended = is_over.recv_timeout(Duration::from_millis(10));
                if ended != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
        });
        let session = server.session("/say fine");
        server.until(&session, "turnCompleted");
        assert!(!waiting.iter().any(|call| call.is_finished()), "they wait");
        let answers: Vec<_> = waiting.into_iter().map(|call| call.join()).collect();
        drop(over);
        for answer in answers {
            let answer = answer.expect("an answer");
            assert_eq!((answer.status, answer.code()), (504, "timeout".to_owned()), "{answer:?}");
            assert!(answer.text.contains("does not answer"), "{answer:?}");
        }
    });
    // It is known by now, and nobody waits for it again.
    for directory in [below.clone(), below.join("src")] {
        let answer = server.ask("POST", "/v1/sessions", Some(&in_directory(&directory)));
        assert_eq!(answer.code(), "timeout");
        assert!(answer.text.contains("an earlier check has not finished"), "{answer:?}");
    }
    let session = server.session("/say fine");
    server.until(&session, "turnCompleted");
    assert_eq!(server.stop(), Some(0));
}
