//! `agentwire token`: manages access tokens.

use std::io::Write as _;

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_server::tokens::Tokens;
use serde_json::json;

use crate::args::{Global, Token, TokenVerb};
use crate::failure::Failure;
use crate::{engine, format, print, settings};

pub(crate) fn run(global: &Global, args: &Token) -> Result<(), Failure> {
    let settings = settings::load(global)?.engine;
    engine::make_data_dir(&settings)?;
    let tokens = Tokens::open(&settings.data_dir)?;
    let mut out = print::stdout();
    match &args.verb {
        TokenVerb::Show => writeln!(out, "{}", tokens.main()?)?,
        TokenVerb::Create { scope, name } => {
            let now = jiff::Timestamp::now().to_string();
            let (_, secret) = tokens.create(name, *scope, now)?;
            writeln!(out, "{secret}")?;
        }
        TokenVerb::Ls { json: true } => print::json(&json!({ "tokens": tokens.list()? }))?,
        TokenVerb::Ls { json: false } => {
            let tokens = tokens.list()?;
            if tokens.is_empty() {
                print::note(
                    "no tokens except the operator's; create one with `agentwire token create`",
                );
                return Ok(());
            }
            let rows = tokens.iter().map(|entry| {
                let age = format::age(&entry.created_at);
                let (scope, name) = (entry.scope.as_str().to_owned(), format::line(&entry.name));
                [entry.id.clone(), scope, age, name]
            });
            print::table(["ID", "SCOPE", "AGE", "NAME"], &rows.collect::<Vec<_>>())?;
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
