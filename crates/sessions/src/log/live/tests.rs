//! How many durable events stay in memory.

use bytes::Bytes;

use super::*;

fn batch(first: u64, size: usize) -> Batch {
    let mut lines = vec![b'x'; size - 1];
    lines.push(b'\n');
    Batch { first, count: 1, lines: Bytes::from(lines) }
}

fn live(name: &str) -> Arc<Live> {
    Arc::new(Live::new(name.into(), 0))
}

fn show(tails: &mut Tails, live: &Arc<Live>, batch: Batch) {
    tails.publish(live, Some(batch), false, || ());
}

#[test]
fn a_tail_has_the_last_events_and_no_more_than_its_share() {
    let live = live("a");
    let mut tails = Tails::default();
    for first in 1..=100 {
        show(&mut tails, &live, batch(first, 10_000));
        assert!(tails.bytes <= OF_ONE);
        assert_eq!(live.after(first - 1).unwrap().0.first, first);
        assert!(live.after(first).is_none());
    }
    assert!(live.after(50).is_none(), "only in the store");
    assert_eq!(live.after(90).unwrap().0.first, 91);
    // The newest batch stays, however large, until there is a newer one.
    show(&mut tails, &live, batch(101, OF_ONE + 1));
    assert!(live.after(99).is_none(), "only in the store");
    assert_eq!(live.after(100).unwrap().0.first, 101);
    show(&mut tails, &live, batch(102, 10_000));
    assert!(live.after(100).is_none(), "too large to keep");
    assert_eq!(live.after(101).unwrap().0.first, 102);
    assert!(tails.bytes <= OF_ONE);
    // A batch larger than the limit for all sessions does not stay.
    show(&mut tails, &live, batch(103, OF_ALL + 1));
    assert!(live.after(102).is_none(), "too large to keep");
    assert_eq!(tails.bytes, 0);
    assert_eq!(live.progress.borrow().last, 103);
}

#[test]
fn an_idle_session_keeps_little() {
    let live = live("a");
    let mut tails = Tails::default();
    for first in 1..=10 {
        show(&mut tails, &live, batch(first, 10_000));
    }
    tails.idle(&live);
    assert!(tails.bytes <= OF_IDLE && tails.bytes == live.tail().bytes);
    assert!(live.after(5).is_none(), "only in the store");
    assert_eq!(live.after(9).unwrap().0.first, 10);
    show(&mut tails, &live, batch(11, OF_IDLE + 1));
    tails.idle(&live);
    assert!(live.after(10).is_none() && tails.bytes == 0, "only in the store");
    tails.forget(&live);
    tails.idle(&live);
    assert_eq!(tails.bytes, 0);
}

#[test]
fn the_quietest_sessions_give_way() {
    let mut tails = Tails::default();
    let sessions: Vec<_> = (0..200).map(|name| live(&name.to_string())).collect();
    for session in &sessions {
        show(&mut tails, session, batch(1, 200_000));
        // The first session is busy all the time.
        let busy = sessions.first().unwrap();
        let next = busy.progress.borrow().last + 1;
        show(&mut tails, busy, batch(next, 10_000));
        assert!(tails.bytes <= OF_ALL);
    }
    let kept = |session: &Arc<Live>| session.after(session.progress.borrow().last - 1).is_some();
    assert!(kept(&sessions[0]) && kept(&sessions[199]));
    assert!(!kept(&sessions[1]) && !kept(&sessions[20]));
    for session in &sessions {
        tails.forget(session);
    }
    assert_eq!(tails.bytes, 0);
    assert!(tails.order.is_empty());
}
