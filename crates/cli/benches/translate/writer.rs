//! Translates a recording as the program does.

use std::fmt::Write as _;
use std::hint::black_box;

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_dialects::tape::{Draft, Sink, Stamp, Tape};

/// Writes whole event lines, as the program does.
#[derive(Default)]
pub struct Writer {
    pub seq: u64,
    id: String,
    out: Vec<u8>,
}

impl Sink for Writer {
    fn event(&mut self, draft: Draft<'_>) {
        self.seq += 1;
        self.id.clear();
        let _ = write!(self.id, "e76dfe97-b723-463d-bcb8-554ac59228c9-{}", self.seq);
        let stamp = Stamp {
            id: &self.id,
            session_id: "e76dfe97-b723-463d-bcb8-554ac59228c9",
            seq: self.seq,
            timestamp: "2026-11-15T18:23:13.272Z",
        };
        let out = &mut self.out;
        draft.stamp(stamp, |event| event.write_line(out).unwrap());
        if self.out.len() > 256 << 10 {
            black_box(&self.out);
            self.out.clear();
        }
    }
}

pub fn translate(dialect: &dyn AgentDialect, bytes: &[u8], writer: &mut Writer) {
    writer.seq = 0;
    let mut tape = Tape::recording(dialect);
    for chunk in bytes.chunks(64 << 10) {
        tape.feed(chunk, writer);
    }
    tape.end(Exit::Unknown, writer);
}
