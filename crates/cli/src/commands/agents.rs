//! `agentwire agents`: what is installed.

use std::io::{self, Write};

use agentwire_sessions::process::Contain;
use serde_json::json;

use crate::args::{Agents, Global};
use crate::engine;
use crate::failure::Failure;
use crate::installed::{self, Installed, Standing};
use crate::print;
use crate::settings;
use crate::shown::{self, Paint};

pub(crate) fn run(global: &Global, args: &Agents) -> Result<(), Failure> {
    let loaded = settings::load(global)?;
    let agents = engine::runtime()?.block_on(async {
        let contain = Contain::probe(loaded.engine.keeper.clone()).await;
        installed::look(&loaded.engine, &contain).await
    });
    if args.json {
        return Ok(print::json(&json!({ "agents": agents }))?);
    }
    Ok(write(&mut print::stdout(), &agents, Paint::stdout())?)
}

fn write(out: &mut impl Write, agents: &[Installed], paint: Paint) -> io::Result<()> {
    for agent in agents {
        let name = shown::pad(agent.name, 8);
        let version = shown::line(agent.version.as_deref().unwrap_or_default());
        let words = format!("{version} {}", agent.standing.words());
        let words = words.trim();
        let told = match agent.standing {
            Standing::Tested | Standing::Between => paint.green(words),
            Standing::Newer | Standing::Older | Standing::Unknown => paint.yellow(words),
            Standing::Missing => paint.dim(words),
        };
        writeln!(out, "{}{told}", paint.bold(&name))?;
        match &agent.path {
            Some(path) => writeln!(out, "        {}", shown::line(&path.to_string_lossy()))?,
            None => {
                writeln!(out, "        {}", agent.error.as_deref().unwrap_or_default())?;
                writeln!(out, "        get it: {}", agent.install)?;
            }
        }
        let variable = agent.variable.map(|name| format!("; {name} names another program"));
        let drivers = format!("driven by {}", agent.drivers.join(" or "));
        let more = format!("{drivers}{}", variable.unwrap_or_default());
        writeln!(out, "        {}", paint.dim(&more))?;
    }
    Ok(())
}
