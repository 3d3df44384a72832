//! The tour: the answer to a prompt without directives. It shows every kind of event.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{Agent, Halt};
use super::messages::BlockKind;

const FILE: &str = "agentwire-tour.txt";
const GREETED: &str = "Hello, world.";

/// A pause, so that the viewer sees each step end.
const BEAT: Duration = Duration::from_millis(250);

const TODOS: [(&str, &str); 3] = [
    ("Read a file", "Reading a file"),
    ("Write and edit a file, if you let me", "Writing a file"),
    ("Send a subagent to look around", "Sending a subagent"),
];

impl Agent {
    pub(super) fn tour(&mut self) -> Result<(), Halt> {
        self.speak(
            BlockKind::Thinking,
            "This prompt has no directives, so I give a tour. I start with a plan, then do one thing of \
             each kind, so that you see every sort of event once.",
        )?;
        self.speak(
            BlockKind::Text,
            "Hello! I am agentwire's demo agent. I have no model and no network, but my tools are \
             real, and I speak the same protocol as Claude Code. A real agent does what I do now in \
             the same way, and it looks the same to you.",
        )?;
        self.tour_step(0)?;
        self.tour_read()?;
        self.tour_step(1)?;
        let written = self.tour_write()?;
        self.tour_step(2)?;
        self.tour_delegate()?;
        self.tour_step(TODOS.len())?;
        self.tour_sum_up(written)
    }

    /// Updates the todo list: the first `done` entries are done.
    fn tour_step(&mut self, done: usize) -> Result<(), Halt> {
        let todos = TODOS.iter().enumerate().map(|(at, (content, active))| {
            let status = match at {
                at if at < done => "completed",
                at if at == done => "in_progress",
                _ => "pending",
            };
            json!({ "content": content, "status": status, "activeForm": active })
        });
        let todos: Vec<Value> = todos.collect();
        self.call("TodoWrite", &json!({ "todos": todos }))?;
        self.pause(BEAT)
    }

    fn tour_read(&mut self) -> Result<(), Halt> {
        let Some(name) = self.tour_file() else {
            return self.speak(BlockKind::Text, "There is no file to read here, so I continue.");
        };
        self.speak(BlockKind::Text, "Reading needs no permission:")?;
        let path = self.session.directory.join(&name);
        let outcome = self.call("Read", &json!({ "file_path": path, "limit": 20 }))?;
        let text = outcome.text();
        let first = text.lines().filter_map(|line| Some(line.split_once('\t')?.1.trim()));
        let first: String = first.filter(|line| !line.is_empty()).take(1).collect();
        let first: String = first.chars().take(60).collect();
        match outcome.is_error {
            true => self
                .speak(BlockKind::Text, &format!("I cannot read {name}; I continue without it.")),
            false => self.speak(BlockKind::Text, &format!("{name} starts with \"{first}\".")),
        }
    }

    fn tour_file(&self) -> Option<String> {
        let entries = fs::read_dir(&self.session.directory).ok()?.filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| !name.starts_with('.') && name != FILE).collect();
        names.sort_by_key(|name| (name != "README.md", name.clone()));
        names.into_iter().next()
    }

    /// Whether the file was written.
    fn tour_write(&mut self) -> Result<bool, Halt> {
        self.speak(
            BlockKind::Text,
            "Writing needs permission. I now wait for an answer from any client. No answer never \
             means yes.",
        )?;
        let path = self.session.directory.join(FILE);
        let content = format!("{GREETED}\nThe agentwire tour wrote this line.\n");
        let written = self.call("Write", &json!({ "file_path": path, "content": content }))?;
        if written.is_error {
            self.speak(
                BlockKind::Text,
                "You said no, so I wrote nothing. That is how it should be.",
            )?;
            return Ok(false);
        }
        self.speak(BlockKind::Text, "Thank you. Now I ask a question and use the answer:")?;
        let options =
            [("agentwire", "the program"), ("the team", "everyone"), ("nobody", "no change")];
        let options = options.map(|(label, why)| json!({ "label": label, "description": why }));
        let answer = self.ask(&json!({ "questions": [{
            "question": "Who should the file greet?",
            "header": "Greeting",
            "options": options,
            "multiSelect": false,
        }] }))?;
        if matches!(answer.as_str(), "nobody" | "No answer.") {
            self.speak(BlockKind::Text, "Then I leave the greeting as it is.")?;
            return Ok(true);
        }
        let input = json!({
            "file_path": path,
            "old_string": GREETED,
            "new_string": format!("Hello, {answer}."),
            "replace_all": false,
        });
        let edited = self.call("Edit", &input)?;
        match edited.is_error {
            true => self.speak(BlockKind::Text, "I did not make that edit.")?,
            false => {
                self.speak(
                    BlockKind::Text,
                    "The edit shows its diff: one line removed, one added.",
                )?;
            }
        }
        Ok(true)
    }

    fn tour_delegate(&mut self) -> Result<(), Halt> {
        self.speak(
            BlockKind::Text,
            "A subagent works on its own. Its text, its tools and its requests carry its name, at \
             any depth.",
        )?;
        self.call(
            "Task",
            &json!({
                "description": "Look around",
                "prompt": "/think I list the directory and report back.\n/bash ls\n/say I asked to list the directory and got:\\n{result}",
                "subagent_type": "general-purpose",
                "run_in_background": false,
            }),
        )
        .map(drop)
    }

    fn tour_sum_up(&mut self, written: bool) -> Result<(), Halt> {
        let made = match written {
            true => format!("I created {FILE}; delete it if you like."),
            false => "I created no files.".to_owned(),
        };
        let cost = self.cost_usd();
        self.speak(
            BlockKind::Text,
            &format!(
                "That was the tour: thinking, text, a plan, a read, permissions, a question, a diff \
                 and a subagent. {made} A model would have cost about ${cost:.4} so far. \
                 Everything is in the log: attach now or next week, and you see the same events.\n\nTo script \
                 me, start lines with a slash, such as `/say Hi`, `/bash ls` or `/ask Tea? | Yes | \
                 No`."
            ),
        )
    }
}
