//! Numbers and counts the events, and writes them as they are or in another dialect.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::Instant;

use agentwire_dialects::board::Board;
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::insights;
use agentwire_dialects::tape::{Draft, Sink, Stamp};
use agentwire_protocol::{Json, Profile};
use jiff::Timestamp;
use uuid::Uuid;

use super::writer::Writer;
use crate::args::{To, Translate};
use crate::print::{self, Progress};

/// How many bytes are buffered while more input is available.
const FULL: usize = 256 << 10;

pub(super) struct Output {
    session_id: String,
    id: String,
    timestamp: String,
    wire: Wire,
    seq: u64,
    buffer: Vec<u8>,
    writer: Writer,
    error: Option<io::Error>,
    count: Count,
    progress: Progress,
    size: Option<u64>,
    begun: Instant,
    shown_at: Instant,
}

enum Wire {
    Unified(Profile),
    Claude(Box<Renderer>),
    Insights(Box<insights::Renderer>),
    Board(Box<Board>),
}

#[derive(Default)]
struct Count {
    bytes: u64,
    lines: u64,
    written: u64,
    kinds: BTreeMap<String, u64>,
}

impl Output {
    pub(super) fn new(args: &Translate, size: Option<u64>) -> Self {
        let session_id = args.session_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let now = Instant::now();
        let insights = || insights::Renderer::new(&session_id, None, BTreeMap::new());
        let wire = match args.to {
            To::Unified => Wire::Unified(args.profile),
            To::Claude => {
                let options = Options { partial: args.include_partial_messages };
                Wire::Claude(Box::new(Renderer::new(options)))
            }
            To::Insights => Wire::Insights(Box::new(insights())),
            To::Board => Wire::Board(Box::default()),
        };
        Self {
            id: format!("{session_id}-"),
            session_id,
            timestamp: String::new(),
            wire,
            seq: 0,
            buffer: Vec::with_capacity(2 * FULL),
            writer: Writer::default(),
            error: None,
            count: Count::default(),
            progress: Progress::new(),
            size,
            begun: now,
            shown_at: now,
        }
    }

    /// Counts bytes that were read.
    pub(super) fn read(&mut self, bytes: usize) {
        self.count.bytes += bytes as u64;
        self.timestamp.clear();
        let _ = write!(self.timestamp, "{:.3}", Timestamp::now());
        if self.progress.is_on() && self.shown_at.elapsed().as_millis() >= 250 {
            self.shown_at = Instant::now();
            self.progress.show(&self.speed());
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.buffer.is_empty() {
            self.count.written += self.buffer.len() as u64;
            self.writer.write(&mut self.buffer)?;
        }
        Ok(())
    }

    /// Writes the rest and the summary.
    pub(super) fn finish(mut self, summary: bool) -> io::Result<()> {
        self.flush()?;
        self.writer.finish()?;
        self.progress.clear();
        if summary {
            let mut text = format!(
                "{} lines, {} bytes in; {} events, {} bytes out; {}\n",
                self.count.lines,
                self.count.bytes,
                self.seq,
                self.count.written,
                self.speed()
            );
            for (kind, count) in &self.count.kinds {
                let _ = writeln!(text, "{count:>10} {kind}");
            }
            print::aside(text.trim_end());
        }
        Ok(())
    }

    fn speed(&self) -> String {
        let megabytes = self.count.bytes as f64 / 1e6;
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-6);
        let done = self.size.filter(|size| *size > 0).map(|size| {
            format!(" of {:.0} MB ({:.0} %)", size as f64 / 1e6, megabytes * 1e8 / size as f64)
        });
        format!("{megabytes:.1} MB{} at {:.0} MB/s", done.unwrap_or_default(), megabytes / seconds)
    }
}

impl Sink for Output {
    fn event(&mut self, draft: Draft<'_>) {
        self.seq += 1;
        self.count.lines += u64::from(draft.native.is_some());
        match self.count.kinds.get_mut(draft.kind.name()) {
            Some(count) => *count += 1,
            None => drop(self.count.kinds.insert(draft.kind.name().to_owned(), 1)),
        }
        self.id.truncate(self.session_id.len() + 1);
        let _ = write!(self.id, "{}", self.seq);
        let stamp = Stamp {
            id: &self.id,
            session_id: &self.session_id,
            seq: self.seq,
            timestamp: &self.timestamp,
        };
        let (wire, buffer) = (&mut self.wire, &mut self.buffer);
        let written = draft.stamp(stamp, |event| match wire {
            Wire::Unified(profile) => match profile.show(event) {
                Some(event) => event.write_line(buffer),
                None => Ok(()),
            },
            Wire::Claude(renderer) => {
                renderer.event(&event, &mut |line| put(buffer, line));
                Ok(())
            }
            Wire::Insights(renderer) => {
                let say = &mut |message: Json<'static>| put(buffer, message.get());
                let _ = renderer.event(&event, say);
                renderer.pause_recording(say);
                Ok(())
            }
            Wire::Board(board) => {
                board.event(&event, &mut |message| put(buffer, message.get()));
                Ok(())
            }
        });
        if let Err(error) = written {
            self.error.get_or_insert_with(|| io::Error::other(error));
        }
        if self.buffer.len() >= FULL
            && let Err(error) = self.flush()
        {
            self.error.get_or_insert(error);
        }
    }
}

fn put(buffer: &mut Vec<u8>, line: &str) {
    buffer.extend_from_slice(line.as_bytes());
    buffer.push(b'\n');
}
