//! The conversation, saved for `--resume`: one line per fact, written before the work is done. A
//! killed process leaves at most half a line.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::JsonFields as _;
use super::usage::{Models, Usage};

#[derive(Default)]
pub(super) struct Memory {
    path: PathBuf,
    /// `None` if nothing is saved.
    file: Option<File>,
    pub(super) prompts: Vec<String>,
    /// The usage of the finished turns.
    pub(super) spent: Models,
    /// How many processes have served this conversation.
    pub(super) runs: u64,
}

impl Memory {
    /// Loads a conversation; empty if there is none.
    pub(super) fn load(directory: &Path, id: &str) -> io::Result<Self> {
        let path = file_of(directory, id);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let mut memory = Self { path, ..Self::default() };
        for line in bytes.split(|byte| *byte == b'\n') {
            // A killed process may have left half a line.
            if let Ok(entry) = serde_json::from_slice::<Value>(line) {
                memory.recall(&entry);
            }
        }
        Ok(memory)
    }

    fn recall(&mut self, entry: &Value) {
        match entry.at("type").as_str() {
            Some("run") => self.runs += 1,
            Some("prompt") => {
                self.prompts.extend(entry.at("text").as_str().map(str::to_owned));
            }
            Some("spent") => {
                let models = entry.at("models").as_object().into_iter().flatten();
                for (model, usage) in models {
                    let usage = Usage::from_kept(usage).unwrap_or_default();
                    self.spent.entry(model.clone()).or_default().add(usage);
                }
            }
            _ => {}
        }
    }

    /// Starts to save. `with_history` also saves what happened before, for a copy.
    pub(super) fn start_saving(&mut self, with_history: bool) -> io::Result<()> {
        self.open(with_history)
            .map_err(|error| failed("save the conversation in", &self.path, &error))
    }

    fn open(&mut self, with_history: bool) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(&self.path)?;
        // The line break ends the half line of a killed process.
        self.file = Some(file);
        self.append(&json!({ "type": "run" }), "\n")?;
        if with_history {
            for text in self.prompts.clone() {
                self.append(&json!({ "type": "prompt", "text": text }), "")?;
            }
            self.append_spent(&self.spent.clone())?;
        }
        Ok(())
    }

    /// A copy under another id.
    pub(super) fn fork(self, directory: Option<&Path>, id: &str) -> Self {
        let path = directory.map(|directory| file_of(directory, id)).unwrap_or_default();
        Self { path, runs: 0, ..self }
    }

    /// A turn starts: the prompt becomes part of the conversation.
    pub(super) fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.prompts.push(text.to_owned());
        self.append(&json!({ "type": "prompt", "text": text }), "")
    }

    /// A turn has ended.
    pub(super) fn spend(&mut self, models: &Models) -> io::Result<()> {
        for (model, usage) in models {
            self.spent.entry(model.clone()).or_default().add(*usage);
        }
        self.append_spent(models)
    }

    fn append_spent(&mut self, models: &Models) -> io::Result<()> {
        let models: serde_json::Map<_, _> =
            models.iter().map(|(model, usage)| (model.clone(), usage.kept())).collect();
        self.append(&json!({ "type": "spent", "models": models }), "")
    }

    /// The file, for hooks.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn append(&mut self, entry: &Value, before: &str) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(format!("{before}{entry}\n").as_bytes()),
            None => Ok(()),
        }
    }
}

fn file_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.jsonl"))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("failed to {what} {}: {error}", path.display()))
}
