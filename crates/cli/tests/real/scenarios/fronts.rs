//! Every front over the real program, driven by the strict clients of the fronts' own tests.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use serde_json::Value;

use crate::harness::{PATIENCE, Place};
use crate::recording::Agent as Wire;
use crate::speaker::{self, Case, Heard, Speaker};

pub(crate) fn unified(place: &mut Place) {
    converse(place, "unified");
}

pub(crate) fn claude(place: &mut Place) {
    converse(place, "claude");
}

pub(crate) fn backend(place: &mut Place) {
    converse(place, "backend");
}

pub(crate) fn rpc(place: &mut Place) {
    converse(place, "rpc");
}

/// Two turns; in the first, a command is allowed if the agent asks.
fn converse(place: &Place, front: &str) {
    let work = place.workspace();
    let agent = &place.agent;
    let config = work.join("agentwire.toml");
    let settings = format!(
        "agent = '{0}'\n[agents.{0}]\ndriver = '{1}'\nmodel = '{2}'\n",
        agent.kind, agent.driver, agent.model
    );
    fs::write(&config, settings).expect("a file");
    let command = (agent.words.shell)("touch by-front.txt").step();
    let case = Case {
        name: front.to_owned(),
        agent: Wire { name: agent.kind, driver: Some(agent.driver) },
        prompts: vec![format!("{command} [[say first said]]"), "[[say second said]]".to_owned()],
        recording: None,
    };
    let row = speaker::front(front);
    let mut wire = Wired::start(place, row.args, &work, &config);
    let mut speaker = (row.speaker)(&[&case]);
    wire.say(speaker.start(0, &case, &work));
    let (mut turns, mut is_over, mut said) = (0, false, String::new());
    while !is_over {
        let line = wire.line().unwrap_or_else(|| panic!("it ended in turn {turns}: {said}"));
        for heard in hear(&mut *speaker, &line) {
            match heard {
                Heard::Answer(frame) => wire.say(vec![frame]),
                Heard::TurnOver(_) => {
                    turns += 1;
                    match case.prompts.get(turns) {
                        Some(prompt) => wire.say(speaker.prompt(0, prompt)),
                        None => {
                            wire.say(speaker.finish(0));
                            is_over |= row.sessions == 1;
                        }
                    }
                }
                Heard::Over(_) => is_over = true,
                Heard::Refused(_, line) => panic!("{line}"),
            }
        }
        said += &line;
    }
    wire.stdin = None;
    while let Some(line) = wire.line() {
        drop(hear(&mut *speaker, &line));
    }
    assert_eq!(wire.child.wait().expect("it ends").code(), Some(speaker.end()));
    assert!(said.contains("first said") && said.contains("second said"), "{said}");
    let asks = agent.cannot("allow").is_none();
    assert_eq!(work.join("by-front.txt").exists(), asks, "{said}");
}

fn hear(speaker: &mut dyn Speaker, line: &str) -> Vec<Heard> {
    let mut heard = Vec::new();
    speaker.hear(line, &mut heard);
    heard
}

/// agentwire on pipes.
struct Wired {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Wired {
    fn start(place: &Place, args: &[&str], work: &Path, config: &Path) -> Self {
        let mut command = place.command();
        command.args(args).current_dir(work).env("AGENTWIRE_CONFIG", config);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines }
    }

    fn say(&mut self, frames: Vec<Value>) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        for frame in frames {
            writeln!(stdin, "{frame}").and_then(|()| stdin.flush()).expect("it listens");
        }
    }

    /// The next line; `None` after the last.
    fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing"),
        }
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
