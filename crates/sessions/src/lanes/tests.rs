//! What one lane does to the others, and to those who use them.

use std::sync::mpsc;

use super::*;

/// Waits as for a disk: with its thread.
fn hold() -> (mpsc::SyncSender<()>, impl Future<Output = bool> + Send) {
    let (release, held) = mpsc::sync_channel(1);
    (release, async move {
        held.recv().expect("it is released");
        is_lane()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lane_that_waits_holds_up_neither_other_lanes_nor_clients() {
    let lanes = Lanes::of(2);
    let (release, held) = hold();
    let first = lanes.spawn(held);
    assert!(lanes.spawn(async { is_lane() }).await.expect("the other lane works"));
    assert!(!tokio::spawn(async { is_lane() }).await.expect("clients are served"));
    let third = lanes.spawn(async {});
    assert!(!third.is_finished(), "it is in the lane that waits");
    release.send(()).expect("it waits");
    assert!(first.await.expect("it ends"));
    third.await.expect("its turn comes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_that_panics_leaves_its_lane_to_the_next() {
    let lanes = Lanes::of(1);
    assert!(lanes.spawn(async { panic!("on purpose") }).await.is_err());
    assert!(lanes.spawn(async { is_lane() }).await.expect("the lane works"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_work_leaves_the_lane_to_other_sessions() {
    let lanes = Lanes::of(1);
    let (release, held) = hold();
    let work = lanes.spawn(async move {
        tokio::task::block_in_place(|| Handle::current().block_on(held));
    });
    lanes.spawn(async move { release.send(()).expect("it waits") }).await.expect("it runs");
    work.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_may_drop_the_lanes() {
    let lanes = Lanes::of(1);
    lanes.spawn(async {}).await.expect("it ends");
    tokio::spawn(async move { drop(lanes) }).await.expect("it does not panic");
}

#[tokio::test]
async fn a_runtime_with_a_single_thread_has_no_lanes() {
    let lanes = Lanes::of(1);
    let caller = thread::current().id();
    let session = lanes.spawn(async { (is_lane(), thread::current().id()) });
    assert_eq!(session.await.expect("it ends"), (false, caller));
}
