//! Ids derived from content: deterministic, and random to anyone else.

use sha2::{Digest as _, Sha256};

/// The first 16 bytes of the text's SHA-256, in hex.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(16).fold(String::with_capacity(36), |mut hex, byte| {
        for nibble in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        hex
    })
}

/// A digest as a version 8 UUID, the version for such ids.
pub(crate) fn uuid(mut hex: String) -> String {
    hex.replace_range(12..13, "8");
    hex.replace_range(16..17, "a");
    dashed(hex)
}

/// 32 hex digits in the form of a UUID.
pub(crate) fn dashed(mut hex: String) -> String {
    for dash in [8, 13, 18, 23] {
        hex.insert(dash, '-');
    }
    hex
}
