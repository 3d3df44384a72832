//! Trees that try to escape when the gateway is killed: they fork as fast as they can, attack their keeper
//! and become other users. In a pid namespace, no process is left.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentwire_dialects::agent::Exit;
use agentwire_sessions::process::{
    Contain, ContainmentChoice, TreeSignal, become_subreaper, hide_memory,
};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::time::timeout;

use crate::process::harness::{
    LONG, SURVIVAL, contain_namespace, expect, keeper, marker, shell, until,
};
use crate::shared::marked;

/// Set for a process of this test that acts as a gateway. The value marks its agents.
const GATEWAY: &str = "AGENTWIRE_TEST_HYDRA";

/// The program that this gateway starts as a keeper.
const KEEPER: &str = "AGENTWIRE_TEST_KEEPER";

/// A user that exists everywhere and is not root.
const NOBODY: u32 = 65534;

/// Each head keeps replacing itself with a new process, some in a new session each time, and one attacks
/// its parent. The number of heads stays the same, so that the machine survives.
const HYDRA: &str = r#"
marker=$1
keeper=$PPID
trap '' INT TERM HUP
head() { head & }
i=0; while [ $i -lt 12 ]; do head; i=$((i + 1)); done
sessions='setsid sh -c "$0" "$0" "$1" &'
i=0; while [ $i -lt 4 ]; do sh -c "$sessions" "$sessions" "$marker"; i=$((i + 1)); done
(while :; do kill -STOP $keeper; kill -9 $keeper; sleep 0.02; done) 2>/dev/null &
if [ "$(id -u)" = 0 ]; then
    setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$sessions" "$sessions" "$marker"
    setpriv --reuid 65534 --regid 65534 --clear-groups sleep 300 &
fi
sleep 300 &
echo ready
while :; do kill -STOP $keeper 2>/dev/null; sleep 0.02; done
"#;

fn rounds() -> usize {
    if std::env::var_os("AGENTWIRE_SOAK").is_some() { 200 } else { 12 }
}

fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Kills the marked processes even if the test fails.
struct Cleanup(String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < LONG && !is_gone(&self.0) {
            for (pid, _) in marked(&self.0) {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
        }
    }
}

/// A process that keeps replacing itself can escape one scan, but not many.
fn is_gone(marker: &str) -> bool {
    (0..10).all(|_| marked(marker).is_empty())
}

async fn assert_gone(marker: &str) {
    let begun = Instant::now();
    while !is_gone(marker) {
        let left = marked(marker);
        assert!(begun.elapsed() < SURVIVAL, "{} left: {left:?}", left.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Kills gateways whose agents are hydras.
async fn kill_gateways(program: &Path, keeper: &Path, user: Option<u32>) {
    for _ in 0..rounds() {
        let marker = marker();
        let _cleanup = Cleanup(marker.clone());
        let mut command = Command::new(program);
        command
            .args(["--exact", "process::forking_trees::as_the_gateway", "--nocapture"])
            .env(GATEWAY, &marker)
            .env(KEEPER, keeper)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut gateway = command.spawn().unwrap();
        let stdout = BufReader::new(gateway.stdout.take().unwrap());
        let lines: Vec<String> = stdout
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.contains("the hydra stands"))
            .collect();
        if lines.iter().any(|line| line.contains("no namespace")) {
            gateway.wait().unwrap();
            assert!(user.is_some(), "{lines:?}");
            skipped("a plain user has no pid namespace here");
            return;
        }
        until("the hydra stands", || marked(&marker).len() > 5).await;
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        assert_gone(&marker).await;
    }
}

#[tokio::test]
async fn nobody_is_left_when_the_gateway_is_killed() {
    if contain_namespace().await.is_some() {
        kill_gateways(&std::env::current_exe().unwrap(), &keeper(), None).await;
    }
}

/// The same for a user who is not root, for whom a user namespace is the only way.
#[tokio::test]
async fn nobody_is_left_of_a_plain_user_either() {
    if !geteuid().is_root() {
        return skipped("only root can become another user");
    }
    if contain_namespace().await.is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Other users may not be able to read the build directory.
    let bring = |from: &Path, name: &str| -> PathBuf {
        let to = place.path().join(name);
        fs::copy(from, &to).unwrap();
        to
    };
    let program = bring(&std::env::current_exe().unwrap(), "test");
    let keeper = bring(&keeper(), "agentwire");
    kill_gateways(&program, &keeper, Some(NOBODY)).await;
}

/// Not a test itself: the gateway that the tests above kill.
#[tokio::test]
async fn as_the_gateway() {
    let Ok(marker) = std::env::var(GATEWAY) else { return };
    become_subreaper().unwrap();
    hide_memory().unwrap();
    let keeper = std::env::var_os(KEEPER).map(PathBuf::from);
    let Ok(contain) = Contain::probe(keeper, ContainmentChoice::Namespace).await else {
        writeln!(std::io::stdout(), "no namespace").unwrap();
        return;
    };
    let mut hydra = contain.spawn(shell(HYDRA, &marker)).await.unwrap();
    expect(&mut hydra, "ready").await;
    writeln!(std::io::stdout(), "the hydra stands").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_hydra_ends_with_its_session() {
    let Some(contain) = contain_namespace().await else { return };
    for drop_it in [false, true] {
        let marker = marker();
        let _cleanup = Cleanup(marker.clone());
        let mut process = contain.spawn(shell(HYDRA, &marker)).await.unwrap();
        expect(&mut process, "ready").await;
        if drop_it {
            drop(process.control);
        } else {
            process.control.signal(TreeSignal::Kill);
            let exit = timeout(LONG, process.control.exited()).await.unwrap();
            assert_eq!(exit, Exit::Signal(9));
            timeout(LONG, process.control.gone()).await.unwrap();
        }
        assert_gone(&marker).await;
    }
}
