use proptest::prelude::*;

use super::*;

fn event(seq: u64) -> String {
    let session = "0b7b2a63-65a1-4b3c-9f0e-5f2f8b0f4c11";
    format!(
        "{{\"id\":\"{session}-{seq}\",\"sessionId\":\"{session}\",\"seq\":{seq},\"timestamp\":\
         \"2026-01-02T03:04:05.678Z\",\"type\":\"textChunk\",\"content\":\"one more word\",\
         \"isComplete\":false,\"agentId\":\"main\",\"native\":[{{\"dialect\":\"claude\",\"stream\":\
         \"stdout\",\"json\":{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\
         \"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"one more word\"}}}}}}}}]}}\n"
    )
}

fn round(lines: &[u8]) -> (Codec, usize) {
    let mut encoder = Encoder::new();
    let (codec, stored) = encoder.encode(lines);
    let mut read = b"before".to_vec();
    assert!(codec.decode(stored, lines.len(), &mut read));
    assert_eq!(read.strip_prefix(b"before"), Some(lines));
    (codec, stored.len())
}

#[test]
fn one_event_compresses_well_and_many_better() {
    let one = event(7);
    let (codec, stored) = round(one.as_bytes());
    assert_eq!(codec, Codec::Zstd1);
    assert!(stored * 3 < one.len(), "{} became {stored}", one.len());
    let many: String = (1..1000).map(event).collect();
    let (_, stored) = round(many.as_bytes());
    assert!(stored * 10 < many.len(), "{} became {stored}", many.len());
}

#[test]
fn a_codec_keeps_its_number() {
    for (number, codec) in [(0, Some(Codec::Plain)), (1, Some(Codec::Zstd1)), (2, None)] {
        assert_eq!(Codec::from_number(number), codec);
        assert!(codec.is_none_or(|codec| codec.number() == number));
    }
}

/// Stored events depend on every byte of it.
#[test]
fn the_first_dictionary_never_changes() {
    assert_eq!(DICTIONARY_1.len(), 32_768);
    assert_eq!(crc32fast::hash(DICTIONARY_1), 0x919f7dac_u32);
}

#[test]
fn what_does_not_compress_is_stored_as_it_is() {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(5_000)
    .collect();
    assert_eq!(round(&noise), (Codec::Plain, noise.len()));
}

#[test]
fn a_frame_of_another_length_is_refused_and_leaves_nothing() {
    let lines = event(1).repeat(3);
    let mut encoder = Encoder::new();
    let (codec, stored) = encoder.encode(lines.as_bytes());
    for length in [0, 1, lines.len() - 1, lines.len() + 1, 1 << 20] {
        let mut read = b"before".to_vec();
        assert!(!codec.decode(stored, length, &mut read), "{length}");
        assert_eq!(read, b"before");
    }
}

proptest! {
    #[test]
    fn any_bytes_come_back(lines in proptest::collection::vec(any::<u8>(), 0..4096)) {
        round(&lines);
    }

    /// Whatever a damaged frame holds: no more than the length, no panic, and the decoder works afterwards.
    #[test]
    fn a_damaged_frame_is_bounded(at in 0_usize..2_000, flip in 1_u8.., length in 0_usize..100_000) {
        let lines = event(1) + &event(2);
        let mut encoder = Encoder::new();
        let (codec, stored) = encoder.encode(lines.as_bytes());
        let mut stored = stored.to_vec();
        let at = at % stored.len();
        stored[at] ^= flip;
        let mut read = Vec::new();
        let is_read = codec.decode(&stored, length, &mut read);
        prop_assert_eq!(read.len(), if is_read { length } else { 0 });
        round(lines.as_bytes());
    }
}
