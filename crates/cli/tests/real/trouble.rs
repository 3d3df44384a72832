//! Places in which something is wrong on purpose.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::agents::Agent;

/// What is wrong.
#[derive(Clone, Default)]
pub(crate) struct Trouble {
    /// Replaces the agent's program.
    pub(crate) program: Option<PathBuf>,
    /// Replaces the model server's address.
    pub(crate) url: Option<String>,
    /// Changes the program's settings and variables.
    pub(crate) set_up: Option<SetUp>,
    /// agentwire's settings.
    pub(crate) settings: Option<String>,
}

/// Receives the home directory, the address of the model server and the variables.
pub(crate) type SetUp = fn(&Path, &str, &mut Variables);

pub(crate) type Variables = Vec<(String, String)>;

impl Trouble {
    /// Replaces the program with a script.
    pub(crate) fn script(directory: &Path, text: &str) -> Self {
        Self { program: Some(script(directory, text)), ..Self::default() }
    }

    /// The agent's variables with this trouble.
    pub(crate) fn variables(&self, agent: &Agent, home: &Path, url: &str) -> Variables {
        let url = self.url.as_deref().unwrap_or(url);
        let mut variables = (agent.environment)(home, url);
        if let Some(set_up) = self.set_up {
            set_up(home, url, &mut variables);
        }
        variables
    }
}

/// Writes a script as an executable program.
pub(crate) fn script(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("program");
    // A file that is open for writing cannot be executed, so the script is written under another name
    // first.
    let draft = directory.join("program.draft");
    let mut file = fs::File::create(&draft).expect("a file");
    writeln!(file, "#!/bin/sh\n{text}").expect("a file");
    drop(file);
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("a file");
    fs::rename(&draft, &path).expect("a file");
    path
}

pub(crate) fn unset(variables: &mut Variables, name: &str) {
    variables.retain(|(own, _)| own != name);
}

pub(crate) fn rewrite(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).expect("a file");
    fs::write(path, change(text)).expect("a file");
}

/// An address where nobody listens.
pub(crate) fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// A server that closes every connection and counts them.
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
