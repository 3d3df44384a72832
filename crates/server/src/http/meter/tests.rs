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

fn room(meter: &Meter) -> bool {
    match meter.poll_room(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.is_ok(),
        Poll::Pending => false,
    }
}

fn begun(longest: usize) -> (Meter, Pool) {
    let pool = Budget::new(0).clients;
    let meter = Meter::new(pool.clone());
    meter.read(b"GET / HTTP/1.1\r\n\r\n");
    meter.begin(longest);
    (meter, pool)
}

#[tokio::test]
async fn a_large_message_has_a_share_however_it_is_cut() {
    let large = 3 * FREE;
    let mut wire = frame(0x81, 10);
    wire.extend(frame(0x89, 5));
    wire.extend(frame(0x82, large));
    // In fragments, with a ping between them.
    wire.extend(frame(0x01, FREE));
    wire.extend(frame(0x89, 5));
    wire.extend(frame(0x80, 1));
    wire.extend(frame(0x81, FREE));
    for size in [1, 7, 4096, FREE] {
        let (meter, pool) = begun(4 * FREE);
        for bytes in wire.chunks(size) {
            assert!(room(&meter));
            meter.read(bytes);
        }
        assert!(meter.take(10).is_none());
        assert!(meter.take(large).is_some());
        assert!(meter.take(FREE + 1).is_some());
        assert!(meter.take(FREE).is_none());
        assert!(meter.take(large).is_none());
        assert_eq!(pool.used(), 0, "in pieces of {size}");
    }
}

#[tokio::test]
async fn without_a_share_nothing_more_is_read_and_small_ones_are() {
    let (meter, pool) = begun(64 << 20);
    let all = pool.take(usize::MAX).await;
    let large = frame(0x81, 2 * FREE);
    meter.read(&frame(0x81, FREE));
    assert!(room(&meter));
    meter.read(&large[..100]);
    assert!(!room(&meter));
    assert_eq!(pool.waiting(), 1);
    drop(all);
    assert!(room(&meter));
    assert_eq!(pool.used(), (2 * FREE * WORK) as i64);
    drop(meter);
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn who_stops_in_a_large_message_makes_room_for_those_who_wait() {
    let (meter, pool) = begun(64 << 20);
    meter.read(&frame(0x81, 2 * FREE)[..100]);
    assert!(room(&meter));
    let waits = tokio::spawn(async move { drop(pool.take(usize::MAX).await) });
    std::future::poll_fn(|context| meter.poll_stopped(context)).await;
    drop(meter);
    waits.await.expect("a share");
}

#[tokio::test]
async fn what_comes_before_it_may_is_refused() {
    let pool = Budget::new(0).clients;
    let meter = Meter::new(pool);
    meter.read(b"GET / HTTP/1.1\r\n\r\n\x81");
    meter.begin(FREE);
    assert!(!room(&meter));
    let (meter, _) = begun(FREE);
    meter.read(&frame(0x89, 126)[..20]);
    assert!(!room(&meter));
}

#[tokio::test]
async fn a_message_of_unknown_length_takes_a_share_of_what_has_come() {
    let (meter, pool) = begun(64 << 20);
    for count in 1..=8 {
        meter.read(&frame(0x01, FREE + 16));
        assert!(room(&meter));
        let come = count * (FREE + 16);
        assert!(pool.used() <= (WORK * 2 * come.max(STEP)) as i64, "{come}: {}", pool.used());
    }
    // It cannot grow while another message waits, so it is abandoned.
    let mut waits = Box::pin(pool.take(usize::MAX));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    meter.read(&frame(0x00, 2 << 20));
    assert!(!room(&meter));
    drop(meter);
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn a_byte_now_and_then_is_slow() {
    let begun = Instant::now();
    let after = |milliseconds: u64| begun + Duration::from_millis(milliseconds);
    let mut pace = Pace::new(begun, 0);
    assert!(!pace.is_slow(after(300), 1, STEP));
    assert!(!pace.is_slow(after(900), 3, STEP));
    assert!(pace.is_slow(after(1200), 4, STEP));
    // A message with a larger share must arrive faster.
    assert!(!pace.is_slow(after(2200), 1 << 20, STEP));
    assert!(!pace.is_slow(after(3200), 9 << 20, 64 << 20));
    assert!(pace.is_slow(after(4200), 10 << 20, 64 << 20));
    assert_eq!((step(FREE + 1, 64 << 20), step(STEP + 1, 64 << 20)), (STEP, 2 * STEP));
    assert_eq!(step(3 << 20, 3 << 20), 3 << 20);
}
