//! `agentwire agents`: lists agents and their installation.

use std::io::{self, Write};

use agentwire_dialects::program::{Login, Standing};
use agentwire_sessions::process::Contain;
use serde_json::json;

use crate::args::{Agents, Global};
use crate::engine;
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::installed::{self, Installed};
use crate::print;
use crate::settings;

/// Columns before the details of an agent.
const INDENT: usize = 8;

pub(crate) fn run(global: &Global, args: &Agents) -> Result<(), Failure> {
    let loaded = settings::load(global)?;
    let settings = &loaded.engine;
    let (agents, refused) = engine::runtime()?.block_on(async {
        match Contain::probe(settings.keeper.clone(), settings.containment).await {
            Ok(contain) => (installed::look(settings, Some(&contain)).await, None),
            Err(error) => (installed::look(settings, None).await, Some(error)),
        }
    });
    if args.json {
        print::json(&json!({ "agents": agents }))?;
    } else {
        write(&mut print::stdout(), &agents, Paint::stdout())?;
    }
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn write(out: &mut impl Write, agents: &[Installed], paint: Paint) -> io::Result<()> {
    for agent in agents {
        let name = format::pad(agent.name, 8);
        let version = format::line(agent.version.as_deref().unwrap_or_default());
        let words = format!("{version} {}", agent.standing.words());
        let words = words.trim();
        let text = match agent.standing {
            Standing::Tested | Standing::Between => paint.green(words),
            Standing::Newer | Standing::Older | Standing::Unknown => paint.yellow(words),
            Standing::Missing => paint.dim(words),
        };
        write!(out, "{}{text}", paint.bold(&name))?;
        if let Some(login) = &agent.login {
            let words = login.words();
            let text = match login.login {
                Login::SignedIn(_) => paint.green(&words),
                Login::NotSignedIn => paint.yellow(&words),
                Login::NotTold => paint.dim(&words),
            };
            write!(out, ", {text}")?;
        }
        writeln!(out)?;
        match &agent.path {
            Some(path) => writeln!(out, "        {}", format::line(&path.to_string_lossy()))?,
            None => {
                writeln!(out, "        {}", agent.error.as_deref().unwrap_or_default())?;
                writeln!(out, "        install: {}", agent.source)?;
            }
        }
        for problem in agent.worst_first() {
            let text = format!("known problem: {}; {}", problem.what, problem.remedy);
            let text = format::wrapped(&text, print::columns(), INDENT, INDENT);
            let text = if problem.fatal { paint.red(&text) } else { paint.yellow(&text) };
            writeln!(out, "        {text}")?;
        }
        let variable =
            agent.variable.as_ref().map(|name| format!("; set {name} to use another program"));
        let drivers = format!("drivers: {}", agent.drivers.join(", "));
        let more = format!("{drivers}{}", variable.unwrap_or_default());
        let more = format::wrapped(&more, print::columns(), INDENT, INDENT);
        writeln!(out, "        {}", paint.dim(&more))?;
    }
    Ok(())
}
