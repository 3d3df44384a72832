//! `agentwire trust`: lists and revokes trusted directories.

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::trust::Ledger;
use serde_json::json;

use crate::args::{Global, Trust, TrustVerb};
use crate::failure::Failure;
use crate::{format, print, settings};

pub(crate) fn run(global: &Global, args: &Trust) -> Result<(), Failure> {
    let ledger = Ledger::new(&settings::load(global)?.engine.data_dir);
    match &args.verb {
        TrustVerb::Ls { json: true } => print::json(&json!({ "trusted": ledger.entries() }))?,
        TrustVerb::Ls { json: false } => {
            let trusted = ledger.entries();
            if trusted.is_empty() {
                print::note("no trusted directories; trust one with `agentwire run --trust`");
                return Ok(());
            }
            let rows = trusted.iter().map(|entry| {
                let (agent, since) = (format::line(&entry.agent), format::age(&entry.trusted_at));
                [agent, since, format::line(&entry.directory)]
            });
            print::table(["AGENT", "AGE", "DIRECTORY"], &rows.collect::<Vec<_>>())?;
        }
        TrustVerb::Revoke { directory } => {
            // A deleted directory is found by its old path.
            let path = directory.canonicalize().or_else(|_| std::path::absolute(directory))?;
            if ledger.revoke(&path.to_string_lossy())? == 0 {
                let path = path.display();
                let message = format!(
                    "{path} is not trusted; `agentwire trust ls` lists trusted directories"
                );
                return Err(GatewayError::new(ErrorCode::InvalidMessage, message).into());
            }
        }
    }
    Ok(())
}
