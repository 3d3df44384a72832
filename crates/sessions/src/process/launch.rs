//! Turns a dialect's launch into a process: environment, directory and files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::{Arg, ArgPart, Launch, Stdin};
use agentwire_dialects::programs;

use super::{Spawn, SpawnError, StdinPlan, Veil};
use crate::held_dir::HeldDir;
use crate::private_dir::{PrivateDirectory, remove_stale};

/// Prefix of the directories' names.
const PREFIX: &str = "launch-";

/// The files of one process, in a private directory. Dropping it removes them: keep it until the process
/// has ended.
#[derive(Debug, Default)]
pub struct LaunchFiles {
    directory: Option<PrivateDirectory>,
    /// The directory by the name that the process uses.
    name: PathBuf,
    /// The directory is reached through it; dropped last.
    _data_dir: Option<HeldDir>,
}

impl LaunchFiles {
    /// Removes what a killed gateway left behind.
    pub fn sweep(runtime_dir: &Path) {
        remove_stale(runtime_dir, PREFIX);
    }

    /// Writes the files; after that, their paths are known.
    fn write(
        files: &BTreeMap<String, Vec<u8>>,
        runtime_dir: &Path,
        data_dir: Option<HeldDir>,
    ) -> Result<Self, SpawnError> {
        if files.is_empty() {
            return Ok(Self::default());
        }
        let named = std::path::absolute(runtime_dir).map_err(failed(runtime_dir))?;
        let held = data_dir.as_ref().and_then(|data_dir| {
            let rest = named.strip_prefix(data_dir.name()).ok()?;
            Some(data_dir.path().join(rest))
        });
        let base = held.unwrap_or_else(|| named.clone());
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&base).map_err(failed(&base))?;
        // From here on, a failure removes what was written.
        let directory = PrivateDirectory::new(&base, PREFIX).map_err(failed(&base))?;
        for (name, contents) in files {
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(unfit(Path::new(name), "not a plain name"));
            }
            let path = directory.path().join(name);
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(contents)).map_err(failed(&path))?;
        }
        let name = named.join(directory.path().file_name().unwrap_or_default());
        Ok(Self { directory: Some(directory), name, _data_dir: data_dir })
    }

    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(|_| self.name.as_path())
    }

    /// Fills the paths into an argument. Text stays as it is, whatever it looks like.
    fn join(&self, arg: &Arg) -> Result<OsString, SpawnError> {
        let mut joined = String::new();
        for part in &arg.0 {
            match part {
                ArgPart::Text(text) => joined.push_str(text),
                ArgPart::File(name) => joined.push_str(&self.path(Some(name))?),
                ArgPart::EscapedFile(name) => joined.push_str(&escaped(&self.path(Some(name))?)),
                ArgPart::QuotedFile(name) => joined.push_str(&quoted(&self.path(Some(name))?)),
                ArgPart::Directory => {
                    let all = self.path(None)?;
                    if all.contains(',') {
                        let why = "its path has a comma; choose another data directory";
                        return Err(unfit(Path::new(&all), why));
                    }
                    joined.push_str(&all);
                }
            }
        }
        Ok(joined.into())
    }

    /// The path of a file, or of the directory.
    fn path(&self, name: Option<&String>) -> Result<String, SpawnError> {
        let Some(directory) = self.directory() else {
            let name = name.map(String::as_str).unwrap_or_default();
            return Err(unfit(Path::new(name), "no such file was written"));
        };
        let path = name.map_or(directory.to_owned(), |name| directory.join(name));
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| unfit(&path, "its path is not UTF-8"))
    }
}

fn failed(file: &Path) -> impl FnOnce(io::Error) -> SpawnError {
    let file = file.to_owned();
    move |error| SpawnError::File { file, error }
}

fn unfit(path: &Path, why: &'static str) -> SpawnError {
    failed(path)(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// A path with a backslash before every character that could have a meaning.
fn escaped(path: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    let mut text = String::new();
    for letter in path.chars() {
        text.extend((!is_plain(letter)).then_some('\\'));
        text.push(letter);
    }
    text
}

/// A path as a JSON string, which is also a TOML string: TOML needs one more character escaped.
fn quoted(path: &str) -> String {
    serde_json::Value::from(path).to_string().replace('\u{7F}', "\\u007f")
}

/// Prepares the process for a launch. The caller writes the text for its stdin, if any. The runtime
/// directory is reached through the data directory, if that one is held open and contains it.
pub fn prepare(
    launch: &Launch,
    program: PathBuf,
    runtime_dir: &Path,
    data_dir: Option<HeldDir>,
) -> Result<(Spawn, LaunchFiles), SpawnError> {
    let files = LaunchFiles::write(&launch.files, runtime_dir, data_dir)?;
    let args = launch.args.iter().map(|arg| files.join(arg)).collect::<Result<_, _>>()?;
    let directory = match &launch.working_directory {
        Some(directory) => std::path::absolute(directory),
        None => std::env::current_dir(),
    };
    let directory = directory.map_err(|error| {
        let directory = launch.working_directory.clone().unwrap_or_default().into();
        SpawnError::Directory { directory, error }
    })?;
    let mut env = environment(&launch.env);
    for (name, file) in &launch.env_files {
        env.retain(|(known, _)| known != name.as_str());
        env.push((name.into(), files.path(Some(file))?.into()));
    }
    // The inherited value is the gateway's directory.
    if !launch.env.contains_key("PWD") {
        env.retain(|(name, _)| name != "PWD");
        env.push(("PWD".into(), directory.clone().into()));
    }
    let stdin = match launch.stdin {
        Stdin::Open | Stdin::Text(_) => StdinPlan::Pipe,
        Stdin::Empty => StdinPlan::Null,
    };
    Ok((Spawn { program, args, env, directory, stdin, veil: Veil::default() }, files))
}

/// Prefixes of the variables that configure agentwire itself: its own, and those of its traces, which may
/// hold the key of a collector. An agent gets its own variables through `env`.
const OWN_PREFIXES: [&[u8]; 2] = [b"AGENTWIRE_", b"OTEL_"];

/// Variables that agents must not inherit: systemd's socket and credentials are for agentwire.
const NOT_INHERITED: [&str; 2] = ["NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"];

/// Makes glibc's allocator return memory: fewer arenas, and no threshold that grows.
pub const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// Marks that agentwire set [`ALLOCATOR`] for itself.
pub const ALLOCATOR_SET: &str = "AGENTWIRE_ALLOCATOR";

/// The environment of an agent: ours plus `extra`, without the variables of agentwire itself and those that
/// say that an agent runs us.
pub fn environment(extra: &BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    let is_ours = std::env::var_os(ALLOCATOR_SET).is_some();
    let is_allocator = |name: &OsString| ALLOCATOR.iter().any(|(own, _)| name == own);
    choose(std::env::vars_os().filter(|(name, _)| !is_ours || !is_allocator(name)), extra)
}

fn choose(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    extra: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let of_agents = programs().iter().flat_map(|program| program.own_variables);
    let not_inherited: Vec<&str> = NOT_INHERITED.iter().chain(of_agents).copied().collect();
    inherited
        .filter(|(name, _)| {
            let bytes = name.as_encoded_bytes();
            !OWN_PREFIXES.iter().any(|own| bytes.starts_with(own))
                && !not_inherited.iter().any(|own| name == own)
                && !name.to_str().is_some_and(|name| extra.contains_key(name))
        })
        .chain(extra.iter().map(|(name, value)| (name.into(), value.into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn an_agent_inherits_all_but_what_is_ours() {
        let odd = OsString::from_vec(vec![b'X', 0xff]);
        let inherited = [
            ("PATH".into(), "/bin".into()),
            ("AGENTWIRE_TOKEN".into(), "secret".into()),
            ("AGENTWIRE_".into(), "secret".into()),
            ("AGENTWIRES".into(), "not ours".into()),
            ("CLAUDECODE".into(), "1".into()),
            ("OTEL_EXPORTER_OTLP_HEADERS".into(), "key=secret".into()),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS".into(), "key=secret".into()),
            ("OTEL_SERVICE_NAME".into(), "agentwire".into()),
            ("NOTIFY_SOCKET".into(), "/run/systemd/notify".into()),
            ("CREDENTIALS_DIRECTORY".into(), "/run/credentials/agentwire.service".into()),
            ("OTELS".into(), "not ours".into()),
            ("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-py".into()),
            (odd.clone(), odd.clone()),
            ("LANG".into(), "C".into()),
        ];
        let extra = BTreeMap::from([("LANG".to_owned(), "de".to_owned())]);
        let expected: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), "/bin".into()),
            ("AGENTWIRES".into(), "not ours".into()),
            ("OTELS".into(), "not ours".into()),
            ("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-py".into()),
            (odd.clone(), odd),
            ("LANG".into(), "de".into()),
        ];
        assert_eq!(choose(inherited.into_iter(), &extra), expected);
    }
}
