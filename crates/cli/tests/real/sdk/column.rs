//! One agent, in its own process: each SDK plays its rows one after another, and both SDKs run at once.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::words::words;
use super::{SDKS, agents, sdk_of};
use crate::column::OFFLINE;
use crate::harness::Place;
use crate::install::Sdk;
use crate::offline::Watch;

/// The argument that makes this program such a column. Then follow its name, the program, whether it runs
/// in its own network, and the rows of each SDK.
pub(crate) const VERB: &str = "sdk-column";

/// Longer than any row takes: an SDK that prints nothing for this long is killed.
const SILENCE: Duration = Duration::from_secs(300);

/// The reason for a row that the SDK did not reach.
const UNPLAYED: &str = "it was not played";

/// Words in the names of rows about permissions. Getting past them even once is a breach, so their first
/// failure counts.
const STRICT: [&str; 9] = [
    "can_use_tool",
    "canUseTool",
    "PreToolUse",
    "nobody to ask",
    "allowed_tools",
    "allowedTools",
    "permission_mode",
    "Permission",
    "plan mode",
];

fn is_strict(row: &str) -> bool {
    STRICT.iter().any(|word| row.contains(word))
}

/// Prints one line of JSON per row.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [name, program, network, wanted] = args else { panic!("a column has a name") };
    let agent = agents().into_iter().find(|agent| agent.name == name).expect("a column");
    let wanted: BTreeMap<String, Vec<String>> = serde_json::from_str(wanted).expect("rows");
    let watch = (network == OFFLINE).then(|| Watch::start().expect("loopback"));
    let place = Place::new(agent, Path::new(program));
    let link = place.scripts().join("claude");
    symlink(env!("CARGO_BIN_EXE_agentwire"), &link).expect("a link");
    std::thread::scope(|scope| {
        for sdk in SDKS {
            let rows = wanted.get(sdk).cloned().unwrap_or_default();
            let directory = place.scripts();
            let work = place.workspace();
            let mut dress = place.command();
            dress.env("AGENTWIRE_AGENT", place.agent.kind);
            let (link, words) = (&link, words(&place.agent));
            scope.spawn(move || {
                let player = Player { sdk, directory, work, dress, link, words };
                let failed = player.play(&rows, &BTreeMap::new());
                let (breached, failed): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    failed.into_iter().partition(|(row, why)| is_strict(row) && why != UNPLAYED);
                // The programs are not ours: a row that passes at the second attempt is reported, but is
                // not a failure.
                let names: Vec<String> =
                    rows.into_iter().filter(|row| failed.contains_key(row)).collect();
                let again = player.play(&names, &failed);
                for (row, why) in breached.into_iter().chain(again) {
                    tell(&json!({ "sdk": sdk, "row": row, "outcome": "fails", "why": why }));
                }
            });
        }
    });
    place.stop_all();
    let unknown: Vec<String> =
        place.models.unknown().iter().map(|seen| seen.path.clone()).collect();
    let outside = watch.as_ref().and_then(Watch::tried);
    tell(&json!({ "outside": outside, "unknown": unknown }));
    ExitCode::SUCCESS
}

struct Player<'p> {
    sdk: &'static str,
    /// Where its packages are linked.
    directory: PathBuf,
    work: PathBuf,
    /// A command with agentwire's environment.
    dress: Command,
    link: &'p Path,
    words: Value,
}

impl Player<'_> {
    /// Plays these rows and returns those that failed. Prints the results of the others.
    fn play(&self, rows: &[String], first: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut failed: BTreeMap<String, String> =
            rows.iter().map(|row| (row.clone(), UNPLAYED.to_owned())).collect();
        if rows.is_empty() {
            return failed;
        }
        let mut child = self.start(rows);
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, lines) = sync_channel(16);
        let reader = std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        loop {
            let line = match lines.recv_timeout(SILENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = child.kill();
                    break;
                }
            };
            let Ok(mut told) = serde_json::from_str::<Value>(&line) else { continue };
            let Some(row) = told["row"].as_str().map(str::to_owned) else { continue };
            if told["outcome"] == "fails" {
                let why = told["why"].as_str().unwrap_or_default().to_owned();
                eprintln!("{} · {row}: {why}", self.sdk);
                failed.insert(row, why);
                continue;
            }
            failed.remove(&row);
            told["sdk"] = json!(self.sdk);
            told["first"] = json!(first.get(&row));
            tell(&told);
        }
        drop(lines);
        end(&mut child);
        let _ = reader.join();
        failed
    }

    fn start(&self, rows: &[String]) -> Child {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let sdk: Sdk = sdk_of(self.sdk);
        let command = sdk.command(&self.directory, "every_agent");
        let mut command = runtime.expect("a runtime").block_on(command);
        for (name, value) in self.dress.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.arg(json!(rows).to_string()).arg(self.link).current_dir(&self.work);
        command.env("AGENT_WORDS", self.words.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the SDK starts")
    }
}

fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = child.kill();
    }
    let _ = child.wait();
}

fn tell(value: &Value) {
    println!("{value}");
}
