//! Lines reach their call or readers, slow readers cost no more than the bound, and all learn of the
//! child's end.

use super::*;

fn event(seq: u64, padding: usize) -> String {
    format!(
        r#"{{"id":"e","sessionId":"s","seq":{seq},"type":"turnFailed","error":"words","pad":"{}"}}"#,
        "x".repeat(padding)
    )
}

fn router() -> (Router, mpsc::Sender<String>, mpsc::Receiver<String>) {
    let (lines, sent) = mpsc::channel(4);
    (Router::new(lines.downgrade()), lines, sent)
}

#[tokio::test]
async fn a_slow_reader_is_dropped_and_others_continue() {
    let (router, _lines, mut sent) = router();
    let session = SessionId::from("s");
    let (slow, after) = router.join(&session, 0);
    assert_eq!(after, 0);
    let (quick, _) = router.join(&session, 0);
    // Events before the child's reply are not for these readers.
    router.route(&event(7, 0));
    for reader in [&slow, &quick] {
        let attaching = Attaching {
            session: session.clone(),
            reader: Arc::clone(reader),
            _turn: Arc::new(tokio::sync::Mutex::default()).lock_owned().await,
        };
        let (number, _replied) = router.call(Some(attaching)).unwrap();
        router.route(&format!(r#"{{"id":{number},"reply":{{}}}}"#));
    }
    let mut seq = 0;
    let mut read = 0;
    while slow.state().then.is_none() {
        seq += 1;
        router.route(&event(seq, 100_000));
        let lines = quick.next().await.unwrap().unwrap();
        assert_eq!(lines.first(), read + 1);
        read = lines.last();
    }
    assert_eq!(read, seq);
    assert!(slow.state().bytes <= BOUND);
    // A third reader starts at the beginning, so the child must show the session from there.
    assert_eq!(router.join(&session, 0).1, 0);
    let mut last = 0;
    while let Some(lines) = slow.next().await.unwrap() {
        assert_eq!(lines.first(), last + 1);
        last = lines.last();
    }
    assert_eq!(last, seq - 1);
    assert!(sent.try_recv().is_err());
}

#[tokio::test]
async fn dropping_the_last_reader_detaches() {
    let (router, _lines, mut sent) = router();
    let session = SessionId::from("s");
    let (queue, _) = router.join(&session, 0);
    queue.attach();
    router.route(&event(1, BOUND));
    assert!(sent.try_recv().is_err());
    router.route(&event(2, 1));
    assert_eq!(sent.try_recv().unwrap(), r#"{"command":"detach","sessionId":"s"}"#);
    assert!(!router.state().readers.contains_key(&session));
    assert_eq!(queue.next().await.unwrap().map(|lines| lines.last()), Some(1));
    assert_eq!(queue.next().await, Ok(None));
    router.leave(&session, &queue);
    assert!(sent.try_recv().is_err());
}

#[tokio::test]
async fn the_childs_end_reaches_all() {
    let (router, _lines, _sent) = router();
    let session = SessionId::from("s");
    let (queue, _) = router.join(&session, 0);
    let (_, replied) = router.call(None).unwrap();
    let why = AgentError::broken("x", "gone");
    router.end(&why);
    assert_eq!(replied.await.unwrap(), Err(why.clone()));
    assert_eq!(queue.next().await, Err(why.clone()));
    assert_eq!(router.call(None).map(drop), Err(why));
}
