use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

fn lines(numbers: &[u64]) -> EventLines {
    let texts: Vec<_> = numbers.iter().map(|seq| (*seq, format!("{{\"seq\":{seq}}}"))).collect();
    EventLines::of(texts.iter().map(|(seq, text)| (*seq, text.as_str())))
}

/// What a reader has received.
#[derive(Default)]
struct Read {
    events: Vec<u64>,
    gaps: Vec<(u64, u64)>,
}

impl Read {
    fn note(&mut self, updates: Vec<Update>) {
        for update in updates {
            match update {
                Update::Events(lines) => {
                    for (seq, text) in lines.iter() {
                        assert_eq!(text, format!("{{\"seq\":{seq}}}"));
                        self.events.push(seq);
                    }
                }
                Update::Gap(Gap::Skipped { from, to }) => self.gaps.push((from, to)),
                Update::Gap(Gap::Forgotten { .. }) | Update::Lost(_) | Update::Back => {
                    panic!("{update:?}")
                }
            }
        }
    }
}

#[test]
fn a_missing_number_is_a_gap_the_second_time() {
    let mut cursor = Cursor::new(2);
    let mut read = Read::default();
    let mut advance = |cursor: &mut Cursor, numbers: &[u64]| {
        let mut new = Vec::new();
        let advanced = cursor.advance(&lines(numbers), &mut new);
        read.note(new);
        advanced
    };
    assert_eq!(advance(&mut cursor, &[1, 2, 3, 4]), Ok(()));
    assert_eq!(advance(&mut cursor, &[3, 5, 8]), Err(Jump { wanted: 6, came: 8 }));
    // A later event came, so the one before may exist after all.
    assert_eq!(advance(&mut cursor, &[9]), Err(Jump { wanted: 6, came: 9 }));
    assert_eq!(advance(&mut cursor, &[7, 8, 9]), Ok(()));
    assert_eq!((read.events, read.gaps), (vec![3, 4, 5, 7, 8, 9], vec![(6, 6)]));
}

#[test]
fn with_a_profile_missing_numbers_are_no_gap() {
    let mut new = Vec::new();
    let mut cursor = Cursor::new(0);
    cursor.expect_all(false);
    assert_eq!(cursor.advance(&lines(&[2, 2, 5, 1, 9]), &mut new), Ok(()));
    let mut read = Read::default();
    read.note(new);
    assert_eq!((read.events, read.gaps), (vec![2, 5, 9], vec![]));
}

proptest! {
    /// The log has some numbers and lacks others. Connections start at or before the requested position,
    /// break anywhere, repeat some events and leave some out. In the end the reader has every event of the
    /// log once and in order, and every missing number is in a gap.
    #[test]
    fn nothing_is_lost_repeated_or_hidden(
        log in btree_set(1_u64..60, 1..50),
        connections in vec((0_u64..10, 1_usize..40, vec(0_usize..40, 0..6), 1_usize..7), 0..12),
    ) {
        let last = *log.last().unwrap();
        let mut cursor = Cursor::new(0);
        let mut read = Read::default();
        // Only the first connections leave events out; the last ones are complete.
        let sound = (0..200).map(|_| (0, usize::MAX, Vec::new(), 5));
        for (rewind, cut, doubled, size) in connections.into_iter().chain(sound) {
            let after = cursor.position().saturating_sub(rewind);
            let mut shown: Vec<u64> = log.iter().copied().filter(|seq| *seq > after).collect();
            for at in doubled {
                if let Some(seq) = shown.get(at).copied() {
                    shown.insert(at, seq);
                }
            }
            shown.truncate(cut);
            for piece in shown.chunks(size) {
                let mut new = Vec::new();
                let advanced = cursor.advance(&lines(piece), &mut new);
                read.note(new);
                if advanced.is_err() {
                    break;
                }
            }
            if cursor.position() == last {
                break;
            }
        }
        prop_assert_eq!(&read.events, &log.iter().copied().collect::<Vec<_>>());
        let reported: BTreeSet<u64> = read.gaps.iter().flat_map(|(from, to)| *from..=*to).collect();
        let missing: BTreeSet<u64> = (1..=last).filter(|seq| !log.contains(seq)).collect();
        prop_assert_eq!(reported, missing);
    }

    /// Whatever connections leave out, the reader receives events in order and without repeats, and every
    /// skipped number is in a gap.
    #[test]
    fn events_are_in_order_and_gaps_complete(batches in vec(vec(1_u64..40, 0..12), 0..40)) {
        let mut cursor = Cursor::new(0);
        let mut read = Read::default();
        for batch in batches {
            let mut new = Vec::new();
            let _ = cursor.advance(&lines(&batch), &mut new);
            read.note(new);
        }
        prop_assert!(read.events.is_sorted_by(|a, b| a < b));
        let reported = read.gaps.iter().flat_map(|(from, to)| *from..=*to);
        let known: BTreeSet<u64> = read.events.iter().copied().chain(reported).collect();
        prop_assert_eq!(known, (1..=cursor.position()).collect::<BTreeSet<_>>());
    }
}
