//! How an agent is started: `launch>` in, `launch<` out.

use std::collections::BTreeMap;

use agentwire_dialects::agent::{Launch, Start, Stdin};
use agentwire_protocol::Prompt;
use serde_json::{Value, json};

use crate::agent::{config, dialect, shown};
use crate::script::named;

/// The files of earlier launches. An unchanged file is not shown again.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// `launch> WIRE {"config","resume","fork","nativeSessionId","prompt"}`, where the prompt is a string or
/// the fields of the command.
pub(crate) fn launched(what: &str, files: &mut Files) -> Vec<String> {
    let (name, mut fields) = named(what);
    let config = config(fields["config"].take());
    let prompt: Option<Prompt> = match fields["prompt"].take() {
        Value::Null => None,
        Value::String(text) => Some(Prompt::text(text)),
        fields => Some(serde_json::from_value(fields).expect("a prompt")),
    };
    let start = Start {
        config: &config,
        resume: fields["resume"].as_str(),
        fork: fields["fork"] == true,
        native_session_id: fields["nativeSessionId"].as_str(),
        prompt: prompt.as_ref(),
    };
    match dialect(name).launch(&start) {
        Ok(launch) => told(&launch, files),
        Err(error) => vec![format!("launch< refused: {}", shown(&error))],
    }
}

fn told(launch: &Launch, files: &mut Files) -> Vec<String> {
    // Every user of the machine can read the arguments, so they must not contain a secret.
    assert!(!launch.shown_args().concat().contains("secret"), "{:?}", launch.shown_args());
    let command = [launch.program.clone()].into_iter().chain(launch.shown_args());
    let mut told = vec![format!("launch< run {}", json!(command.collect::<Vec<_>>()))];
    told.extend(launch.working_directory.iter().map(|path| format!("launch< in {}", json!(path))));
    for (name, value) in &launch.env {
        told.push(format!("launch< variable {name} {}", json!(value)));
    }
    for (name, file) in &launch.env_files {
        told.push(format!("launch< variable {name} is the path of {file}"));
    }
    for (name, contents) in &launch.files {
        let before = files.insert(name.clone(), contents.clone());
        told.push(match std::str::from_utf8(contents) {
            _ if before.as_ref() == Some(contents) => format!("launch< file {name} as before"),
            Ok(text) => format!("launch< file {name} {}", json!(text)),
            Err(_) => format!("launch< file {name} of bytes {contents:02x?}"),
        });
    }
    told.push(match &launch.stdin {
        Stdin::Open => "launch< stdin stays open".to_owned(),
        Stdin::Text(text) => format!("launch< stdin {}", json!(text)),
        Stdin::Empty => "launch< stdin is empty".to_owned(),
    });
    told
}
