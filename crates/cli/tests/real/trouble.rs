//! What is wrong with a place, on purpose.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::agents::Agent;

/// What is not as it should be.
#[derive(Clone, Default)]
pub(crate) struct Trouble {
    /// Stands in the place of the agent's program.
    pub(crate) program: Option<PathBuf>,
    /// Stands in the place of the model server's address.
    pub(crate) url: Option<String>,
    /// Changes what the program reads at its start, and its variables.
    pub(crate) set_up: Option<SetUp>,
    /// What agentwire reads at its start.
    pub(crate) settings: Option<String>,
}

/// Gets the home directory, the address of the model server and the variables.
pub(crate) type SetUp = fn(&Path, &str, &mut Variables);

/// Names and values.
pub(crate) type Variables = Vec<(String, String)>;

impl Trouble {
    /// A script in place of the program.
    pub(crate) fn script(directory: &Path, text: &str) -> Self {
        Self { program: Some(script(directory, text)), ..Self::default() }
    }

    /// The variables of the agent in this trouble.
    pub(crate) fn variables(&self, agent: &Agent, home: &Path, url: &str) -> Variables {
        let url = self.url.as_deref().unwrap_or(url);
        let mut variables = (agent.environment)(home, url);
        if let Some(set_up) = self.set_up {
            set_up(home, url, &mut variables);
        }
        variables
    }
}

/// A program that is this script.
pub(crate) fn script(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("program");
    // A file that is open for writing cannot be run; a copy was never.
    let draft = directory.join("program.draft");
    let mut file = fs::File::create(&draft).expect("a file");
    writeln!(file, "#!/bin/sh\n{text}").expect("a file");
    drop(file);
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("a file");
    fs::rename(&draft, &path).expect("a file");
    path
}

/// Takes a variable away.
pub(crate) fn unset(variables: &mut Variables, name: &str) {
    variables.retain(|(own, _)| own != name);
}

/// Changes a file of the program's.
pub(crate) fn rewrite(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).expect("a file");
    fs::write(path, change(text)).expect("a file");
}

/// An address at which nobody listens.
pub(crate) fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// Somebody who hangs up on whoever calls, and counts the calls.
pub(crate) struct HangUp {
    pub(crate) url: String,
    calls: Arc<AtomicUsize>,
    is_over: Arc<std::sync::atomic::AtomicBool>,
}

impl HangUp {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let calls = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (counted, over) = (Arc::clone(&calls), Arc::clone(&is_over));
        std::thread::spawn(move || {
            for call in listener.incoming() {
                drop(call);
                if over.load(Ordering::Acquire) {
                    return;
                }
                counted.fetch_add(1, Ordering::AcqRel);
            }
        });
        Self { url, calls, is_over }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Acquire)
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}
