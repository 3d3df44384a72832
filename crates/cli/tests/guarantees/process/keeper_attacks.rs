//! Agents that attack their keeper.

use std::process::Command;

use agentwire_dialects::agent::Exit;
use agentwire_sessions::process::{TreeSignal, become_subreaper};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::process::harness::{
    LONG, assert_none_left, contain, exists, expect, marker, parent, pid, shell, stat, tell, until,
};

/// A child of the gateway that is not an agent.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs in its own process: a subreaper adopts the orphans of all other tests.
#[test]
fn who_kills_the_keeper_ends_with_it_and_alone() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::keeper_attacks::as_a_subreaper", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "run by who_kills_the_keeper_ends_with_it_and_alone in its own process"]
async fn as_a_subreaper() {
    become_subreaper().unwrap();
    let contain = contain().await;
    let mut neighbour = contain.spawn(shell("read -r line; exit 6", &marker())).await.unwrap();
    let mut child = Child(Command::new("/bin/sleep").arg("300").spawn().unwrap());
    let marker = marker();
    let script = "sleep 300 & (setsid sleep 300 &); (setsid sh -c 'trap \"\" TERM; sleep 300' &); \
                  echo ready; read -r line; kill -9 $PPID; sleep 300";
    let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
    expect(&mut process, "ready").await;
    tell(&mut process, "now\n").await;
    assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Unknown);
    timeout(LONG, process.control.gone()).await.unwrap();
    assert_none_left(&marker).await;

    assert_eq!(child.0.try_wait().unwrap(), None, "our own child is not a stray");
    tell(&mut neighbour, "\n").await;
    assert_eq!(timeout(LONG, neighbour.control.exited()).await.unwrap(), Exit::Code(6));
}

#[tokio::test]
async fn who_attacks_the_fork_server_ends_no_agent_and_prevents_no_start() {
    let contain = contain().await;
    for signal in [Signal::STOP, Signal::KILL] {
        let marker = marker();
        let script = "setsid sleep 300 & read -r line; exit 6";
        let mut first = contain.spawn(shell(script, &marker)).await.unwrap();
        let server = parent(parent(pid(&first)));
        kill_process(Pid::from_raw(server).unwrap(), signal).unwrap();
        until("the fork server runs", || {
            stat(server, 0).is_none_or(|state| ["T", "Z"].contains(&state.as_str()))
        })
        .await;
        let spawned = timeout(LONG, contain.spawn(shell("exit 7", &marker))).await;
        let mut second = spawned.unwrap().unwrap();
        assert_eq!(timeout(LONG, second.control.exited()).await.unwrap(), Exit::Code(7));
        timeout(LONG, second.control.gone()).await.unwrap();
        tell(&mut first, "\n").await;
        assert_eq!(timeout(LONG, first.control.exited()).await.unwrap(), Exit::Code(6));
        timeout(LONG, first.control.gone()).await.unwrap();
        assert_none_left(&marker).await;
    }
}

#[tokio::test]
async fn who_stops_the_keeper_is_ended_all_the_same() {
    let contain = contain().await;
    for drop_it in [false, true] {
        let marker = marker();
        let script = "setsid sleep 300 & read -r line; kill -STOP $PPID; echo ready; sleep 300";
        let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
        let keeper = parent(pid(&process));
        tell(&mut process, "now\n").await;
        expect(&mut process, "ready").await;
        until("the keeper runs", || stat(keeper, 0).as_deref() == Some("T")).await;
        if drop_it {
            drop(process.control);
        } else {
            process.control.signal(TreeSignal::Kill);
            let exit = timeout(LONG, process.control.exited()).await.unwrap();
            assert_eq!(exit, Exit::Signal(9));
        }
        assert_none_left(&marker).await;
        until("the keeper is still there", || !exists(keeper)).await;
    }
}

#[tokio::test]
async fn who_stops_the_keeper_and_leaves_is_seen_to_leave() {
    let contain = contain().await;
    // At once, before the keeper can report that the agent runs; and later.
    for when in ["", "read -r line;"] {
        let marker = marker();
        let script = format!("setsid sleep 300 & {when} kill -STOP $PPID; exit 8");
        let spawned = timeout(LONG, contain.spawn(shell(&script, &marker))).await;
        let mut process = spawned.unwrap().unwrap();
        if !when.is_empty() {
            tell(&mut process, "now\n").await;
        }
        assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(8));
        timeout(LONG, process.control.gone()).await.unwrap();
        assert_none_left(&marker).await;
    }
}
