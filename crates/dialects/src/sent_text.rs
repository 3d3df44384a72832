//! The text that a block's deltas have sent so far, in bounded memory: a block may be long.

/// How much of the end is stored verbatim, to recognise a whole text whose end was trimmed.
const TAIL: usize = 256;

/// A digest of the text sent so far, and its last part verbatim.
#[derive(Clone, Debug)]
pub(crate) struct SentText {
    /// The length of the part that only the digest covers: a multiple of 8 bytes.
    bytes: usize,
    digest: u64,
    /// May start inside a character.
    tail: Vec<u8>,
}

impl Default for SentText {
    fn default() -> Self {
        Self { bytes: 0, digest: START, tail: Vec::new() }
    }
}

const START: u64 = 0xCBF2_9CE4_8422_2325;

/// How many bytes the digest takes in at once.
const WORD: usize = 8;

/// Continues a digest with whole words.
fn digest(start: u64, text: &[u8]) -> u64 {
    let (words, _) = text.as_chunks::<WORD>();
    words.iter().fold(start, |digest, word| {
        // Without the rotation, a difference in the highest bits would stay there.
        (digest.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517C_C1B7_2722_0A95)
    })
}

impl SentText {
    pub(crate) fn of(text: &str) -> Self {
        let mut sent = Self::default();
        sent.add(text);
        sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.tail.is_empty()
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.tail.extend_from_slice(text.as_bytes());
        if self.tail.len() > 2 * TAIL {
            let cut = (self.tail.len() - TAIL) / WORD * WORD;
            self.digest = digest(self.digest, self.tail.get(..cut).unwrap_or_default());
            self.bytes += cut;
            self.tail.drain(..cut);
        }
    }

    /// What the whole text adds to the text sent so far; `None` if it does not start with that. A whole
    /// text that lacks only the end of what was sent adds the empty text.
    pub(crate) fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (begin, rest) = whole.as_bytes().split_at_checked(self.bytes)?;
        if digest(START, begin) != self.digest {
            return None;
        }
        if rest.starts_with(&self.tail) {
            return whole.get(self.bytes + self.tail.len()..);
        }
        let trimmed = !whole.is_empty() && self.tail.starts_with(rest);
        trimmed.then_some("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_was_not_said() {
        let mut sent = SentText::default();
        assert_eq!(sent.rest_of("abc"), Some("abc"));
        sent.add("ä");
        sent.add("b");
        assert_eq!(sent.rest_of("äbc"), Some("c"));
        assert_eq!(sent.rest_of("äb"), Some(""));
        assert_eq!(sent.rest_of("ä"), Some(""));
        assert_eq!(sent.rest_of("äxc"), None);
        assert_eq!(sent.rest_of("ab"), None);
        assert_eq!(sent.rest_of("xé"), None);
        assert_eq!(sent.rest_of(""), None);
    }

    #[test]
    fn long_texts_are_known_by_their_digest() {
        let mut sent = SentText::default();
        (0..1000).for_each(|number| sent.add(&format!("{number}ä ")));
        let whole: String = (0..1001).map(|number| format!("{number}ä ")).collect();
        assert_eq!(sent.rest_of(&whole), Some("1000ä "));
        let all = whole.strip_suffix("1000ä ").unwrap();
        assert_eq!(sent.rest_of(all.trim_end()), Some(""));
        assert_eq!(sent.rest_of(&whole.replacen('0', "1", 1)), None);
        assert!(sent.tail.len() <= 2 * TAIL && sent.bytes > TAIL);
    }
}
