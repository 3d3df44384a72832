//! Children that do not behave: a client that is closed leaves none of them behind.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentwire_client::{AgentClient, AgentType, SessionRequest, StdioTransport};
use tempfile::TempDir;

/// Reads nothing, says nothing, and does not end when its stdin does.
fn deaf(place: &TempDir) -> PathBuf {
    let program = place.path().join("agentwire");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").expect("a program");
    let may_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, may_run).expect("a program");
    program
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// The clock stands still but where everybody waits for it: nobody need wait as long as the child may.
#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_end_is_killed() {
    let place = tempfile::tempdir().expect("a directory");
    // What fits into the pipe, and what does not and keeps all else waiting.
    for size in [1, 1 << 20] {
        let child = StdioTransport::new(deaf(&place));
        let client = AgentClient::over(child.clone());
        let starting: Vec<_> = (0..40)
            .map(|_| {
                let request = SessionRequest::new(AgentType::Demo, "x".repeat(size));
                let client = client.clone();
                tokio::spawn(async move { client.create(request).await })
            })
            .collect();
        while child.pid().is_none() {
            tokio::task::yield_now().await;
        }
        let pid = child.pid().expect("it runs");
        assert!(lives(pid));
        client.close().await;
        assert!(!lives(pid));
        for start in starting {
            start.await.expect("it ends").expect_err("it is not begun");
        }
        let error = client.requests().await.expect_err("it is closed");
        assert!(!error.is_retryable() && error.message().contains("was closed"), "{error}");
        assert_eq!(child.pid(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn so_is_one_whose_client_is_dropped() {
    let place = tempfile::tempdir().expect("a directory");
    let child = StdioTransport::new(deaf(&place));
    let client = AgentClient::over(child.clone());
    let request = SessionRequest::new(AgentType::Demo, "x".repeat(1 << 20));
    let starting = tokio::spawn(async move { client.create(request).await });
    while child.pid().is_none() {
        tokio::task::yield_now().await;
    }
    let pid = child.pid().expect("it runs");
    drop(child);
    starting.abort();
    while lives(pid) {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}
