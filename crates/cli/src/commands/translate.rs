//! `agentwire translate`: converts an agent's recorded output to another format.

mod input;
mod output;
mod writer;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::Tape;

use self::input::{Finder, Found, Unwrap};
use self::output::Output;
use crate::args::Translate;
use crate::print;

/// How much is read at once. What was read is translated and passed to the writer before more is read, so that
/// in a pipe each line comes out at once.
const CHUNK: usize = 256 << 10;

/// The capacity of the pipes at both ends, where the system allows it: fewer waits for the other programs.
const PIPE: usize = 1 << 20;

pub(crate) fn run(args: &Translate) -> io::Result<()> {
    let (mut input, size) = open(args)?;
    // Fails harmlessly if it is not a pipe.
    let _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), PIPE);
    let mut output = Output::new(args, size);
    let mut chunk = vec![0; CHUNK];
    let mut unwrap = args.transcript.then(Unwrap::default);
    let mut finder = Finder::default();
    let named = args.from.0.and_then(agentwire_dialects::agent);
    let mut tape = named.map(Tape::recording);

    loop {
        let read = match input.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("read the input", &error)),
        };
        let at_end = read == 0;
        output.read(read);
        let bytes = chunk.get(..read).unwrap_or_default();
        let bytes = match &mut unwrap {
            Some(unwrap) => Cow::Owned(unwrap.feed(bytes, at_end)),
            None => Cow::Borrowed(bytes),
        };
        match &mut tape {
            Some(tape) => tape.feed(&bytes, &mut output),
            None => {
                let dialect = match finder.feed(&bytes, at_end) {
                    Found::Dialect(dialect) => Some(dialect),
                    Found::NotYet => None,
                    Found::Nothing => {
                        hint(finder.is_transcript(), finder.is_empty(), args.transcript);
                        agentwire_dialects::agents().first().copied()
                    }
                };
                if let Some(dialect) = dialect {
                    let found = tape.insert(Tape::recording(dialect));
                    found.feed(&finder.take(), &mut output);
                }
            }
        }
        if at_end {
            break;
        }
        output.flush()?;
    }
    if let Some(mut tape) = tape {
        tape.end(Exit::Unknown, &mut output);
    }
    // After the output that is still being written.
    output.finish(args.summary)?;
    let strange = unwrap.map_or(0, |unwrap| unwrap.strange());
    if strange > 0 {
        let skipped = match strange {
            1 => "1 line that is not a transcript entry".to_owned(),
            _ => format!("{strange} lines that are not transcript entries"),
        };
        print::note(&format!(
            "agentwire: skipped {skipped}; without --transcript every line is kept"
        ));
    }
    Ok(())
}

/// Says why nothing was recognised, and what to do.
fn hint(is_transcript: bool, is_empty: bool, unwrapped: bool) {
    print::note(match (is_transcript, is_empty, unwrapped) {
        (true, ..) => {
            "agentwire: this looks like a transcript of both sides; add --transcript to read it as one"
        }
        (_, true, true) => "agentwire: the transcript has no lines from the agent",
        (_, true, false) => "agentwire: the input is empty",
        (_, false, _) => {
            "agentwire: no known agent writes lines like these; they are kept unchanged; \
             name the agent with --from"
        }
    });
}

/// The input, and its length if known.
fn open(args: &Translate) -> io::Result<(Box<dyn Read>, Option<u64>)> {
    match &args.file {
        Some(path) if path.as_os_str() != "-" => {
            let what = format!("open {}", path.display());
            let file = File::open(path).map_err(|error| failed(&what, &error))?;
            let size = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            Ok((Box::new(file), size))
        }
        _ => {
            let _ = rustix::pipe::fcntl_setpipe_size(io::stdin(), PIPE);
            Ok((Box::new(io::stdin().lock()), None))
        }
    }
}

fn failed(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("failed to {what}: {error}"))
}
