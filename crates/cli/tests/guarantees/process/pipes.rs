//! The process alone decides when it has exited, no matter who holds, closes, fills or ignores a pipe.

use agentwire_dialects::agent::Exit;
use agentwire_sessions::process::{Contain, TreeSignal};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::process::harness::{
    LONG, assert_none_left, contain, contain_all, contain_both, contain_group, expect, marker,
    rest, shell, tell,
};
use crate::shared::marked;

async fn exit(contain: &Contain, script: &str) -> (String, Exit) {
    let marker = marker();
    let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
    let text = rest(&mut process).await;
    let exit = timeout(LONG, process.control.exited()).await.unwrap();
    timeout(LONG, process.control.gone()).await.unwrap();
    assert_none_left(&marker).await;
    (text, exit)
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_holds_nothing_up() {
    for contain in contain_both().await {
        for holder in ["sleep 300 &", "setsid sleep 300 &", "(setsid sleep 300 &)"] {
            let script = format!("{holder}\necho said; exit 3");
            let expected = ("said\n".into(), Exit::Code(3));
            assert_eq!(exit(&contain, &script).await, expected, "{holder}");
        }
    }
}

#[tokio::test]
async fn all_that_was_written_is_read_before_the_end() {
    let script = "setsid sleep 300 & head -c 60000 /dev/zero | tr '\\0' x; exit 0";
    for contain in contain_all().await {
        let marker = marker();
        let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
        timeout(LONG, process.control.gone()).await.unwrap();
        assert_eq!(rest(&mut process).await.len(), 60000);
        for (pid, _) in marked(&marker) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        assert_none_left(&marker).await;
    }
}

#[tokio::test]
async fn a_closed_stdout_is_not_an_exit() {
    for contain in contain_both().await {
        let marker = marker();
        let script = "exec 1>&- 2>&-; read -r line; exit 5";
        let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
        assert_eq!(rest(&mut process).await, "");
        assert_eq!(marked(&marker).len(), 1);
        tell(&mut process, "now\n").await;
        assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(5));
    }
}

#[tokio::test]
async fn a_full_stderr_and_an_unread_stdin_hold_nothing_up() {
    let contain = contain().await;
    let script = "echo ready; while :; do echo more >&2; done";
    let mut process = contain.spawn(shell(script, &marker())).await.unwrap();
    expect(&mut process, "ready").await;
    let stdin = process.stdin.as_mut().unwrap();
    // Write until the pipe is full: nobody reads it.
    let full = timeout(std::time::Duration::from_millis(200), stdin.write_all(&[0; 1 << 20])).await;
    assert!(full.is_err());
    process.control.signal(TreeSignal::Terminate);
    assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Signal(15));
    timeout(LONG, process.control.gone()).await.unwrap();
}

#[tokio::test]
async fn without_a_keeper_the_group_ends() {
    let contain = contain_group().await;
    let (text, exit) = exit(&contain, "sleep 300 & (sleep 300 &); echo said; exit 3").await;
    assert_eq!((text.as_str(), exit), ("said\n", Exit::Code(3)));

    for drop_it in [false, true] {
        let marker = marker();
        let script = "sleep 300 & trap '' TERM; echo ready; sleep 300";
        let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
        expect(&mut process, "ready").await;
        if drop_it {
            drop(process);
        } else {
            process.control.signal(TreeSignal::Kill);
            let exit = timeout(LONG, process.control.exited()).await.unwrap();
            assert_eq!(exit, Exit::Signal(9));
        }
        assert_none_left(&marker).await;
    }
}
