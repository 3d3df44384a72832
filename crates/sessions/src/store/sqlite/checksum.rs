//! Checksums: whether what is read is what was written.
//!
//! A checksum also covers the row's numbers, so a row that claims to be another one is detected too.

use crc32fast::Hasher;

use crate::store::codec::Codec;

/// How a record with a checksum starts.
const FIELD: &str = r#"{"checksum":""#;

/// How a record starts that was written before there were checksums.
const BARE: &str = r#"{"summary":"#;

const DIGITS: usize = 8;

/// One row of a batch.
pub(super) struct BatchRow<'a> {
    pub(super) session: i64,
    pub(super) first: u64,
    pub(super) part: u64,
    pub(super) count: u64,
    /// The length of all parts together.
    pub(super) size: u64,
    pub(super) codec: Codec,
    /// This part, as it is stored.
    pub(super) lines: &'a [u8],
}

impl BatchRow<'_> {
    pub(super) fn checksum(&self) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(&self.session.to_le_bytes());
        for number in [self.first, self.part, self.count, self.size] {
            hasher.update(&number.to_le_bytes());
        }
        // Rows from before there were codecs have checksums without one.
        if self.codec != Codec::Plain {
            hasher.update(&[self.codec.number()]);
        }
        hasher.update(self.lines);
        hasher.finalize()
    }
}

pub(super) fn of_key(key: &str, answer: &str) -> u32 {
    of_texts([key, answer])
}

/// The record as stored in its row, with its checksum as the first field.
pub(super) fn seal(id: &str, state: &str, last: u64, record: &str) -> String {
    let fields = record.strip_prefix('{').unwrap_or(record);
    let checksum = of_record(id, state, last, fields);
    format!("{FIELD}{checksum:0DIGITS$x}\",{fields}")
}

/// Whether a sealed record is as it was written; `None` if it was never sealed.
pub(super) fn is_sealed(id: &str, state: &str, last: u64, record: &str) -> Option<bool> {
    if record.starts_with(BARE) {
        return None;
    }
    let sealed = record.strip_prefix(FIELD).and_then(|rest| rest.split_at_checked(DIGITS));
    Some(sealed.is_some_and(|(checksum, rest)| {
        let fields = rest.strip_prefix("\",");
        fields.is_some_and(|fields| {
            u32::from_str_radix(checksum, 16) == Ok(of_record(id, state, last, fields))
        })
    }))
}

fn of_record(id: &str, state: &str, last: u64, fields: &str) -> u32 {
    of_texts([id, state, &last.to_string(), fields])
}

/// Includes the length of each text: different texts may be equal when concatenated.
fn of_texts<const N: usize>(texts: [&str; N]) -> u32 {
    let mut hasher = Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}
