//! A stored session of 100,000 events sent to a new reader, compared with the same bytes as prepared frames
//! (goal 12).

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::agent::{self, TURN};
use crate::place::{Gateway, Server};
use crate::report::{median, micros, time, times};

const EVENTS: u64 = 100_000;

/// Turns printed at a time, few enough that lines become separate events.
const PIECE: u64 = 200;

pub async fn run(rounds: usize) {
    let server = Server::start();
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}");
    let (mut lines, mut last) = (0, 0);
    let mut reader = server.reader(&session).await;
    while last < EVENTS {
        server.order(&session, &agent::order(PIECE, 0, 0)).await;
        assert_eq!(reader.read(PIECE * TURN).await.faults, 0);
        lines += PIECE * TURN;
        last = server.ask("GET", &path, "").await["lastSeq"].as_u64().unwrap();
    }
    drop(reader);
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut reader = server.reader_after(&session, 0).await;
        // Each order counts its lines from zero.
        for _ in 0..lines / (PIECE * TURN) {
            assert_eq!(reader.read(PIECE * TURN).await.faults, 0);
        }
        ours.push(micros(begun.elapsed()));
        bytes = reader.bytes;
        plain.push(written(bytes).await);
    }
    let (ours, plain) = (median(ours), median(plain));
    println!("Replay of {last} events, {} MB, to a new reader:\n", bytes / 1_000_000);
    println!("| prepared frames, written | agentwire, from its log | ratio |");
    println!("|---|---|---|");
    println!("| {} | {} | {} |", time(plain), time(ours), times(ours / plain));
}

/// Microseconds to write this many bytes from memory to a socket and read them.
pub async fn written(bytes: u64) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let writer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let block = vec![b'x'; 64 << 10];
        let mut left = bytes as usize;
        while left > 0 {
            let piece = left.min(block.len());
            stream.write_all(&block[..piece]).await.unwrap();
            left -= piece;
        }
    });
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut buffer = vec![0; 256 << 10];
    while stream.read(&mut buffer).await.unwrap() > 0 {}
    writer.await.unwrap();
    micros(begun.elapsed())
}
