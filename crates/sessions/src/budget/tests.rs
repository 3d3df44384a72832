//! Shares are granted in turn, are returned however they are dropped, and never exceed the budget.

use std::task::{Context, Poll, Waker};

use super::*;

const ALL: usize = 16 << 20;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn shares_are_given_in_turn_and_come_back() {
    let pool = Pool::new(ALL);
    let first = pool.take(ALL - UNIT).await;
    assert_eq!(pool.used(), (ALL - UNIT) as i64);
    let mut second = Box::pin(pool.take(ALL));
    let mut third = Box::pin(pool.take(UNIT));
    assert!(poll(second.as_mut()).is_pending());
    // There would be room for it, but it is not its turn: large requests never starve.
    assert!(poll(third.as_mut()).is_pending());
    assert_eq!((pool.waiting(), pool.waits()), (2, 2));
    drop(first);
    let Poll::Ready(second) = poll(second.as_mut()) else { panic!("its turn") };
    assert!(poll(third.as_mut()).is_pending());
    drop(second);
    assert!(poll(third.as_mut()).is_ready());
    drop(third);
    assert_eq!((pool.used(), pool.waiting()), (0, 0));
}

#[tokio::test]
async fn whoever_gives_up_leaves_nothing_behind() {
    let pool = Pool::new(ALL);
    let all = pool.take(usize::MAX).await;
    assert_eq!(pool.used(), ALL as i64);
    let mut waits = Box::pin(pool.take(ALL));
    assert!(poll(waits.as_mut()).is_pending());
    assert!(pool.take_now(1).is_none());
    drop(waits);
    assert_eq!(pool.waiting(), 0);
    assert!(pool.take_within(UNIT, Duration::ZERO).await.is_none());
    assert_eq!(pool.refusals(), 1);
    drop(all);
    assert!(pool.take_now(ALL).is_some());
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn bytes_hold_their_share_to_the_last_slice() {
    let pool = Pool::new(ALL);
    let bytes = pool.take(ALL).await.hold(Bytes::from_static(b"ab"));
    let slice = bytes.slice(1..);
    drop(bytes);
    assert_eq!(pool.used(), ALL as i64);
    drop(slice);
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn a_share_grows_only_while_nobody_waits() {
    let pool = Pool::new(ALL);
    let mut share = pool.take(UNIT).await;
    assert!(share.grow(3 * UNIT) && share.grow(UNIT));
    assert_eq!(pool.used(), (3 * UNIT) as i64);
    let mut waits = Box::pin(pool.take(ALL));
    assert!(poll(waits.as_mut()).is_pending());
    assert!(!share.grow(4 * UNIT));
    assert_eq!((pool.used(), pool.refusals()), ((3 * UNIT) as i64, 1));
    // A task that cannot grow releases its share, and the other one continues.
    drop(share);
    assert!(poll(waits.as_mut()).is_ready());
    drop(waits);
    let mut share = pool.take(UNIT).await;
    assert!(share.grow(usize::MAX), "all of it is enough");
    drop(share);
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn what_clients_hold_keeps_no_agent_waiting() {
    let budget = Budget::new(0);
    let _all = budget.clients.take(usize::MAX).await;
    assert!(budget.work.take_now(usize::MAX).is_some());
    let total = budget.work.total() + budget.clients.total() + budget.read.total();
    assert!(total <= LEAST);
}

/// Several whole messages together never take more than the largest takes alone, or than the pool.
#[tokio::test]
async fn messages_that_take_all_of_a_part_come_one_after_the_other() {
    const MESSAGE: usize = 60 << 20;
    let budget = Budget::default();
    for pool in [&budget.clients, &budget.work] {
        let first = pool.take(WORK * MESSAGE).await;
        let mut others: Vec<_> = (0..3).map(|_| Box::pin(pool.take(WORK * MESSAGE))).collect();
        let mut held = vec![first];
        for next in 0..others.len() {
            assert_eq!(pool.used(), pool.total() as i64);
            assert!(others[next..].iter_mut().all(|other| poll(other.as_mut()).is_pending()));
            assert!(pool.take_now(SMALL).is_none());
            held.clear();
            let Poll::Ready(share) = poll(others[next].as_mut()) else { panic!("its turn") };
            held.push(share);
        }
    }
    // Smaller ones: as many as fit.
    let third = budget.clients.total() / 3;
    let shares = [budget.clients.take_now(third), budget.clients.take_now(third)];
    assert!(shares.iter().all(Option::is_some));
    assert!(budget.clients.take_now(2 * third).is_none());
}
