//! One column of the matrix, in its own process: runs each scenario in turn and prints the results.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};

use crate::agents::AGENTS;
use crate::harness::Place;
use crate::offline::Watch;
use crate::results;
use crate::scenarios::{SCENARIOS, Scenario};

/// The argument that makes this program a column. Then follow its name, the program, whether it runs in its
/// own network, and the scenarios.
pub(crate) const VERB: &str = "column";

/// The argument that says it runs in its own network.
pub(crate) const OFFLINE: &str = "offline";

/// Prints one line of JSON per scenario.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [name, program, network, wanted @ ..] = args else { panic!("a column has a name") };
    let agent = AGENTS.into_iter().find(|agent| agent.name == name).expect("a column");
    let watch = (network == OFFLINE).then(|| Watch::start().expect("loopback"));
    let mut place = Place::new(agent, Path::new(program));
    // From here on, panics are reported in the matrix.
    std::panic::set_hook(Box::new(|_| {}));
    let mut known = 0;
    for scenario in
        SCENARIOS.iter().filter(|scenario| wanted.iter().any(|name| name == scenario.name))
    {
        let begun = Instant::now();
        let mut error = attempt(scenario, &mut place);
        let first = if scenario.is_strict { None } else { error.take() };
        if first.is_some() {
            error = attempt(scenario, &mut place);
        }
        let unknown: Vec<String> =
            place.models.unknown().iter().skip(known).map(|seen| seen.path.clone()).collect();
        known += unknown.len();
        let asked =
            || (!unknown.is_empty()).then(|| format!("the model server does not know {unknown:?}"));
        let error = error.or_else(asked);
        let outside = watch.as_ref().and_then(Watch::tried);
        let seconds = begun.elapsed().as_secs_f64();
        tell(
            &json!({ "scenario": scenario.name, "error": error, "first": first, "outside": outside, "seconds": seconds }),
        );
    }
    if let Some(directory) = results::directory() {
        results::record(&directory, &place);
    }
    ExitCode::SUCCESS
}

/// Runs a scenario and returns what went wrong.
fn attempt(scenario: &Scenario, place: &mut Place) -> Option<String> {
    let run = catch_unwind(AssertUnwindSafe(|| (scenario.run)(place)));
    let stop = catch_unwind(AssertUnwindSafe(|| place.stop_all()));
    run.and(stop).err().map(|panic| said(&*panic))
}

fn tell(value: &Value) {
    println!("{value}");
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
