//! `agentwire doctor`: checks the installation and suggests fixes.

mod data_dir;
mod installation;
mod turn;

use std::io::{self, Write};

use agentwire_protocol::{GatewayError, Json, SessionConfig};
use agentwire_sessions::process::{Contain, Containment};
use agentwire_sessions::session::policy::Policy;
use serde::Serialize;
use serde_json::json;

use crate::args::{Doctor, Global};
use crate::engine;
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::installed;
use crate::print;
use crate::settings::{self, Loaded};

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Verdict,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    Ok,
    /// It works, with a limitation.
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Verdict::Ok, message: message.into(), fix: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Verdict::Warn, fix: Some(fix.into()), ..Self::ok(name, message) }
    }

    fn fail(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Verdict::Fail, fix: Some(fix.into()), ..Self::ok(name, message) }
    }
}

pub(crate) fn run(global: &Global, args: &Doctor) -> Result<(), Failure> {
    let mut checks = Vec::new();
    if let Some(loaded) = settings(global, &mut checks) {
        checks.push(policy(&loaded));
        data_dir::check(&loaded, &mut checks);
        engine::runtime()?.block_on(async {
            let engine = &loaded.engine;
            match Contain::probe(engine.keeper.clone(), engine.containment).await {
                Ok(contain) => {
                    checks.push(containment(&contain));
                    for agent in installed::look(engine, Some(&contain)).await {
                        checks.push(installation::check(&agent, loaded.agent));
                    }
                    checks.push(turn::check(&loaded).await);
                }
                Err(error) => checks.push(Check::fail(
                    "containment",
                    error.message,
                    "change this setting; no agent starts until then",
                )),
            }
        });
    }
    let ok = checks.iter().all(|check| check.status != Verdict::Fail);
    if args.json {
        print::json(&json!({ "ok": ok, "checks": checks }))?;
    } else {
        write(&mut print::stdout(), &checks, Paint::stdout())?;
    }
    if ok { Ok(()) } else { Err(Failure::Exit(1)) }
}

/// Loads the settings; without the file or the variables if those are invalid, so that the other checks
/// can run.
fn settings(global: &Global, checks: &mut Vec<Check>) -> Option<Loaded> {
    let fix_file = "fix the file; `agentwire schema config` prints its schema";
    let fix_variable = "fix or unset the variable";
    let mut fail =
        |error: GatewayError, fix| checks.push(Check::fail("settings", error.message, fix));
    let error = match settings::load(global) {
        Ok(loaded) => {
            checks.push(match &loaded.file {
                Some(path) => Check::ok("settings", format!("{} is valid", path.display())),
                None => Check::ok("settings", "no config.toml; using defaults"),
            });
            return Some(loaded);
        }
        Err(error) => error,
    };
    match (settings::load_without_file(global), settings::load_without_variables(global)) {
        (Ok(loaded), _) => {
            fail(error, fix_file);
            Some(loaded)
        }
        (Err(_), Ok(loaded)) => {
            fail(error, fix_variable);
            Some(loaded)
        }
        (Err(variable), Err(file)) => {
            let defaults = settings::load_defaults(global);
            if defaults.as_ref().is_err_and(|other| *other == file) {
                fail(file, "name a data directory that can be found");
                return None;
            }
            fail(file, fix_file);
            fail(variable, fix_variable);
            defaults.ok()
        }
    }
}

/// Checks the rules. An invalid rule would refuse every session.
fn policy(loaded: &Loaded) -> Check {
    let name = "policy";
    let defaults = &loaded.engine.defaults;
    let mut config = SessionConfig::default();
    defaults.apply(&mut config);
    let home = std::env::home_dir();
    let dialect = agentwire_dialects::driver(loaded.agent.unwrap_or_else(engine::built_in), None);
    match dialect.and_then(|it| Policy::new(it.tools(), &config, home.as_deref())) {
        Ok(_) => Check::ok(
            name,
            format!(
                "{}; {} allowed, {} blocked",
                Json::of(&config.approval_mode.unwrap_or_default()).get().trim_matches('"'),
                format::count(defaults.allow.iter().flatten().count() as u64, "rule"),
                defaults.block.len()
            ),
        ),
        Err(error) => Check::fail(name, error.message, "fix [policy] in the settings"),
    }
}

fn containment(contain: &Contain) -> Check {
    match contain.containment() {
        in_force @ Containment::Namespace { .. } => {
            let held = "a pid namespace for each agent: nothing it starts outlives its session or \
                        agentwire, and it cannot see agentwire's own files";
            match in_force.caveat() {
                None => Check::ok("containment", held),
                Some(caveat) => Check::ok("containment", format!("{held}; but {caveat}")),
            }
        }
        Containment::Keeper { reason, .. } => Check::ok(
            "containment",
            format!(
                "a keeper for each agent: nothing it starts outlives its session or agentwire, unless \
                 it attacks its keeper; no pid namespace ({reason})"
            ),
        ),
        Containment::ProcessGroup { reason } => Check::warn(
            "containment",
            format!(
                "only a process group for each agent: processes that leave the group, or outlive a killed \
                 agentwire, keep running ({reason})"
            ),
            "use Linux, and run agentwire from an executable file that it can start again",
        ),
    }
}

fn write(out: &mut impl Write, checks: &[Check], paint: Paint) -> io::Result<()> {
    let widest = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let mark = match check.status {
            Verdict::Ok => paint.green("✓"),
            Verdict::Warn => paint.yellow("!"),
            Verdict::Fail => paint.red("✗"),
        };
        let name = format::pad(check.name, widest);
        let at = widest + 4;
        let message = format::wrapped(&format::line(&check.message), print::columns(), at, at);
        writeln!(out, "{mark} {}  {message}", paint.bold(&name))?;
        if let Some(fix) = &check.fix {
            let fix = format::wrapped(&format::line(fix), print::columns(), at + 2, at + 2);
            writeln!(out, "{}→ {fix}", " ".repeat(at))?;
        }
    }
    let number = |verdict| checks.iter().filter(|check| check.status == verdict).count();
    let summary = match (number(Verdict::Fail), number(Verdict::Warn)) {
        (0, 0) => "no problems found".to_owned(),
        (0, warned) => {
            format!("no failures, {}", format::count(warned as u64, "warning"))
        }
        (failed, _) => format!("{} to fix", format::count(failed as u64, "problem")),
    };
    writeln!(out, "\n{summary}")
}
