//! Examines 64 bytes of a string at once: one bit for each byte.

use wide::u8x16;

pub(super) struct Marks {
    pub(super) quote: u64,
    pub(super) backslash: u64,
    pub(super) control: u64,
}

/// The quotes, backslashes and control bytes of a block.
#[inline]
pub(super) fn marks(block: &[u8; 64]) -> Marks {
    Marks {
        quote: bits(block, |part| part.simd_eq(u8x16::splat(b'"'))),
        backslash: bits(block, |part| part.simd_eq(u8x16::splat(b'\\'))),
        control: bits(block, |part| part.simd_eq(part.min(u8x16::splat(0x1F)))),
    }
}

/// What may follow a backslash.
pub(super) struct Escapes {
    pub(super) simple: u64,
    /// Followed by four digits.
    pub(super) unicode: u64,
}

/// The bytes of a block that may follow a backslash.
#[inline]
pub(super) fn escapes(block: &[u8; 64]) -> Escapes {
    let simple = |part: u8x16| {
        [b'"', b'\\', b'/', b'b', b'f', b'n', b'r', b't']
            .into_iter()
            .fold(u8x16::splat(0), |found, byte| found | part.simd_eq(u8x16::splat(byte)))
    };
    Escapes {
        simple: bits(block, simple),
        unicode: bits(block, |part| part.simd_eq(u8x16::splat(b'u'))),
    }
}

/// The first quote, backslash or control byte of sixteen, and others after it.
#[inline]
pub(super) fn specials(part: &[u8; 16]) -> u32 {
    let part = u8x16::new(*part);
    let quote = part.simd_eq(u8x16::splat(b'"'));
    let backslash = part.simd_eq(u8x16::splat(b'\\'));
    let control = part.simd_eq(part.min(u8x16::splat(0x1F)));
    (quote | backslash | control).to_bitmask()
}

/// The bytes that a backslash escapes: each byte after an odd run of backslashes. `carry` says on entry
/// whether the previous block ended in such a run, and on return whether this one does.
///
/// Adding the first bit of a run to the run distinguishes runs that start at an odd position from those
/// that start at an even one: the carry of the addition lands after the run, at a position whose parity
/// gives the length.
#[inline]
pub(super) fn escaped(backslash: u64, carry: &mut bool) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = u64::from(*carry);
    let backslash = backslash & !first;
    let follows = backslash << 1 | first;
    let odd_starts = backslash & !EVEN & !follows;
    let (behind_even_runs, overflow) = odd_starts.overflowing_add(backslash);
    *carry = overflow;
    (EVEN ^ (behind_even_runs << 1)) & follows
}

#[inline]
fn bits(block: &[u8; 64], mark: impl Fn(u8x16) -> u8x16) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts
        .iter()
        .rev()
        .fold(0, |bits, part| bits << 16 | u64::from(mark(u8x16::new(*part)).to_bitmask()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, byte by byte.
    fn escaped_slowly(bytes: &[u8], carry: &mut bool) -> u64 {
        let mut found = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if std::mem::take(carry) {
                found |= 1 << at;
            } else if *byte == b'\\' {
                *carry = true;
            }
        }
        found
    }

    #[test]
    fn escapes_are_told_by_parity() {
        let mut state = 1u64;
        let (mut carry, mut slow_carry) = (false, false);
        for _ in 0..100_000 {
            let block: [u8; 64] = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if state >> 61 < 5 { b'\\' } else { b'x' }
            });
            let slow = escaped_slowly(&block, &mut slow_carry);
            assert_eq!(escaped(marks(&block).backslash, &mut carry), slow);
            assert_eq!(carry, slow_carry);
        }
    }
}
