//! The text that a block's deltas have sent so far, in bounded memory: a block may be long.

/// How much of the end is stored verbatim, to recognise a whole text whose end was trimmed.
const TAIL: usize = 256;

/// A digest of the text sent so far, and its last part verbatim.
#[derive(Clone, Debug)]
pub(crate) struct SentText {
    /// The length of the part that only the digest covers.
    bytes: usize,
    digest: u64,
    tail: String,
}

impl Default for SentText {
    fn default() -> Self {
        Self { bytes: 0, digest: START, tail: String::new() }
    }
}

const START: u64 = 0xCBF2_9CE4_8422_2325;

fn digest(start: u64, text: &str) -> u64 {
    text.bytes()
        .fold(start, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
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
        self.tail.push_str(text);
        if self.tail.len() > 2 * TAIL {
            let cut = self.tail.floor_char_boundary(self.tail.len() - TAIL);
            let tail = self.tail.split_off(cut);
            self.digest = digest(self.digest, &self.tail);
            self.bytes += self.tail.len();
            self.tail = tail;
        }
    }

    /// What the whole text adds to the text sent so far; `None` if it does not start with that. A whole
    /// text that lacks only the end of what was sent adds the empty text.
    pub(crate) fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (begin, rest) = whole.split_at_checked(self.bytes)?;
        if digest(START, begin) != self.digest {
            return None;
        }
        rest.strip_prefix(&*self.tail).or_else(|| {
            let trimmed = !whole.is_empty() && self.tail.starts_with(rest);
            trimmed.then_some("")
        })
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
        assert!(sent.tail.len() <= 2 * TAIL);
    }
}
