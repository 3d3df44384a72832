//! `agentwire model-server`: scripted model APIs.

use std::io;
use std::sync::Arc;

use agentwire_models::{ModelServer, Options, RecordedRequest};
use serde_json::json;

use crate::args;
use crate::drive::Signals;
use crate::print;

pub(crate) fn run(args: &args::ModelServer) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let mut options = Options { port: args.port, ..Options::default() };
        if args.log {
            options.watch = Some(Arc::new(log_request));
        }
        let server = ModelServer::start(options).map_err(|error| {
            let port = args.port;
            let next = "choose another with --port, or 0 for a free one";
            io::Error::new(
                error.kind(),
                format!("failed to listen on port {port}: {error}; {next}"),
            )
        })?;
        print::aside(&json!({ "ready": true, "http": server.url() }).to_string());
        signals.end().await;
        Ok(())
    })
}

fn log_request(seen: &RecordedRequest) {
    let line = json!({
        "request": format!("{} {}", seen.method, seen.path),
        "api": seen.api,
        "model": seen.model,
        "side": seen.side,
        "status": seen.status,
    });
    print::aside(&line.to_string());
}
