//! What the deltas of a block have said so far, in constant memory: a block may be long.

/// The length and a digest of what was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    bytes: usize,
    digest: u64,
}

impl Default for Said {
    fn default() -> Self {
        Self { bytes: 0, digest: 0xCBF2_9CE4_8422_2325 }
    }
}

impl Said {
    /// This alone was said.
    pub(crate) fn of(text: &str) -> Self {
        let mut said = Self::default();
        said.add(text);
        said
    }

    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// This was said too.
    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.digest = text.bytes().fold(self.digest, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
    }

    /// What the whole text adds to what was said; nothing if it does not begin with that.
    pub(crate) fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (begin, rest) = whole.split_at_checked(self.bytes)?;
        (Self::of(begin).digest == self.digest).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_was_not_said() {
        let mut said = Said::default();
        assert_eq!(said.rest_of("abc"), Some("abc"));
        said.add("ä");
        said.add("b");
        assert_eq!(said.rest_of("äbc"), Some("c"));
        assert_eq!(said.rest_of("äb"), Some(""));
        assert_eq!(said.rest_of("äxc"), None);
        assert_eq!(said.rest_of("ab"), None);
        assert_eq!(said.rest_of("xé"), None);
    }
}
