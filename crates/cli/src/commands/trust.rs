//! `agentwire trust`: lists and revokes trusted directories.

use std::io::Write as _;

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::trust::Ledger;
use serde_json::json;

use crate::args::{Global, Trust, TrustVerb};
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::{print, settings};

pub(crate) fn run(global: &Global, args: &Trust) -> Result<(), Failure> {
    let ledger = Ledger::new(&settings::load(global)?.engine.data_dir);
    let mut out = print::stdout();
    match &args.verb {
        TrustVerb::Ls { json: true } => print::json(&json!({ "trusted": ledger.entries() }))?,
        TrustVerb::Ls { json: false } => {
            let paint = Paint::stdout();
            for entry in ledger.entries() {
                let agent = format::pad(&format::line(&entry.agent), 7);
                let directory = format::line(&entry.directory);
                let since = format::line(&entry.trusted_at);
                writeln!(out, "{agent}  {}  {}", paint.bold(&directory), paint.dim(&since))?;
            }
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
