//! Attaches are sent one after the other, even if earlier readers leave.

use std::task::Poll;

use futures_util::poll;

use super::*;

/// A child whose lines the test reads; it answers through the router.
fn child() -> (Arc<Child>, mpsc::Receiver<String>) {
    let (lines, sent) = mpsc::channel(4);
    let child = Child {
        pid: 0,
        router: Arc::new(Router::new(lines.downgrade())),
        lines,
        turn: Arc::default(),
        closing: CancellationToken::new(),
        waiter: Mutex::default(),
        name: "the test".to_owned(),
    };
    (Arc::new(child), sent)
}

fn attached(number: u64, after: u64) -> String {
    attach(&SessionId::from("s"), after, Json::of(&number))
}

#[tokio::test]
async fn an_attach_waits_for_the_previous_reply() {
    let (child, mut sent) = child();
    let session = SessionId::from("s");
    let mut late = Box::pin(child.follow(&session, 100));
    let mut early = Box::pin(child.follow(&session, 7));
    assert!(poll!(&mut late).is_pending() && poll!(&mut early).is_pending());
    assert_eq!(sent.try_recv(), Ok(attached(1, 100)));
    assert!(sent.try_recv().is_err(), "the child could carry it out first");
    child.router.route(r#"{"id":1,"reply":{}}"#);
    let Poll::Ready(Ok(_late)) = poll!(&mut late) else { panic!("it is attached") };
    assert!(poll!(&mut early).is_pending());
    assert_eq!(sent.try_recv(), Ok(attached(2, 7)));
    child.router.route(r#"{"id":2,"reply":{}}"#);
    assert!(matches!(poll!(&mut early), Poll::Ready(Ok(_))));
}

#[tokio::test]
async fn a_reader_that_leaves_early_is_detached() {
    let (child, mut sent) = child();
    let session = SessionId::from("s");
    let mut left = Box::pin(child.follow(&session, 100));
    assert!(poll!(&mut left).is_pending());
    drop(left);
    let mut stays = Box::pin(child.follow(&session, 7));
    assert!(poll!(&mut stays).is_pending());
    let detach = r#"{"command":"detach","sessionId":"s"}"#;
    assert_eq!(sent.try_recv(), Ok(attached(1, 100)));
    assert_eq!(sent.try_recv().as_deref(), Ok(detach));
    assert!(sent.try_recv().is_err());
    // The child may have processed the lines in any order, so the detach is sent again.
    child.router.route(r#"{"id":1,"reply":{}}"#);
    assert!(poll!(&mut stays).is_pending());
    assert_eq!(sent.try_recv().as_deref(), Ok(detach));
    assert_eq!(sent.try_recv(), Ok(attached(2, 7)));
    child.router.route(r#"{"id":2,"reply":{}}"#);
    assert!(matches!(poll!(&mut stays), Poll::Ready(Ok(_))));
}

#[tokio::test]
async fn an_unsent_attach_blocks_no_one() {
    let (child, mut sent) = child();
    let (session, full) = (SessionId::from("s"), "x".to_owned());
    while child.lines.try_send(full.clone()).is_ok() {}
    let mut left = Box::pin(child.follow(&session, 100));
    assert!(poll!(&mut left).is_pending());
    drop(left);
    while sent.try_recv().is_ok() {}
    let mut stays = Box::pin(child.follow(&session, 7));
    assert!(poll!(&mut stays).is_pending());
    assert_eq!(sent.try_recv(), Ok(attached(1, 7)));
}

#[tokio::test]
async fn a_new_reader_prevents_a_detach() {
    let (child, mut sent) = child();
    let session = SessionId::from("s");
    child.leave_unread(&session);
    assert!(sent.try_recv().is_ok_and(|line| line.contains("detach")));
    let (_reader, _) = child.router.join(&session, 0);
    child.leave_unread(&session);
    assert!(sent.try_recv().is_err());
}
