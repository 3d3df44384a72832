//! Ids that look random but are reproducible: a session always has the same ones.

use uuid::{Builder, Uuid};

#[derive(Debug)]
pub(super) struct Ids {
    seed: u64,
    count: u64,
}

impl Ids {
    /// `run` distinguishes the processes of one session.
    pub(super) fn new(session: &str, run: u64) -> Self {
        let fnv =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let seed = session.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
        Self { seed: mixed(seed.wrapping_add(run)), count: 0 }
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        mixed(self.seed.wrapping_add(self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(super) fn uuid(&mut self) -> Uuid {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// An id of the model API, or of a subagent.
    pub(super) fn short(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.next())
    }
}

/// The finaliser of splitmix64. It is a bijection, so no two counts share an id.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
