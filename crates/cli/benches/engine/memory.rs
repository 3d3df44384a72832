//! The memory cost of one more idle session, in this process and its keepers, without the agent.

use std::fs;

use crate::agent::{self, TURN};
use crate::gateway::{Gateway, order};
use crate::report::{median, times};

/// Sessions added between two measurements.
const STEP: usize = 20;

/// Enough turns to fill a session's in-memory buffers.
const TURNS: u64 = 20;

/// The goal for one session, in kB.
const GOAL: f64 = 250.0;

pub async fn run(rounds: usize) {
    let gateway = Gateway::new().await;
    let mut sessions = Vec::new();
    let mut looks = vec![Look::now()];
    for _ in 0..rounds {
        for _ in 0..STEP {
            sessions.push(gateway.session().await);
        }
        looks.push(Look::now());
    }
    let fresh = looks[looks.len() - 1];
    for session in &sessions {
        let mut reader = gateway.reader(session).await;
        order(session, agent::order(TURNS, 0, 0)).await;
        assert_eq!(reader.read(TURNS * TURN, |_| {}).await.faults, 0);
    }
    let used = Look::now();
    gateway.end().await;
    let steps = looks.windows(2).map(|looks| looks[1].since(looks[0], STEP));
    let (own, keepers): (Vec<f64>, Vec<f64>) = steps.unzip();
    let (own, keepers) = (median(own), median(keepers));
    let (more, _) = used.since(fresh, sessions.len());
    println!(
        "One more idle session, of {}, in proportional memory (PSS); without sessions: {} kB:\n",
        sessions.len(),
        looks[0].own
    );
    println!("| | engine | keeper | both | of {GOAL:.0} kB |");
    println!("|---|---|---|---|---|");
    let row = |name: String, own: f64| {
        let both = own + keepers;
        println!(
            "| {name} | {own:.0} kB | {keepers:.0} kB | {both:.0} kB | {} |",
            times(both / GOAL)
        );
    };
    row("new".to_owned(), own);
    row(format!("after {} lines", TURNS * TURN), own + more);
}

#[derive(Clone, Copy)]
struct Look {
    own: u64,
    keepers: u64,
}

impl Look {
    fn now() -> Self {
        let keepers = keepers().into_iter().map(|pid| proportional(&pid.to_string()));
        Self { own: proportional("self"), keepers: keepers.sum() }
    }

    /// The growth since `earlier` per session.
    fn since(self, earlier: Self, sessions: usize) -> (f64, f64) {
        let each = |now: u64, then: u64| (now as f64 - then as f64) / sessions as f64;
        (each(self.own, earlier.own), each(self.keepers, earlier.keepers))
    }
}

/// The fork server of this process, its keepers, and the first processes of the namespaces below them.
fn keepers() -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, u32)> = pids
        .filter_map(|pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
            let is_one =
                ["(agentwire-keep)", "(agentwire-fork)"].iter().any(|name| stat.contains(name));
            is_one.then_some((pid, parent))
        })
        .collect();
    let mut ours = vec![std::process::id()];
    let mut next = 0;
    while let Some(parent) = ours.get(next).copied() {
        ours.extend(all.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    ours.split_off(1)
}

/// Only root can read a keeper's memory.
fn proportional(process: &str) -> u64 {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(path).expect("the memory of a keeper; only root can read it");
    field(&text, "Pss:")
}

/// Resident memory of this process in kB, including shared memory.
pub fn resident() -> u64 {
    field(&fs::read_to_string("/proc/self/status").expect("/proc"), "VmRSS:")
}

fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
