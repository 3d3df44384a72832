//! Servers that die, broken connections and proxies: nothing is lost, nothing arrives twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentwire_client::{
    AgentClient, AgentErrorType, HttpTransport, SessionState, Streaming, Update,
};

use crate::library::harness::{Gateway, SERVER_WAYS, Way, assert_whole, next, rest, until};
use crate::scenarios::proxy::{Obstacles, Proxy, Upgrades};
use crate::shared::PATIENCE;

/// The server dies in the middle of a turn and restarts: readers continue where they were.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_found_again() {
    for way in SERVER_WAYS {
        let mut gateway = Gateway::new();
        gateway.serve(&[]);
        let client = gateway.client(way).await;
        let session = client
            .create(gateway.request("/repeat 200 word \n/bash true"))
            .await
            .expect("a session");
        let mut events = session.events();
        let mut updates = session.updates_after(0);
        let asked = until(&mut events, "requestRaised").await;
        let mut seen = Vec::new();
        while seen.last() != Some(&asked.seq) {
            match updates.try_next().await.expect("an update") {
                Some(Update::Events(lines)) => seen.extend(lines.iter().map(|(seq, _)| seq)),
                other => panic!("{way:?}: {other:?}"),
            }
        }
        let http = gateway.kill();
        gateway.serve_at(&http, &[]);
        let left = rest(&mut events).await;
        assert_whole(&left, asked.seq + 1);
        assert_eq!(session.state(), SessionState::Ended, "{way:?}");
        let mut told = Vec::new();
        while let Some(update) =
            tokio::time::timeout(PATIENCE, updates.try_next()).await.expect("in time").expect("one")
        {
            match update {
                Update::Events(lines) => seen.extend(lines.iter().map(|(seq, _)| seq)),
                // The connection broke, or the client looked for the server first and did not find it.
                Update::Lost(why) => {
                    let has_cause = why.native_error().is_some() || why.message().contains("gone");
                    assert!(why.is_retryable() && has_cause, "{way:?}: {why:?}");
                    told.push("lost");
                }
                Update::Back => told.push("back"),
                Update::Gap(gap) => panic!("{way:?}: {gap:?}"),
            }
        }
        assert_eq!(told, ["lost", "back"], "{way:?}");
        let last = left.last().map(|(seq, _)| *seq).expect("events");
        assert_eq!(seen, (1..=last).collect::<Vec<_>>(), "{way:?}");
    }
}

/// The server dies while its agent prints: everything that was stored is read, once and in order, and the
/// end.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_its_agent_speaks_is_found_again() {
    for way in SERVER_WAYS {
        let mut gateway = Gateway::new();
        gateway.serve(&[]);
        let client = gateway.client(way).await;
        let request = gateway.request("/repeat 200000 word ");
        let session = client.create(request).await.expect("a session");
        let mut events = session.events();
        let mut read = Vec::new();
        let mut texts = 0;
        while texts < 20 {
            let event = next(&mut events).await.expect("an event").expect("an event");
            texts += usize::from(event.kind.name() == "textChunk");
            read.push((event.seq, event.raw().to_owned()));
        }
        let http = gateway.kill();
        gateway.serve_at(&http, &[]);
        read.extend(rest(&mut events).await);
        assert_whole(&read, 1);
        assert!(!read.iter().any(|(_, raw)| raw.contains("\"turnCompleted\"")), "{way:?}");
        assert_eq!(session.state(), SessionState::Ended, "{way:?}");
        let kept = rest(&mut client.attach(session.id()).await.expect("it").events()).await;
        assert!(read == kept, "{way:?}: {} of {}", read.len(), kept.len());
    }
}

/// Repeatedly broken connections while the agent prints lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_while_the_agent_speaks_lose_nothing() {
    let proxy = Proxy::new().await;
    let mut gateway = Gateway::new();
    gateway.serve(&["--host", &proxy.address]);
    let connections = Arc::clone(&proxy.connections);
    let server = gateway.server_at(&proxy.address);
    proxy.lead(gateway.http(), Obstacles { cut: Some(150_000), ..Obstacles::default() });
    let direct = gateway.client(SERVER_WAYS[0]).await;
    for way in SERVER_WAYS {
        let Way::Http(streaming) = way else { continue };
        let before = connections.load(Ordering::SeqCst);
        let transport = HttpTransport::new(server.clone()).with_streaming(streaming);
        let client = AgentClient::over(transport);
        let request = gateway.request("/repeat 10000 word ");
        let session = client.create(request).await.expect("a session");
        let mut events = session.events();
        let mut read = Vec::new();
        while let Some(event) = next(&mut events).await.expect("an event") {
            read.push((event.seq, event.raw().to_owned()));
            if event.ends_turn() && event.kind.name() != "sessionEnded" {
                session.stop().await.expect("accepted");
            }
        }
        let kept = rest(&mut direct.attach(session.id()).await.expect("it").events()).await;
        assert!(read == kept, "{way:?}: {} of {}", read.len(), kept.len());
        assert!(connections.load(Ordering::SeqCst) > before + 3, "{way:?}: it was never cut");
    }
}

/// Repeatedly broken connections, at any point, lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_lose_and_double_nothing() {
    let proxy = Proxy::new().await;
    let mut gateway = Gateway::new();
    gateway.serve(&["--host", &proxy.address]);
    let direct = gateway.client(SERVER_WAYS[0]).await;
    let session = direct.create(gateway.request("/repeat 4000 word ")).await.expect("a session");
    until(&mut session.events(), "turnCompleted").await;
    session.stop().await.expect("accepted");
    session.ended().await.expect("it ends");
    let kept = rest(&mut session.events()).await;
    let server = gateway.server_at(&proxy.address);
    let connections = Arc::clone(&proxy.connections);
    proxy.lead(gateway.http(), Obstacles { cut: Some(150_000), ..Obstacles::default() });
    for way in SERVER_WAYS {
        let Way::Http(streaming) = way else { continue };
        let before = connections.load(Ordering::SeqCst);
        let transport = HttpTransport::new(server.clone()).with_streaming(streaming);
        let client = AgentClient::over(transport);
        let session = client.attach(session.id().clone()).await.expect("a session");
        let mut events = session.events();
        // Connections also break in the middle of a stream.
        let mut read = Vec::new();
        while let Some(event) = next(&mut events).await.expect("an event") {
            read.push((event.seq, event.raw().to_owned()));
        }
        assert!(read == kept, "{way:?}: {} of {}", read.len(), kept.len());
        assert!(connections.load(Ordering::SeqCst) > before + 3, "{way:?}: it was never cut");
    }
}

/// If no WebSocket gets through, events arrive as a stream; if streams are buffered, by long polls.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_get_through_is_left_for_what_does() {
    for (obstacles, expected) in [
        (Obstacles::default(), Streaming::Socket),
        // A restarting server breaks one upgrade. Upgrades that always break count as not getting through.
        (Obstacles { broken_upgrades: 1, ..Obstacles::default() }, Streaming::Socket),
        (Obstacles { broken_upgrades: usize::MAX, ..Obstacles::default() }, Streaming::Events),
        (Obstacles { upgrades: Upgrades::Refuse, ..Obstacles::default() }, Streaming::Events),
        (Obstacles { upgrades: Upgrades::Strip, ..Obstacles::default() }, Streaming::Events),
        (
            Obstacles { upgrades: Upgrades::Strip, collects_streams: true, ..Obstacles::default() },
            Streaming::Polling,
        ),
    ] {
        let proxy = Proxy::new().await;
        let mut gateway = Gateway::new();
        gateway.serve(&["--host", &proxy.address]);
        let transport = HttpTransport::new(gateway.server_at(&proxy.address));
        proxy.lead(gateway.http(), obstacles.clone());
        let client = AgentClient::over(transport.clone());
        let session =
            client.create(gateway.request("/say one\n/bash true")).await.expect("a session");
        let mut events = session.events();
        let asked = until(&mut events, "requestRaised").await;
        assert_eq!(transport.streaming(), expected, "{obstacles:?}");
        asked.request().expect("a request").deny("no").await.expect("an answer");
        until(&mut events, "turnCompleted").await;
        session.stop().await.expect("accepted");
        rest(&mut events).await;
        assert_eq!(session.state(), SessionState::Ended);
    }
}

/// A server that was never reachable is an error at once, and so is a wrong token.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_succeed_is_not_waited_for() {
    let mut gateway = Gateway::new();
    gateway.serve(&[]);
    let address = format!("http://{}", gateway.http());
    let builder = || AgentClient::builder().url(address.as_str());
    let error = builder().token("wrong").connect().await.expect_err("it is wrong");
    assert_eq!(error.kind(), AgentErrorType::AuthenticationFailed, "{error}");
    builder().token_file(gateway.token_file()).connect().await.expect("a client");
    gateway.kill();
    let error = builder().token("any").connect().await.expect_err("it is gone");
    assert_eq!(error.kind(), AgentErrorType::ConnectionFailed, "{error}");
    assert!(error.is_retryable());
}
