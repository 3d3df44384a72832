//! `agentwire export`: a session's whole log, or a transcript of it.

mod transcript;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use agentwire_protocol::SessionId;

use self::transcript::{Style, Transcript};
use crate::args::{Export, ExportFormat, Global};
use crate::commands::logs::read;
use crate::failure::Failure;
use crate::format;
use crate::print::{self, Progress};
use crate::source::{self, EventUpdate, Source};

pub(crate) fn run(global: &Global, args: &Export) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| {
        // First, so that a wrong id does not empty the file.
        let id = source.find(&args.session).await?;
        let out: Box<dyn Write> = match &args.output {
            Some(path) if path.as_os_str() != "-" => Box::new(create(path)?),
            _ => print::spoken(),
        };
        write(source, &id, args.format, BufWriter::new(out)).await
    })
}

/// Writes the events so far; does not wait for more.
async fn write(
    source: &Source,
    id: &SessionId,
    format: ExportFormat,
    mut out: BufWriter<Box<dyn Write>>,
) -> Result<(), Failure> {
    let summary = source.summary(id).await?;
    let mut transcript = match format {
        ExportFormat::Jsonl => None,
        ExportFormat::Text => Some(Transcript::new(Style::Text)),
        ExportFormat::Markdown => Some(Transcript::new(Style::Markdown)),
    };
    if let Some(transcript) = &mut transcript {
        transcript.begin(&summary);
    }
    let mut events = source.events(id, 0, false).await?;
    let mut progress = Progress::new();
    let mut bytes = 0;
    while events.position() < summary.last_seq
        && let Some(EventUpdate::Events(batch)) = events.next().await?
    {
        match &mut transcript {
            None => out.write_all(&batch.lines)?,
            Some(transcript) => {
                for (_, line) in batch.events() {
                    transcript.event(&read(line)?);
                    out.write_all(transcript.take().as_bytes())?;
                }
            }
        }
        bytes += batch.lines.len() as u64;
        let (last, all) = (events.position(), summary.last_seq);
        progress.show(&format!("{last} of {all} events, {}", format::bytes(bytes)));
    }
    progress.clear();
    if let Some(transcript) = &mut transcript {
        transcript.end();
        out.write_all(transcript.take().as_bytes())?;
    }
    Ok(out.flush()?)
}

/// A log may contain anything that the agent saw, so only the owner can read the file.
fn create(path: &Path) -> Result<impl Write + use<>, Failure> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.map_err(|error| {
        let text = format!("failed to write {}: {error}", path.display());
        Failure::Io(io::Error::new(error.kind(), text))
    })
}
