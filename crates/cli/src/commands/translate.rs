//! `agentwire translate`: an agent's recorded output in, unified events out.

mod input;
mod output;

use std::fs::File;
use std::io::{self, Read};

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_dialects::tape::Tape;

use self::input::{Recognised, Unwrap, recognise};
use self::output::Output;
use crate::args::{To, Translate};
use crate::print;

/// How much is read at once. What has come is translated and written before more is asked for, so
/// that in a pipe each line comes out as it goes in.
const CHUNK: usize = 64 << 10;

pub(crate) fn run(args: &Translate) -> io::Result<()> {
    match args.to {
        To::Unified => {}
    }
    let (mut input, size) = open(args)?;
    let mut output = Output::new(args, size);
    let mut chunk = vec![0; CHUNK];
    let mut unwrap = args.transcript.then(Unwrap::default);
    let mut waiting = Vec::new();
    let mut tape: Option<Tape> =
        args.from.dialect().and_then(agentwire_dialects::agent).map(record);

    loop {
        let read = match input.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("read the input", &error)),
        };
        let bytes = chunk.get(..read).unwrap_or_default();
        output.read(read);
        let bytes = match &mut unwrap {
            Some(unwrap) if read == 0 => &unwrap.finish(),
            Some(unwrap) => &unwrap.feed(bytes),
            None => bytes,
        };
        match &mut tape {
            Some(tape) => tape.feed(bytes, &mut output),
            None => {
                waiting.extend_from_slice(bytes);
                if let Some(dialect) = find(&waiting, read == 0) {
                    let mut found = record(dialect);
                    found.feed(&std::mem::take(&mut waiting), &mut output);
                    tape = Some(found);
                }
            }
        }
        if read == 0 {
            break;
        }
        output.flush()?;
    }
    if let Some(mut tape) = tape {
        tape.end(Exit::Unknown, &mut output);
    }
    output.finish(args.summary)
}

fn record(dialect: &dyn AgentDialect) -> Tape {
    Tape::recording(dialect)
}

/// The dialect of what has come so far; none while more may tell.
fn find(bytes: &[u8], at_end: bool) -> Option<&'static dyn AgentDialect> {
    match recognise(bytes, at_end) {
        Recognised::Dialect(dialect) => Some(dialect),
        Recognised::NotYet => None,
        Recognised::Nothing { transcript } => {
            print::note(if transcript {
                "agentwire: this looks like a transcript of both sides; add --transcript to read it as one"
            } else if bytes.is_empty() {
                "agentwire: the input is empty"
            } else {
                "agentwire: no known agent writes such lines, so they are kept as they are; name the agent with --from"
            });
            agentwire_dialects::agents().first().copied()
        }
    }
}

/// The input, and how long it is if that is known.
fn open(args: &Translate) -> io::Result<(Box<dyn Read>, Option<u64>)> {
    match &args.file {
        Some(path) if path.as_os_str() != "-" => {
            let what = format!("open {}", path.display());
            let file = File::open(path).map_err(|error| failed(&what, &error))?;
            let size = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            Ok((Box::new(file), size))
        }
        _ => Ok((Box::new(io::stdin().lock()), None)),
    }
}

fn failed(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("failed to {what}: {error}"))
}
