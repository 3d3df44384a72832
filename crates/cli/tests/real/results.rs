//! Writes the results for `cargo xtask drift`: a file of results, and the log of each session, in the
//! directory `AGENTWIRE_REAL_RESULTS`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::agents::Agent;
use crate::harness::Place;
use crate::matrix::{Cell, Found};

pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os("AGENTWIRE_REAL_RESULTS").map(PathBuf::from)
}

/// Writes the logs of a column.
pub(crate) fn record(directory: &Path, place: &Place) {
    place.record(&directory.join(place.agent.name));
}

pub(crate) fn write(directory: &Path, agents: &[Agent], versions: &[String], found: &Found) {
    let columns = agents.iter().zip(versions).map(|(agent, version)| {
        let own = found.iter().filter(|((name, _), _)| *name == agent.name);
        let scenarios: Map<String, Value> = own
            .filter_map(|((_, scenario), cell)| match cell {
                Cell::Works => Some(((*scenario).to_owned(), Value::Null)),
                Cell::Fails(why) => Some(((*scenario).to_owned(), json!(why))),
                Cell::Cannot(_) => None,
            })
            .collect();
        json!({
            "name": agent.name, "agent": agent.kind, "driver": agent.driver,
            "pinned": agent.package.version, "version": version, "scenarios": scenarios,
        })
    });
    keep(directory, &json!({ "columns": columns.collect::<Vec<_>>() }));
}

/// Writes why nothing could run.
pub(crate) fn skip(directory: &Path, why: &str) {
    keep(directory, &json!({ "skipped": why }));
}

fn keep(directory: &Path, value: &Value) {
    fs::create_dir_all(directory).expect("a directory");
    fs::write(directory.join("results.json"), value.to_string()).expect("a file");
}
