//! The only place that writes to the terminal. stdout carries the answer; everything else goes to
//! stderr.
#![expect(clippy::print_stderr, reason = "this is where it is done")]

use std::io::{self, IsTerminal as _, StdoutLock, Write as _};

use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use crate::args::{self, LogFormat, LogLevel};
use crate::format;
use crate::view::layout;

pub(crate) fn stdout() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// stdout for agents' text: unchanged, but with control characters escaped on a terminal.
pub(crate) fn spoken() -> Box<dyn io::Write> {
    match io::stdout().is_terminal() {
        true => Box::new(Escaped { out: stdout(), rest: Vec::new() }),
        false => Box::new(stdout()),
    }
}

/// Shows control characters as JSON escapes.
struct Escaped<W: io::Write> {
    out: W,
    /// The start of an incomplete character.
    rest: Vec<u8>,
}

impl<W: io::Write> io::Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.rest.len(),
        };
        let left = self.rest.split_off(whole);
        let text = std::mem::replace(&mut self.rest, left);
        self.out.write_all(layout::as_json(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes everything now. A failure on stderr is ignored, one on stdout is returned.
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

/// Reads a line from the terminal; `None` at the end of input.
pub(crate) fn ask_line(question: &str) -> io::Result<Option<String>> {
    eprint!("{question}");
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// An error message. On a terminal, this and the next two wrap at words.
pub(crate) fn error(message: &str) {
    note(&format!("agentwire: {message}"));
}

/// Clap's message: help, the version, or what is wrong with the arguments.
pub(crate) fn refusal(error: &clap::Error) {
    let page = args::unbroken(&error.render().ansi().to_string());
    // A reader that is gone does not matter.
    let _ = match error.use_stderr() {
        true => anstream::stderr().write_all(page.replace("subcommand", "command").as_bytes()),
        false => anstream::stdout().write_all(page.as_bytes()),
    };
}

/// A confirmation, on a terminal only; programs have the exit code.
pub(crate) fn done(message: &str) {
    if io::stderr().is_terminal() {
        note(message);
    }
}

/// A hint or a result for people.
pub(crate) fn note(message: &str) {
    eprintln!("{}", format::wrapped(message, error_columns(), 0, 2));
}

pub(crate) fn line(answer: &str) -> io::Result<()> {
    writeln!(stdout(), "{answer}")
}

pub(crate) fn json(answer: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(answer)?;
    match io::stdout().is_terminal() {
        true => writeln!(stdout(), "{}", layout::as_json(&text)),
        false => writeln!(stdout(), "{text}"),
    }
}

/// Rows for people: aligned, with a header on a terminal.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let stdout = io::stdout();
    let has_head = stdout.is_terminal();
    let head = has_head.then(|| head.map(str::to_owned));
    let widths = format::widths(head.iter().chain(rows));
    let mut out = stdout.lock();
    for (number, row) in head.iter().chain(rows).enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format::pad(cell, width));
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        match has_head && number == 0 {
            true => writeln!(out, "{}", format::Paint::stdout().dim(line))?,
            false => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

/// Asks for confirmation; `None` without a terminal.
pub(crate) fn ask(question: &str) -> io::Result<Option<bool>> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")))
}

/// Whether this stream should have colours. Honours `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and
/// `TERM`, as clap does.
pub(crate) fn has_colour(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Columns of stdout, if it is a terminal.
pub(crate) fn columns() -> Option<usize> {
    columns_of(&io::stdout())
}

/// Columns of stderr, if it is a terminal.
pub(crate) fn error_columns() -> Option<usize> {
    columns_of(&io::stderr())
}

/// Columns of whichever stream is a terminal.
pub(crate) fn width() -> Option<usize> {
    columns().or_else(error_columns)
}

fn columns_of(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Starts logging to stderr.
pub(crate) fn log(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let logger = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    // Fails only if there is a logger already.
    let _ = match format {
        LogFormat::Text => logger.compact().try_init(),
        LogFormat::Json => logger
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
}

/// Text for stderr, unchanged: for programs, or laid out already. A failed write is ignored.
pub(crate) fn aside(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A progress line on a terminal that can erase it; silent elsewhere.
pub(crate) struct Progress {
    shown: bool,
    on: bool,
}

impl Progress {
    /// For work that prints to stdout meanwhile: only shown if stdout is not the terminal.
    pub(crate) fn new() -> Self {
        let Self { shown, on } = Self::before_the_answer();
        Self { shown, on: on && !io::stdout().is_terminal() }
    }

    /// For work that is done before anything is printed to stdout.
    pub(crate) fn before_the_answer() -> Self {
        let stderr = io::stderr();
        Self { shown: false, on: stderr.is_terminal() && has_colour(&stderr) }
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
