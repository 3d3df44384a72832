//! Files as they were before each prompt, so that a client can rewind them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// The variable with which clients enable checkpoints.
const VARIABLE: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// Maximum size of a file in a checkpoint.
const FILE_LIMIT: u64 = 16 << 20;

/// How many prompts have checkpoints; the oldest are dropped.
const PROMPTS: usize = 64;

/// The previous content of files that tools changed. Empty unless the client enables it.
#[derive(Default)]
pub(super) struct Checkpoints {
    is_enabled: bool,
    prompts: Vec<Checkpoint>,
}

/// The previous content of the files that one prompt changed; `None` for a file that it created.
struct Checkpoint {
    prompt: Option<String>,
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Checkpoints {
    /// Enabled or not, by the environment.
    pub(super) fn from_env() -> Self {
        let is_enabled = std::env::var_os(VARIABLE).is_some_and(|value| value == "true");
        Self { is_enabled, prompts: Vec::new() }
    }

    pub(super) fn begin(&mut self, prompt: Option<&str>) {
        if !self.is_enabled {
            return;
        }
        if self.prompts.len() >= PROMPTS {
            self.prompts.remove(0);
        }
        let prompt = prompt.map(str::to_owned);
        self.prompts.push(Checkpoint { prompt, files: BTreeMap::new() });
    }

    /// Saves a file that a tool is about to change.
    pub(super) fn save(&mut self, path: &Path) -> Result<(), String> {
        let Some(current) = self.prompts.last_mut() else { return Ok(()) };
        if current.files.contains_key(path) {
            return Ok(());
        }
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let before = match fs::metadata(path) {
            Ok(file) if file.len() > FILE_LIMIT => {
                return Err(format!("{} is too large for a file checkpoint", path.display()));
            }
            Ok(_) => Some(fs::read(path).map_err(failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        current.files.insert(path.to_owned(), before);
        Ok(())
    }

    /// Restores the files to their content before that prompt, or reports what that would change.
    pub(super) fn rewind(&mut self, prompt: Option<&str>, is_dry: bool) -> Result<Value, String> {
        if !self.is_enabled {
            return Err("File rewinding is not enabled.".to_owned());
        }
        let found = prompt.and_then(|prompt| {
            self.prompts.iter().position(|checkpoint| checkpoint.prompt.as_deref() == Some(prompt))
        });
        let Some(at) = found else {
            return Err("No file checkpoint found for this message.".to_owned());
        };
        // The first prompt that changed a file has its oldest content.
        let mut files: BTreeMap<&PathBuf, &Option<Vec<u8>>> = BTreeMap::new();
        for checkpoint in self.prompts.iter().skip(at) {
            for (path, before) in &checkpoint.files {
                files.entry(path).or_insert(before);
            }
        }
        if is_dry {
            let (mut insertions, mut deletions) = (0, 0);
            for (path, before) in &files {
                let now = fs::read(path).unwrap_or_default();
                let before = before.as_deref().unwrap_or_default();
                let (now, before) =
                    (String::from_utf8_lossy(&now), String::from_utf8_lossy(before));
                for change in TextDiff::from_lines(&*now, &*before).iter_all_changes() {
                    match change.tag() {
                        ChangeTag::Insert => insertions += 1,
                        ChangeTag::Delete => deletions += 1,
                        ChangeTag::Equal => {}
                    }
                }
            }
            let changed: Vec<&&PathBuf> = files.keys().collect();
            return Ok(json!({
                "canRewind": true, "filesChanged": changed,
                "insertions": insertions, "deletions": deletions,
            }));
        }
        for (path, before) in files {
            let done = match before {
                Some(bytes) => fs::write(path, bytes),
                None => match fs::remove_file(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    done => done,
                },
            };
            done.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        self.prompts.truncate(at);
        Ok(json!({ "canRewind": true, "skippedLinks": 0 }))
    }
}
