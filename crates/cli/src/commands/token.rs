//! `agentwire token`: manages access tokens.

use std::io::Write as _;

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_server::tokens::Tokens;
use serde_json::json;

use crate::args::{Global, Token, TokenVerb};
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::{print, settings};

pub(crate) fn run(global: &Global, args: &Token) -> Result<(), Failure> {
    let engine = settings::load(global)?.engine;
    engine.make_data_dir()?;
    let tokens = Tokens::open(&engine.data_dir)?;
    let mut out = print::stdout();
    match &args.verb {
        TokenVerb::Show => writeln!(out, "{}", tokens.main()?)?,
        TokenVerb::Create { scope, name } => {
            let now = jiff::Timestamp::now().to_string();
            let (_, secret) = tokens.create(name, (*scope).into(), now)?;
            writeln!(out, "{secret}")?;
        }
        TokenVerb::Ls { json: true } => print::json(&json!({ "tokens": tokens.list()? }))?,
        TokenVerb::Ls { json: false } => {
            let paint = Paint::stdout();
            for entry in tokens.list()? {
                let scope = format::pad(entry.scope.as_str(), 8);
                let name = format::line(&entry.name);
                let made = paint.dim(&entry.created_at);
                writeln!(out, "{}  {scope}  {name}  {made}", paint.bold(&entry.id))?;
            }
        }
        TokenVerb::Revoke { id } => {
            if !tokens.revoke(id)? {
                let message = format!("unknown token {id}; `agentwire token ls` lists the tokens");
                return Err(GatewayError::new(ErrorCode::InvalidMessage, message).into());
            }
        }
    }
    Ok(())
}
