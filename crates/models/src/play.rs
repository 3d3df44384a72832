//! Sends the frames of a response, each at its time, to a connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame as BodyFrame};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Bytes that are sent at once.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Before it.
    pub(crate) pause: Duration,
    pub(crate) bytes: Bytes,
    /// Whoever reads this frame knows the usage.
    pub(crate) tells_usage: bool,
}

impl Frame {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        Self { pause: Duration::ZERO, bytes: bytes.into(), tells_usage: false }
    }

    /// A server-sent event; some APIs name their events.
    pub(crate) fn event(name: Option<&str>, data: &Value) -> Self {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        Self::new(format!("{name}data: {data}\n\n"))
    }

    pub(crate) fn after(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    pub(crate) fn telling_usage(self) -> Self {
        Self { tells_usage: true, ..self }
    }
}

/// What comes after the last frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum After {
    Close,
    Hang,
    Cut,
}

/// A body that comes piece by piece.
#[derive(Debug)]
pub(crate) struct Playing(mpsc::Receiver<Result<Bytes, Cut>>);

/// The connection is cut on purpose.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("cut by the script")
    }
}

impl std::error::Error for Cut {}

impl Body for Playing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Cut>>> {
        self.0.poll_recv(context).map(|next| next.map(|piece| piece.map(BodyFrame::data)))
    }
}

/// Plays the frames from a task of its own; `told` is called when the usage was sent.
pub(crate) fn play(
    frames: Vec<Frame>,
    after: After,
    told: impl FnOnce() + Send + 'static,
) -> Playing {
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut told = Some(told);
        for frame in frames {
            if !frame.pause.is_zero() {
                tokio::select! {
                    () = sleep(frame.pause) => {}
                    () = sender.closed() => return,
                }
            }
            if frame.tells_usage
                && let Some(told) = told.take()
            {
                // Before the bytes are out: who has read them finds it counted.
                told();
            }
            if sender.send(Ok(frame.bytes)).await.is_err() {
                return;
            }
        }
        match after {
            After::Close => {}
            After::Hang => sender.closed().await,
            After::Cut => {
                // An error of the body makes the connection drop what it has not yet written.
                sleep(Duration::from_millis(30)).await;
                let _ = sender.send(Err(Cut)).await;
            }
        }
    });
    Playing(receiver)
}
