//! `agentwire play`: replays the recorded agent of a transcript.
//!
//! The agent's lines come at their recorded times. Where the recorded client sent a line, `play`
//! waits for the live client. Ids that the live client chose replace the recorded ones.

mod client;
mod transcript;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agentwire_dialects::json::Scanner;

use self::client::Client;
use self::transcript::{Entry, Transcript};
use crate::args::{Play, Speed};
use crate::print;

pub(crate) fn run(args: &Play) -> io::Result<ExitCode> {
    let failed = |what: &str, error: &io::Error| {
        let path = args.file.display();
        io::Error::new(error.kind(), format!("failed to {what} {path}: {error}"))
    };
    let file = File::open(&args.file).map_err(|error| failed("open", &error))?;
    let mut file = BufReader::with_capacity(64 << 10, file);
    let mut first = Vec::new();
    while first.trim_ascii().is_empty() {
        let read = file.read_until(b'\n', &mut first).map_err(|error| failed("read", &error))?;
        if read == 0 {
            let empty = io::Error::new(io::ErrorKind::InvalidData, "the file is empty");
            return Err(failed("play", &empty));
        }
    }
    let is_transcript = transcript::is_entry(&mut Scanner::new(), &first);
    let mut input = io::Read::chain(first.as_slice(), file);
    if !is_transcript {
        // Plain output has no times, so there is nothing to wait for.
        let mut stdout = print::stdout();
        io::copy(&mut input, &mut stdout)?;
        stdout.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let transcript = Transcript::read(input).map_err(|error| failed("play", &error))?;
    play(&transcript, args.speed).map(ExitCode::from)
}

fn play(transcript: &Transcript, speed: Speed) -> io::Result<u8> {
    let mut client = Client::listen(transcript.entries.iter())?;
    let mut last = None;
    for entry in &transcript.entries {
        match entry {
            Entry::Agent { line, at } => {
                let pause = speed.of(at.zip(last).map(|(at, last)| at.saturating_sub(last)));
                client.linger(Instant::now().checked_add(pause))?;
                client.write(&client.translated(line))?;
                last = at.or(last);
            }
            Entry::Client { line, at } => {
                // Without a client the agent would not have sent the rest.
                if !client.expect(line)? {
                    break;
                }
                last = at.or(last);
            }
        }
    }
    if transcript.exit_code.is_none() {
        // The recording does not say otherwise: the agent ended because its client did.
        client.await_end()?;
    }
    client.flush()?;
    Ok(transcript.exit_code.unwrap_or(0))
}

impl Speed {
    fn of(self, recorded: Option<u64>) -> Duration {
        let recorded = Duration::from_millis(recorded.unwrap_or(0));
        match self {
            Self::Max => Duration::ZERO,
            Self::Times(speed) => recorded.div_f64(speed),
        }
    }
}
