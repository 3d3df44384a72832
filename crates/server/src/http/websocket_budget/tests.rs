//! Messages are counted on the wire, however it is split.

use std::task::Waker;

use agentwire_sessions::budget::Budget;

use super::*;

fn frame(first: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 127];
    frame.extend((length as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + length, b'a');
    frame
}

fn room(budget: &WebSocketBudget) -> bool {
    match budget.poll_room(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.is_ok(),
        Poll::Pending => false,
    }
}

fn started(longest: usize) -> (WebSocketBudget, Pool) {
    let pool = Budget::new(0).clients;
    let budget = WebSocketBudget::new(pool.clone());
    budget.read(b"GET / HTTP/1.1\r\n\r\n");
    budget.start_frames(longest);
    (budget, pool)
}

#[tokio::test]
async fn a_large_message_has_a_share_however_it_is_cut() {
    let large = 3 * SHARE_FREE_BYTES;
    let mut wire = frame(0x81, 10);
    wire.extend(frame(0x89, 5));
    wire.extend(frame(0x82, large));
    // In fragments, with a ping between them.
    wire.extend(frame(0x01, SHARE_FREE_BYTES));
    wire.extend(frame(0x89, 5));
    wire.extend(frame(0x80, 1));
    wire.extend(frame(0x81, SHARE_FREE_BYTES));
    for size in [1, 7, 4096, SHARE_FREE_BYTES] {
        let (budget, pool) = started(4 * SHARE_FREE_BYTES);
        for bytes in wire.chunks(size) {
            assert!(room(&budget));
            budget.read(bytes);
        }
        assert!(budget.take_share(10).is_none());
        assert!(budget.take_share(large).is_some());
        assert!(budget.take_share(SHARE_FREE_BYTES + 1).is_some());
        assert!(budget.take_share(SHARE_FREE_BYTES).is_none());
        assert!(budget.take_share(large).is_none());
        assert_eq!(pool.used(), 0, "in pieces of {size}");
    }
}

#[tokio::test]
async fn without_a_share_nothing_more_is_read_and_small_ones_are() {
    let (budget, pool) = started(64 << 20);
    let all = pool.take(usize::MAX).await;
    let large = frame(0x81, 2 * SHARE_FREE_BYTES);
    budget.read(&frame(0x81, SHARE_FREE_BYTES));
    assert!(room(&budget));
    budget.read(&large[..100]);
    assert!(!room(&budget));
    assert_eq!(pool.waiting(), 1);
    drop(all);
    assert!(room(&budget));
    assert_eq!(pool.used(), (2 * SHARE_FREE_BYTES * WORK) as i64);
    drop(budget);
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn who_stops_in_a_large_message_makes_room_for_those_who_wait() {
    let (budget, pool) = started(64 << 20);
    budget.read(&frame(0x81, 2 * SHARE_FREE_BYTES)[..100]);
    assert!(room(&budget));
    let waits = tokio::spawn(async move { drop(pool.take(usize::MAX).await) });
    std::future::poll_fn(|context| budget.poll_stalled(context)).await;
    drop(budget);
    waits.await.expect("a share");
}

#[tokio::test]
async fn what_comes_before_it_may_is_refused() {
    let pool = Budget::new(0).clients;
    let budget = WebSocketBudget::new(pool);
    budget.read(b"GET / HTTP/1.1\r\n\r\n\x81");
    budget.start_frames(SHARE_FREE_BYTES);
    assert!(!room(&budget));
    let (budget, _) = started(SHARE_FREE_BYTES);
    budget.read(&frame(0x89, 126)[..20]);
    assert!(!room(&budget));
}

#[tokio::test]
async fn a_message_of_unknown_length_takes_a_share_of_what_has_come() {
    let (budget, pool) = started(64 << 20);
    for count in 1..=8 {
        budget.read(&frame(0x01, SHARE_FREE_BYTES + 16));
        assert!(room(&budget));
        let received = count * (SHARE_FREE_BYTES + 16);
        assert!(
            pool.used() <= (WORK * 2 * received.max(FIRST_SHARE)) as i64,
            "{received}: {}",
            pool.used()
        );
    }
    // It cannot grow while another message waits, so it is abandoned.
    let mut waits = Box::pin(pool.take(usize::MAX));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    budget.read(&frame(0x00, 2 << 20));
    assert!(!room(&budget));
    drop(budget);
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn a_byte_now_and_then_is_slow() {
    let started = Instant::now();
    let after = |milliseconds: u64| started + Duration::from_millis(milliseconds);
    let mut pace = Pace::new(started, 0);
    assert!(!pace.is_too_slow(after(300), 1, FIRST_SHARE));
    assert!(!pace.is_too_slow(after(900), 3, FIRST_SHARE));
    assert!(pace.is_too_slow(after(1200), 4, FIRST_SHARE));
    // A message with a larger share must arrive faster.
    assert!(!pace.is_too_slow(after(2200), 1 << 20, FIRST_SHARE));
    assert!(!pace.is_too_slow(after(3200), 9 << 20, 64 << 20));
    assert!(pace.is_too_slow(after(4200), 10 << 20, 64 << 20));
    assert_eq!(
        (share_size(SHARE_FREE_BYTES + 1, 64 << 20), share_size(FIRST_SHARE + 1, 64 << 20)),
        (FIRST_SHARE, 2 * FIRST_SHARE)
    );
    assert_eq!(share_size(3 << 20, 3 << 20), 3 << 20);
}
