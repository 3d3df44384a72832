//! Drives sessions over a front to their end, as a client that knows only that front's format.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::every_front::program::start;
use crate::shared::{Ended, Program};
use crate::speaker::{Case, Heard, Row, Speaker};

/// Concurrent programs, for fronts with one session per program.
const WORKERS: usize = 3;

/// Drives these cases of one agent. Nothing is unread, no process is left, and stderr is empty.
pub(crate) fn drive(row: &Row, cases: &[Case]) {
    if row.sessions > 1 {
        return Drive::new(row, cases).run();
    }
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let one = std::slice::from_ref(case);
            let run = AssertUnwindSafe(|| Drive::new(row, one).run());
            if std::panic::catch_unwind(run).is_err() {
                failed.lock().expect("a list").push(case.name.as_str());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("a list");
    assert!(failed.is_empty(), "{} fails over {failed:?}", row.name);
}

struct Drive<'d> {
    cases: &'d [Case],
    speaker: Box<dyn Speaker>,
    program: Program,
    /// Completed turns of each session; `None` once the session has ended.
    turns: Vec<Option<usize>>,
    started: usize,
    at_once: usize,
}

impl<'d> Drive<'d> {
    fn new(row: &Row, cases: &'d [Case]) -> Self {
        Self {
            speaker: (row.speaker)(&cases.iter().collect::<Vec<_>>()),
            program: start(row.args, cases[0].agent),
            turns: vec![Some(0); cases.len()],
            cases,
            started: 0,
            at_once: row.sessions,
        }
    }

    fn run(mut self) {
        let is_one = self.at_once == 1;
        for _ in 0..self.at_once {
            self.start_next();
        }
        while self.turns.iter().any(Option::is_some) {
            let open = self.open();
            let why = || format!("nothing comes, with {open} open");
            let Some(line) = self.program.line_or(why) else {
                panic!("no more, with {open} open: {:?}", self.program.end_alone());
            };
            self.hear(&line);
        }
        self.program.hang_up();
        while let Some(line) = self.program.line() {
            let mut heard = Vec::new();
            self.speaker.hear(&line, &mut heard);
            assert!(is_one || heard.is_empty(), "after the end: {line}");
        }
        let code = self.speaker.end();
        let ended = self.program.end_alone();
        assert_eq!(ended, Ended { code: Some(code), stderr: String::new() });
    }

    fn open(&self) -> String {
        let begun = self.cases.iter().zip(&self.turns).take(self.started);
        let open = begun.filter(|(_, turns)| turns.is_some());
        open.map(|(case, _)| case.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn start_next(&mut self) {
        let number = self.started;
        let Some(case) = self.cases.get(number) else { return };
        self.started += 1;
        let place = match self.at_once {
            1 => self.program.home().work(),
            _ => self.program.home().work().join(number.to_string()),
        };
        std::fs::create_dir_all(&place).expect("a directory");
        if let Some(recording) = &case.recording {
            std::fs::write(place.join("recording.jsonl"), recording).expect("a recording");
        }
        self.say(|speaker| speaker.start(number, case, &place));
    }

    fn say(&mut self, words: impl FnOnce(&mut dyn Speaker) -> Vec<serde_json::Value>) {
        for frame in words(&mut *self.speaker) {
            self.program.say(frame);
        }
    }

    fn hear(&mut self, line: &str) {
        let mut heard = Vec::new();
        self.speaker.hear(line, &mut heard);
        for heard in heard {
            match heard {
                Heard::Answer(frame) => {
                    // The agent may exit before it is answered.
                    self.program.bytes(format!("{frame}\n").as_bytes());
                }
                Heard::TurnOver(number) => self.turn_over(number),
                Heard::Over(number) => self.over(number),
                Heard::Refused(number, line) => panic!("{}: {line}", self.cases[number].name),
            }
        }
    }

    fn turn_over(&mut self, number: usize) {
        let Some(turns) = &mut self.turns[number] else { return };
        *turns += 1;
        match self.cases[number].prompts.get(*turns) {
            Some(prompt) => self.say(|speaker| speaker.prompt(number, prompt)),
            None if *turns == self.cases[number].prompts.len() => {
                self.say(|speaker| speaker.finish(number));
                if self.at_once == 1 {
                    self.over(number);
                }
            }
            None => {}
        }
    }

    fn over(&mut self, number: usize) {
        self.turns[number] = None;
        self.start_next();
    }
}
