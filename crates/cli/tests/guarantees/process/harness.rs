//! Starts agents to be ended, and finds the processes they leave.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agentwire_sessions::process::{
    Contain, Containment, ContainmentChoice, Process, Spawn, StdinPlan, Veil,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;
use uuid::Uuid;

use crate::shared::{AGENTWIRE, marked, skipped};

/// Long enough for a loaded machine. What must be fast has its own limit.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The guarantee: no process is left after this time.
pub(crate) const SURVIVAL: Duration = Duration::from_secs(2);

/// A tree that tries everything to stay: children in the background, in their own sessions, orphaned,
/// ignoring signals, without their environment, and two that keep replacing themselves with a new process,
/// one of them in a new session each time.
pub(crate) const EVIL: &str = r#"
marker=$1
sleep 300 &
setsid sleep 300 &
(sleep 300 &)
(setsid sh -c 'sleep 300 & (setsid sleep 300 &); exec sleep 300' &)
sh -c 'trap "" INT TERM HUP; while :; do sleep 300; done' &
(setsid sh -c 'trap "" INT TERM HUP; while :; do sleep 300; done' &)
env -i sh -c 'while :; do /bin/sleep 300; done' "$marker" &
comet() { comet & }
comet
sessions='setsid sh -c "$0" "$0" "$1" &'
sh -c "$sessions" "$sessions" "$marker"
(i=0; while [ $i -lt 100 ]; do sleep 300 & i=$((i + 1)); done; wait) &
echo ready
read -r order
exit 7
"#;

pub(crate) fn keeper() -> PathBuf {
    AGENTWIRE.into()
}

/// Only a keeper, as on systems without namespaces.
pub(crate) async fn contain() -> Contain {
    let contain = Contain::probe(Some(keeper()), ContainmentChoice::Keeper).await.unwrap();
    assert!(matches!(contain.containment(), Containment::Keeper { .. }));
    contain
}

/// A pid namespace, if the system allows it.
pub(crate) async fn contain_namespace() -> Option<Contain> {
    match Contain::probe(Some(keeper()), ContainmentChoice::Namespace).await {
        Ok(contain) => Some(contain),
        Err(error) => {
            skipped(&error.message, "AGENTWIRE_REQUIRE_NAMESPACE");
            None
        }
    }
}

/// Every containment that no process escapes.
pub(crate) async fn contain_both() -> Vec<Contain> {
    [Some(contain().await), contain_namespace().await].into_iter().flatten().collect()
}

pub(crate) async fn contain_group() -> Contain {
    let contain = Contain::probe(None, ContainmentChoice::Auto).await.unwrap();
    assert!(matches!(contain.containment(), Containment::ProcessGroup { .. }));
    contain
}

/// Every containment.
pub(crate) async fn contain_all() -> Vec<Contain> {
    let mut all = contain_both().await;
    all.push(contain_group().await);
    all
}

/// A word that identifies a process by its environment or arguments.
pub(crate) fn marker() -> String {
    format!("marker-{}", Uuid::new_v4())
}

/// A shell that runs this script, with the marker.
pub(crate) fn shell(script: &str, marker: &str) -> Spawn {
    Spawn {
        program: "/bin/sh".into(),
        args: ["-c", script, "agent", marker].map(OsString::from).into(),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("PROCESS_TEST".into(), marker.into()),
        ],
        directory: "/".into(),
        stdin: StdinPlan::Pipe,
        veil: Veil::default(),
    }
}

/// Waits for this line on stdout.
pub(crate) async fn expect(process: &mut Process, text: &str) {
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(1, &mut process.stdout);
    timeout(LONG, stdout.read_line(&mut line)).await.unwrap().unwrap();
    assert_eq!(line, format!("{text}\n"));
}

/// The rest of stdout.
pub(crate) async fn rest(process: &mut Process) -> String {
    let mut text = String::new();
    timeout(LONG, process.stdout.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

pub(crate) async fn tell(process: &mut Process, text: &str) {
    process.stdin.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
}

/// Waits until the whole evil tree runs.
pub(crate) async fn assert_evil(marker: &str) {
    until("the tree stands", || marked(marker).len() > 110).await;
}

/// Panics if a process with the marker is left after the guaranteed time.
pub(crate) async fn assert_none_left(marker: &str) {
    let begun = Instant::now();
    loop {
        let left = marked(marker);
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < SURVIVAL, "left: {left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A field of `/proc/PID/stat`, where the state is 0; `None` if there is no such process.
pub(crate) fn stat(pid: i32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(field).map(str::to_owned)
}

pub(crate) fn parent(pid: i32) -> i32 {
    stat(pid, 1).unwrap().parse().unwrap()
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn pid(process: &Process) -> i32 {
    i32::try_from(process.control.pid().unwrap()).unwrap()
}
