//! How the lines of a batch are stored: compressed, with a dictionary of ordinary event lines.
//!
//! Events repeat themselves: each carries the agent's own line beside what was read from it, and all have
//! the same field names. The dictionary makes even one small event compress well. Chosen by measurement:
//! `docs/decisions/0019-compressed-batches.md`.

#[cfg(test)]
mod tests;

use std::io::Cursor;
use std::sync::{LazyLock, Mutex, PoisonError};

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// Higher levels take much longer and save little.
const LEVEL: i32 = 1;

/// Never changes: stored batches need it. A better one gets its own [`Codec`].
static DICTIONARY_1: &[u8] = include_bytes!("dictionary_1.zstd");

static TO_WRITE: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY_1, LEVEL));

static TO_READ: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY_1));

/// Decoders that are not in use. Making one costs more than reading a small batch.
static DECODERS: Mutex<Vec<Decompressor<'static>>> = Mutex::new(Vec::new());

/// How many of them stay.
const DECODERS_KEPT: usize = 4;

/// How bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As they are.
    Plain,
    /// A zstd frame that needs `dictionary_1.zstd`.
    Zstd1,
}

impl Codec {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Zstd1 => 1,
        }
    }

    /// `None` if a newer version defines it.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        [Self::Plain, Self::Zstd1].into_iter().find(|codec| codec.number() == number)
    }

    /// Appends what was stored to `lines`: exactly `length` bytes. Returns whether that worked; if not,
    /// `lines` is as before.
    pub(super) fn decode(self, stored: &[u8], length: usize, lines: &mut Vec<u8>) -> bool {
        match self {
            Self::Plain => {
                if stored.len() == length {
                    lines.extend_from_slice(stored);
                }
                stored.len() == length
            }
            Self::Zstd1 => decompress(stored, length, lines),
        }
    }
}

fn decompress(stored: &[u8], length: usize, lines: &mut Vec<u8>) -> bool {
    let kept = DECODERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let decoder = kept.map_or_else(|| Decompressor::with_prepared_dictionary(&TO_READ), Ok);
    let Ok(mut decoder) = decoder else { return false };
    let before = lines.len();
    lines.reserve(length);
    let mut target = Cursor::new(&mut *lines);
    target.set_position(before as u64);
    let is_whole = decoder.decompress_to_buffer(stored, &mut target).is_ok_and(|it| it == length);
    if !is_whole {
        lines.truncate(before);
    }
    let mut decoders = DECODERS.lock().unwrap_or_else(PoisonError::into_inner);
    if decoders.len() < DECODERS_KEPT {
        decoders.push(decoder);
    }
    is_whole
}

/// Compresses, and reuses its memory.
pub(super) struct Encoder {
    /// `None` if there is no memory for one; then nothing is compressed.
    compressor: Option<Compressor<'static>>,
    buffer: Vec<u8>,
}

impl Encoder {
    pub(super) fn new() -> Self {
        let compressor = Compressor::with_prepared_dictionary(&TO_WRITE).ok();
        let compressor = compressor.and_then(|mut compressor| {
            // The codec says which dictionary it is.
            compressor.include_dictid(false).ok().map(|()| compressor)
        });
        Self { compressor, buffer: Vec::new() }
    }

    /// How to store these bytes, and what to store.
    pub(super) fn encode<'a>(&'a mut self, lines: &'a [u8]) -> (Codec, &'a [u8]) {
        if let Some(compressor) = &mut self.compressor {
            self.buffer.clear();
            self.buffer.reserve(zstd::zstd_safe::compress_bound(lines.len()));
            let compressed = compressor.compress_to_buffer(lines, &mut self.buffer);
            if compressed.is_ok_and(|length| length < lines.len()) {
                return (Codec::Zstd1, &self.buffer);
            }
        }
        (Codec::Plain, lines)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}
