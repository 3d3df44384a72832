//! However an agent, its session or the gateway ends, no process is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use agentwire_dialects::agent::Exit;
use agentwire_sessions::process::{Process, TreeSignal, become_subreaper, hide_memory};
use tokio::time::timeout;

use crate::process::harness::{
    EVIL, LONG, assert_evil, assert_none_left, contain, contain_both, exists, expect, marker,
    parent, pid, shell, tell, until,
};

/// Set for a process of this test that acts as a gateway. The value marks its agents.
const GATEWAY: &str = "AGENTWIRE_TEST_GATEWAY";

fn rounds() -> usize {
    if std::env::var_os("AGENTWIRE_SOAK").is_some() { 50 } else { 5 }
}

/// Starts evil trees, ends each in this way, and looks for survivors.
async fn end_by(end: impl AsyncFn(Process) -> Option<Exit>, expected: Option<Exit>) {
    for contain in contain_both().await {
        for round in 0..rounds() {
            let marker = marker();
            let mut process = contain.spawn(shell(EVIL, &marker)).await.unwrap();
            expect(&mut process, "ready").await;
            assert_evil(&marker).await;
            let keeper = parent(pid(&process));
            assert!(exists(keeper));
            assert_eq!(end(process).await, expected, "round {round}");
            assert_none_left(&marker).await;
            until("the keeper is still there", || !exists(keeper)).await;
        }
    }
}

async fn wait(process: &mut Process) -> Option<Exit> {
    let exit = timeout(LONG, process.control.exited()).await.unwrap();
    timeout(LONG, process.control.gone()).await.unwrap();
    Some(exit)
}

#[tokio::test]
async fn by_its_exit() {
    let end = async |mut process: Process| {
        tell(&mut process, "exit\n").await;
        wait(&mut process).await
    };
    end_by(end, Some(Exit::Code(7))).await;
}

#[tokio::test]
async fn by_terminate() {
    let end = async |mut process: Process| {
        process.control.signal(TreeSignal::Terminate);
        wait(&mut process).await
    };
    end_by(end, Some(Exit::Signal(15))).await;
}

#[tokio::test]
async fn by_kill() {
    let end = async |mut process: Process| {
        process.control.signal(TreeSignal::Kill);
        wait(&mut process).await
    };
    end_by(end, Some(Exit::Signal(9))).await;
}

#[tokio::test]
async fn by_kill_while_paused() {
    let end = async |mut process: Process| {
        process.control.signal(TreeSignal::Pause);
        process.control.signal(TreeSignal::Kill);
        wait(&mut process).await
    };
    end_by(end, Some(Exit::Signal(9))).await;
}

#[tokio::test]
async fn by_dropping_the_hold() {
    let end = async |process: Process| {
        drop(process.control);
        None
    };
    end_by(end, None).await;
}

#[tokio::test]
async fn by_the_death_of_the_gateway() {
    for _ in 0..rounds() {
        let marker = marker();
        let mut gateway = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::endings::as_the_gateway", "--nocapture"])
            .env(GATEWAY, &marker)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(gateway.stdout.take().unwrap());
        assert!(stdout.lines().map_while(Result::ok).any(|line| line.contains("the trees stand")));
        assert_evil(&marker).await;
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        assert_none_left(&marker).await;
    }
}

/// Not a test itself: the gateway that the test above kills.
#[tokio::test]
async fn as_the_gateway() {
    let Ok(marker) = std::env::var(GATEWAY) else { return };
    become_subreaper().unwrap();
    hide_memory().unwrap();
    let contain = contain().await;
    let mut evil = contain.spawn(shell(EVIL, &marker)).await.unwrap();
    expect(&mut evil, "ready").await;
    // A stopped keeper must still notice the gateway's death.
    let script = "setsid sleep 300 & read -r line; kill -STOP $PPID; echo ready; sleep 300";
    let mut deaf = contain.spawn(shell(script, &marker)).await.unwrap();
    tell(&mut deaf, "now\n").await;
    expect(&mut deaf, "ready").await;
    writeln!(std::io::stdout(), "the trees stand").unwrap();
    std::future::pending::<()>().await;
}
