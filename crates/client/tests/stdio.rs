//! A closed client leaves no child process behind, even if the child misbehaves.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agentwire_client::{AgentClient, AgentType, SessionRequest, StdioTransport};
use tempfile::TempDir;

/// Reads nothing, writes nothing, and does not exit when its stdin closes.
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

/// Polls until the condition holds. The runtime's paused clock runs ahead, so no real time passes while a
/// child exits.
async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One test, because a new file cannot be executed while another thread forks.
#[tokio::test(start_paused = true)]
async fn children_that_do_not_exit_are_killed() {
    let place = tempfile::tempdir().expect("a directory");
    let program = deaf(&place);
    when_the_client_is_closed(&program).await;
    when_it_is_dropped(&program).await;
}

async fn when_the_client_is_closed(program: &Path) {
    // A line that fits into the pipe, and one that does not and blocks all others.
    for size in [1, 1 << 20] {
        let child = StdioTransport::new(program);
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
        let closing = tokio::spawn({
            let client = client.clone();
            async move { client.close().await }
        });
        until(|| closing.is_finished()).await;
        assert!(!lives(pid));
        for start in starting {
            start.await.expect("it ends").expect_err("it has not started");
        }
        let error = client.requests().await.expect_err("it is closed");
        assert!(!error.is_retryable() && error.message().contains("was closed"), "{error}");
        assert_eq!(child.pid(), None);
    }
}

async fn when_it_is_dropped(program: &Path) {
    let child = StdioTransport::new(program);
    let client = AgentClient::over(child.clone());
    let request = SessionRequest::new(AgentType::Demo, "x".repeat(1 << 20));
    let starting = tokio::spawn(async move { client.create(request).await });
    while child.pid().is_none() {
        tokio::task::yield_now().await;
    }
    let pid = child.pid().expect("it runs");
    drop(child);
    starting.abort();
    until(|| !lives(pid)).await;
}
