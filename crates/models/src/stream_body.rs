//! A response body whose frames are sent at scripted times.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame as BodyFrame};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Bytes that are sent together.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The pause before them.
    pub(crate) pause: Duration,
    pub(crate) bytes: Bytes,
    /// A client that reads this frame knows the usage.
    pub(crate) reports_usage: bool,
}

impl Frame {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        Self { pause: Duration::ZERO, bytes: bytes.into(), reports_usage: false }
    }

    /// A server-sent event, with a name if the API names its events.
    pub(crate) fn event(name: Option<&str>, data: &Value) -> Self {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        Self::new(format!("{name}data: {data}\n\n"))
    }

    pub(crate) fn after(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    pub(crate) fn reporting_usage(self) -> Self {
        Self { reports_usage: true, ..self }
    }
}

/// What follows the last frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum After {
    Close,
    Hang,
    Cut,
}

/// A body that arrives piece by piece.
#[derive(Debug)]
pub(crate) struct StreamBody(mpsc::Receiver<Result<Bytes, Cut>>);

/// The script cuts the connection.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("cut by the script")
    }
}

impl std::error::Error for Cut {}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Cut>>> {
        self.0.poll_recv(context).map(|next| next.map(|piece| piece.map(BodyFrame::data)))
    }
}

/// Sends the frames from a new task; calls `on_usage_sent` when the usage is sent.
pub(crate) fn stream_body(
    frames: Vec<Frame>,
    after: After,
    on_usage_sent: impl FnOnce() + Send + 'static,
) -> StreamBody {
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut on_usage_sent = Some(on_usage_sent);
        for frame in frames {
            if !frame.pause.is_zero() {
                tokio::select! {
                    () = sleep(frame.pause) => {}
                    () = sender.closed() => return,
                }
            }
            if frame.reports_usage
                && let Some(on_usage_sent) = on_usage_sent.take()
            {
                // Before the bytes are sent, so that a client that has read them finds them counted.
                on_usage_sent();
            }
            if sender.send(Ok(frame.bytes)).await.is_err() {
                return;
            }
        }
        match after {
            After::Close => {}
            After::Hang => sender.closed().await,
            After::Cut => {
                // A body error discards what the connection has not written yet, so let it write first.
                sleep(Duration::from_millis(30)).await;
                let _ = sender.send(Err(Cut)).await;
            }
        }
    });
    StreamBody(receiver)
}
