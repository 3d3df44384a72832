//! From what a dialect wants started to a process: environment, directory and files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::{Launch, Stdin};

use super::{Spawn, SpawnError, StdinPlan};
use crate::private::{PrivateDirectory, remove_stale};

/// What the names of their directories begin with.
const PREFIX: &str = "launch-";

/// What stands for the directory in an argument.
const ALL: &str = "{file:}";

/// The files of one process, in a private directory. Dropping it removes them: keep it until the
/// process has ended.
#[derive(Debug, Default)]
pub struct LaunchFiles {
    _directory: Option<PrivateDirectory>,
}

impl LaunchFiles {
    /// Removes what a gateway that was killed left there.
    pub fn sweep(runtime_dir: &Path) {
        remove_stale(runtime_dir, PREFIX);
    }

    /// Writes the files and puts their paths in the arguments that name them.
    fn write(
        files: &BTreeMap<String, Vec<u8>>,
        args: &mut [String],
        runtime_dir: &Path,
    ) -> Result<Self, SpawnError> {
        if files.is_empty() {
            return Ok(Self::default());
        }
        let failed = |file: &Path| {
            let file = file.to_owned();
            move |error| SpawnError::File { file, error }
        };
        let unfit =
            |path: &Path, why| failed(path)(io::Error::new(io::ErrorKind::InvalidInput, why));
        let base = std::path::absolute(runtime_dir).map_err(failed(runtime_dir))?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&base).map_err(failed(&base))?;
        // From here on a failure removes what was written.
        let directory = PrivateDirectory::new(&base, PREFIX).map_err(failed(&base))?;
        let text = |path: &Path| match path.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(unfit(path, "its path is not UTF-8")),
        };
        for (name, contents) in files {
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(unfit(Path::new(name), "not a plain name"));
            }
            let path = directory.path().join(name);
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(contents)).map_err(failed(&path))?;
            let path = text(&path)?;
            put(args, &format!("{{file:{name}}}"), &path);
            put(args, &format!("{{escaped:{name}}}"), &escaped(&path));
        }
        let all = text(directory.path())?;
        if args.iter().any(|arg| arg.contains(ALL)) && all.contains(',') {
            return Err(unfit(
                directory.path(),
                "its path has a comma; choose another data directory",
            ));
        }
        put(args, ALL, &all);
        Ok(Self { _directory: Some(directory) })
    }
}

/// Puts a text in the place of its mark.
fn put(args: &mut [String], mark: &str, text: &str) {
    for arg in args.iter_mut().filter(|arg| arg.contains(mark)) {
        *arg = arg.replace(mark, text);
    }
}

/// A path with a backslash before whatever could have a meaning.
fn escaped(path: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    let mut text = String::new();
    for letter in path.chars() {
        text.extend((!is_plain(letter)).then_some('\\'));
        text.push(letter);
    }
    text
}

/// The process that a launch wants. The text that its stdin gets, if any, is the caller's to write.
pub fn prepare(
    launch: &Launch,
    program: PathBuf,
    runtime_dir: &Path,
) -> Result<(Spawn, LaunchFiles), SpawnError> {
    let mut args = launch.args.clone();
    let files = LaunchFiles::write(&launch.files, &mut args, runtime_dir)?;
    let directory = match &launch.working_directory {
        Some(directory) => std::path::absolute(directory),
        None => std::env::current_dir(),
    };
    let directory = directory.map_err(|error| {
        let directory = launch.working_directory.clone().unwrap_or_default().into();
        SpawnError::Directory { directory, error }
    })?;
    let mut env = environment(&launch.env);
    // The inherited one says where the gateway is.
    if !launch.env.contains_key("PWD") {
        env.retain(|(name, _)| name != "PWD");
        env.push(("PWD".into(), directory.clone().into()));
    }
    let stdin = match launch.stdin {
        Stdin::Open | Stdin::Text(_) => StdinPlan::Pipe,
        Stdin::Empty => StdinPlan::Null,
    };
    let args = args.into_iter().map(OsString::from).collect();
    Ok((Spawn { program, args, env, directory, stdin }, files))
}

/// The environment of an agent: ours, without what is agentwire's own or says that an agent runs
/// us, and with `extra`.
pub fn environment(extra: &BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    choose(std::env::vars_os(), extra)
}

fn choose(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    extra: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    inherited
        .filter(|(name, _)| {
            // Claude Code sets CLAUDECODE for what it runs and refuses to run inside itself; its
            // Python SDK removes it too.
            !name.as_encoded_bytes().starts_with(b"AGENTWIRE_")
                && name != "CLAUDECODE"
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
            ("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-py".into()),
            (odd.clone(), odd.clone()),
            ("LANG".into(), "C".into()),
        ];
        let extra = BTreeMap::from([("LANG".to_owned(), "de".to_owned())]);
        let expected: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), "/bin".into()),
            ("AGENTWIRES".into(), "not ours".into()),
            ("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-py".into()),
            (odd.clone(), odd),
            ("LANG".into(), "de".into()),
        ];
        assert_eq!(choose(inherited.into_iter(), &extra), expected);
    }
}
