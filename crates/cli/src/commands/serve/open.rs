//! Opens the server's page in the user's browser, signed in.
//!
//! Every user of the machine can read the arguments of programs. So the browser gets a file that
//! only the user can read. It leads to the page with a ticket in the fragment of the address. The
//! ticket is valid once, for 30 s, and browsers never send fragments.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agentwire_server::tokens::write_private;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::print;

/// How long the file exists: as long as the ticket is valid.
const LIFE: Duration = Duration::from_secs(30);

/// An opened page. Dropping this deletes the file, if it still exists.
pub(super) struct Page {
    file: PathBuf,
    tidy: JoinHandle<()>,
}

impl Page {
    /// If no browser opens, the user gets the address instead of an error.
    pub(super) async fn open(http: &str, ticket: Option<String>, place: &Path) -> Self {
        let file = place.join("open.html");
        let address = match &ticket {
            Some(ticket) => format!("{http}/#ticket={ticket}"),
            None => format!("{http}/"),
        };
        let opened = match write_private(&file, &lead(&address)) {
            Ok(()) => start(&file).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = opened {
            let hint =
                if ticket.is_some() { " and sign in with `agentwire token show`" } else { "" };
            print::note(&format!(
                "agentwire: failed to open a browser ({why}); open {http}/{hint}"
            ));
        }
        let stale = file.clone();
        let tidy = tokio::spawn(async move {
            tokio::time::sleep(LIFE).await;
            let _ = std::fs::remove_file(stale);
        });
        Self { file, tidy }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.tidy.abort();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Neither a socket address nor a ticket contains a character that is special in HTML.
fn lead(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <meta http-equiv=refresh content=\"0;url={address}\"><title>agentwire</title>\
         <a href=\"{address}\">agentwire</a>\n"
    )
}

/// In its own process group: Ctrl-C is for the server, not for the browser.
async fn start(file: &Path) -> Result<(), String> {
    const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(OPENER)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut opener = started.map_err(|error| format!("{OPENER}: {error}"))?;
    // It may be the browser itself, which keeps running.
    match tokio::time::timeout(Duration::from_secs(2), opener.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("{OPENER} failed: {status}")),
        Ok(Err(error)) => Err(format!("{OPENER}: {error}")),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}
