//! What agentwire costs compared with the bare program, in the same run: `cargo bench -p agentwire --test
//! real`.
//!
//! The bare program is started with the arguments that agentwire would use, and driven with the fewest
//! messages of its own protocol (`bare.rs`). Alternating with it, a client of `agentwire unified` does the
//! same (`through.rs`). The model is a script and answers at once, so that only the programs' own time is
//! measured. `-- WORD…` selects programs; `AGENTWIRE_BENCH_ROUNDS` sets the number of rounds (5).

mod bare;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "shared with other benchmarks, which need other parts"
)]
#[path = "../../benches/engine/report.rs"]
mod report;
mod through;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use agentwire_models::{ModelServer, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::bare::Bare;
use self::report::{median, micros, time, times};
use self::through::Through;
use crate::agents::{AGENTS, Agent};
use crate::column::OFFLINE;
use crate::offline::{self, Watch};
use crate::trouble::Variables;

/// The argument that makes this program measure one agent. Then follow its name, the program, and whether
/// it runs in its own network.
pub(crate) const VERB: &str = "measure";

/// The model's answer, by which its first piece is recognized.
const WORD: &str = "pong";
const PROMPT: &str = "[[say pong]]";

/// Turns per round, for a process that serves several.
const TURNS: usize = 10;

/// Measures the programs one after another and prints a table.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let wants = |agent: &Agent| {
        words.is_empty() || words.iter().any(|word| agent.name.contains(word.as_str()))
    };
    let launcher = offline::launcher();
    if launcher.is_none() {
        eprintln!(
            "this machine allows no separate network: only their settings keep the programs local"
        );
    }
    println!(
        "| program | first word, bare | through agentwire | ratio | added | turn, bare | through agentwire | ratio | added |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut sync = Vec::new();
    for agent in AGENTS.iter().filter(|agent| wants(agent)) {
        let program = match agent.package.fetch() {
            Ok(program) => program,
            Err(why) => {
                eprintln!("skipped {}: {why}", agent.name);
                continue;
            }
        };
        let version = agent.package.installed(&program);
        let own = std::env::current_exe().expect("this program");
        let words = launcher.clone().unwrap_or_default();
        let mut words = words.into_iter().map(PathBuf::from).chain([own]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args([VERB, agent.name]).arg(program);
        command.arg(if launcher.is_some() { OFFLINE } else { "-" });
        let output = command.stderr(std::process::Stdio::inherit()).output().expect("it runs");
        let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else {
            eprintln!("failed to measure {}: {}", agent.name, output.status);
            return ExitCode::FAILURE;
        };
        let figure = |name: &str| found[name].as_f64().expect("a figure");
        let pair = |bare: f64, through: f64| {
            let (ratio, added) = (times(through / bare), time(through - bare));
            format!("{} | {} | {ratio} | {added}", time(bare), time(through))
        };
        println!(
            "| {} {} | {} | {} |",
            agent.name,
            version,
            pair(figure("bareStart"), figure("throughStart")),
            pair(figure("bareTurn"), figure("throughTurn"))
        );
        sync.push(figure("sync"));
    }
    println!("\nOne append with `fdatasync` in these rounds: {}.", time(median(sync)));
    ExitCode::SUCCESS
}

/// Measures one program and prints the figures as a line of JSON.
pub(crate) fn measure(args: &[String]) -> ExitCode {
    let [name, program, network] = args else { panic!("a program has a name") };
    let agent = AGENTS.into_iter().find(|agent| agent.name == name).expect("a program of ours");
    let watch = (network == OFFLINE).then(|| Watch::start().expect("loopback"));
    let rounds = std::env::var("AGENTWIRE_BENCH_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    let bench = Bench::new(agent, Path::new(program));
    let mut times: [Vec<f64>; 5] = Default::default();
    // The first round warms everything up and does not count.
    for round in 0..=rounds {
        let mut gateway = Through::new(&bench);
        let mut bare = Bare::new(&bench);
        // The second to start finds more in the page cache, so they alternate.
        let starts = if round % 2 == 0 {
            let first = bare.start();
            [first, gateway.start()]
        } else {
            let first = gateway.start();
            [bare.start(), first]
        };
        let turns = if bare.lasts() { TURNS } else { 1 };
        let mut pairs = [Vec::new(), Vec::new()];
        for _ in 0..turns {
            pairs[0].push(micros(bare.turn()));
            pairs[1].push(micros(gateway.turn()));
        }
        if round > 0 {
            times[0].push(micros(starts[0]));
            times[1].push(micros(starts[1]));
            times[2].push(median(pairs[0].clone()));
            times[3].push(median(pairs[1].clone()));
            times[4].push(micros(bench.sync()));
        }
        eprintln!("{name}, round {round} of {rounds}");
    }
    if let Some(tried) = watch.as_ref().and_then(Watch::tried) {
        eprintln!("{name}: beyond loopback: {tried}");
        return ExitCode::FAILURE;
    }
    let [bare_start, through_start, bare_turn, through_turn, sync] = times.map(median);
    println!(
        "{}",
        json!({
            "bareStart": bare_start, "throughStart": through_start,
            "bareTurn": bare_turn, "throughTurn": through_turn, "sync": sync,
        })
    );
    ExitCode::SUCCESS
}

/// The setup in which one program is measured.
struct Bench {
    agent: Agent,
    program: PathBuf,
    models: ModelServer,
    directory: TempDir,
}

impl Bench {
    fn new(agent: Agent, program: &Path) -> Self {
        // A log in memory would falsify the figures; the target directory is on a disk.
        let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(disk);
        let directory = directory.expect("a directory");
        for name in ["data", "work", "home", "tmp"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let models = ModelServer::start(Options::default()).expect("a model server");
        (agent.set_up)(&directory.path().join("home"), &models.url());
        Self { agent, program: program.to_owned(), models, directory }
    }

    fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    fn variables(&self) -> Variables {
        (self.agent.environment)(&self.directory.path().join("home"), &self.models.url())
    }

    /// The configuration of both. agentwire sets the model of a third-party ACP agent with an extra call,
    /// which the bare program does not make, so such an agent keeps its default.
    fn config(&self) -> Value {
        let mut config = json!({ "workingDirectory": self.work(), "driver": self.agent.driver });
        if self.agent.kind != "acp" {
            config["model"] = json!(self.agent.model);
        }
        config
    }

    /// What one durable write costs here.
    fn sync(&self) -> Duration {
        let mut file = fs::File::create(self.directory.path().join("sync")).expect("a file");
        let mut spent = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            file.write_all(&[b'x'; 4096]).expect("room");
            file.sync_data().expect("a disk");
            spent.push(micros(begun.elapsed()));
        }
        Duration::from_secs_f64(median(spent) / 1e6)
    }
}
