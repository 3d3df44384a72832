//! The only place that writes to the terminal. stdout belongs to the answer; all else is stderr.
#![expect(clippy::print_stderr, reason = "this is where it is done")]

use std::io::{self, IsTerminal as _, StdoutLock, Write as _};

/// stdout, for the answer.
pub(crate) fn stdout() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Writes all of it now. Nobody has to read stderr; who reads stdout and goes is told of.
pub(crate) fn write(out: &[u8], err: &[u8]) -> io::Result<()> {
    if !out.is_empty() {
        let mut stdout = stdout();
        stdout.write_all(out)?;
        stdout.flush()?;
    }
    if !err.is_empty() {
        let _ = io::stderr().write_all(err);
    }
    Ok(())
}

/// How many columns the terminal has.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let size = size.or_else(|_| rustix::termios::tcgetwinsize(io::stderr())).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Asks for a line on the terminal; none at the end of input.
pub(crate) fn ask_line(question: &str) -> io::Result<Option<String>> {
    eprint!("{question}");
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// A failure, and what to do next.
pub(crate) fn error(message: &str) {
    eprintln!("agentwire: {message}");
}

/// Something worth knowing.
pub(crate) fn note(message: &str) {
    eprintln!("{message}");
}

/// A line of someone else's, as it is. Whether anyone reads it is no matter.
pub(crate) fn aside(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// One line on a terminal that is written over and over; silent where nobody looks.
pub(crate) struct Progress {
    shown: bool,
    on: bool,
}

impl Progress {
    /// On a terminal only, and only if the answer goes elsewhere.
    pub(crate) fn new() -> Self {
        let on = io::stderr().is_terminal() && !io::stdout().is_terminal();
        Self { shown: false, on }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    pub(crate) fn show(&mut self, line: &str) {
        if self.on {
            self.shown = true;
            eprint!("\r\x1b[K{line}");
            let _ = io::stderr().flush();
        }
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}
