//! How a connection ends for clients that read slowly, or not at all.

use agentwire_sessions::budget::Budget;
use tokio::io::{AsyncReadExt as _, DuplexStream, duplex, empty};
use tokio::task::JoinHandle;

use super::*;

/// How much a client is sent, and how much of it is on its way at once.
const OUTPUT: usize = 64 << 10;
const ON_THE_WAY: usize = 8 << 10;

/// Serves the end of a connection to this client. Returns how many bytes it got.
async fn got(client: impl FnOnce(DuplexStream) -> JoinHandle<usize>) -> usize {
    let (theirs, ours) = duplex(ON_THE_WAY);
    let connection = Connection::lines(empty(), ours, Budget::new(1 << 20).work);
    connection.outgoing.push(&[b'x'; OUTPUT - 1]);
    let client = client(theirs);
    finish(connection, Farewell::default()).await;
    client.await.expect("the client does not fail")
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_gets_all_that_is_left() {
    let slow = |mut stream: DuplexStream| {
        tokio::spawn(async move {
            let (mut count, mut buffer) = (0, [0; ON_THE_WAY]);
            loop {
                tokio::time::sleep(FAREWELL * 3 / 4).await;
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return count,
                    Ok(read) => count += read,
                }
            }
        })
    };
    assert_eq!(got(slow).await, OUTPUT);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_left() {
    let begun = Instant::now();
    let idle = |mut stream: DuplexStream| {
        tokio::spawn(async move {
            tokio::time::sleep(SLOW_FAREWELL).await;
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap_or_default()
        })
    };
    assert_eq!(got(idle).await, ON_THE_WAY);
    assert!(begun.elapsed() < SLOW_FAREWELL + FAREWELL);
}
