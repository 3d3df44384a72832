//! Server-sent events, for networks that do not let WebSockets through.

use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures_util::stream;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::OpenError;
use super::http_client::{ANSWER_LIMIT, HttpClient, HttpRequest, refusal, unexpected};
use crate::discovery::Server;
use crate::error::AgentError;
use crate::event_lines::EventLinesBuilder;
use crate::transport::{Connection, Followed};

const EVENT_STREAM: &str = "text/event-stream";

/// The server answers and sends something at once. If nothing arrives, a proxy collects the answer; or the
/// connection was slow to open, which the second attempt rules out.
const FIRST: Duration = Duration::from_secs(5);

/// The server sends something at least three times in this time; otherwise the connection is dead.
const SILENCE: Duration = Duration::from_secs(60);

/// The size limit of a refusal.
const REFUSAL: usize = 1 << 20;

struct EventReader {
    body: Incoming,
    server: Server,
    parser: Parser,
    is_over: bool,
}

pub(super) async fn open(
    client: &HttpClient,
    server: Server,
    path: &str,
) -> Result<Connection, OpenError> {
    let collected = |server: &Server| {
        let why = "no stream arrives; a proxy may be collecting it";
        OpenError::Stalled(unexpected(server, why))
    };
    let asked = client.open(&server, HttpRequest::get(path, FIRST), Some(EVENT_STREAM));
    let answer = match timeout(FIRST, asked).await {
        Ok(answer) => answer.map_err(OpenError::Stalled)?,
        Err(_) => return Err(collected(&server)),
    };
    if answer.status() == StatusCode::NO_CONTENT {
        return Ok(Box::pin(stream::iter([Ok(Followed::End)])));
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_stream = kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM));
    if answer.status() != StatusCode::OK || !is_stream {
        let (head, body) = answer.into_parts();
        let body = timeout(FIRST, Limited::new(body, REFUSAL).collect()).await;
        let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        let refusal = refusal(&server, &http::Response::from_parts(head, body));
        return Err(match refusal.is_refusal() {
            true => OpenError::Failed(refusal),
            false => OpenError::Blocked(refusal),
        });
    }
    let mut reader =
        EventReader { body: answer.into_body(), server, parser: Parser::default(), is_over: false };
    match timeout(FIRST, reader.read_more()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(OpenError::Stalled(error)),
        Err(_) => return Err(collected(&reader.server)),
    }
    Ok(Box::pin(stream::unfold(reader, |mut reader| async {
        let next = reader.next().await?;
        Some((next, reader))
    })))
}

impl EventReader {
    async fn next(&mut self) -> Option<Result<Followed, AgentError>> {
        loop {
            let events = self.parser.gathered.finish();
            if !events.is_empty() {
                return Some(Ok(Followed::Events(events)));
            }
            if self.is_over {
                return None;
            }
            if self.parser.has_ended {
                self.is_over = true;
                return Some(Ok(Followed::End));
            }
            let more = timeout(SILENCE, self.read_more()).await.unwrap_or_else(|_| {
                let why = format!("no data for {} s", SILENCE.as_secs());
                Err(AgentError::broken(&self.server, why))
            });
            if let Err(error) = more {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    async fn read_more(&mut self) -> Result<(), AgentError> {
        let frame = self.body.frame().await;
        let frame = frame.ok_or_else(|| AgentError::broken(&self.server, "the stream ended"))?;
        let frame = frame.map_err(|error| AgentError::broken(&self.server, error))?;
        if let Ok(bytes) = frame.into_data() {
            self.parser.feed(&bytes);
        }
        match self.parser.unfinished() > ANSWER_LIMIT {
            true => Err(unexpected(&self.server, "it sent an event that is too large")),
            false => Ok(()),
        }
    }
}

/// Parses the stream, wherever its chunks are split.
#[derive(Default)]
struct Parser {
    /// An incomplete line.
    rest: BytesMut,
    /// The fields of an incomplete event.
    id: Option<u64>,
    name: String,
    data: Option<Vec<u8>>,
    gathered: EventLinesBuilder,
    has_ended: bool,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) {
        let before = self.rest.len();
        self.rest.extend_from_slice(bytes);
        let mut looked = before;
        while let Some(end) = self.rest.iter().skip(looked).position(|byte| *byte == b'\n') {
            let line = self.rest.split_to(looked + end);
            self.rest.advance(1);
            self.line(line.strip_suffix(b"\r").unwrap_or(&line));
            looked = 0;
        }
    }

    /// The bytes of the incomplete event.
    fn unfinished(&self) -> usize {
        self.rest.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"id" => self.id = std::str::from_utf8(value).ok().and_then(|id| id.parse().ok()),
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            // Comments, and the retry delay, which `Backoff` decides.
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let (id, data) = (self.id.take(), self.data.take());
        match std::mem::take(&mut self.name).as_str() {
            "" | "message" => {
                let text = data.as_deref().and_then(|data| std::str::from_utf8(data).ok());
                if let (Some(id), Some(text)) = (id, text) {
                    self.gathered.push(id, text);
                }
            }
            "end" => self.has_ended = true,
            // A gap is found when the follower asks for the session's summary.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_may_be_split_anywhere() {
        let text = "retry: 1000\n\n:\n\nid: 7\ndata: {\"a\":1}\n\nid: 8\r\ndata: {\"b\":\r\ndata:2}\r\n\r\nevent: resume\ndata: {}\n\nid:9\ndata:{}\n\nevent: end\ndata: {}\n\n";
        for size in 1..text.len() {
            let mut parser = Parser::default();
            for piece in text.as_bytes().chunks(size) {
                assert!(!parser.has_ended);
                parser.feed(piece);
            }
            assert!(parser.has_ended);
            let events = parser.gathered.finish();
            let events: Vec<_> = events.iter().collect();
            assert_eq!(events, [(7, "{\"a\":1}"), (8, "{\"b\": 2}"), (9, "{}")], "{size}");
        }
    }

    #[test]
    fn incomplete_events_are_counted() {
        let mut parser = Parser::default();
        for (text, waiting) in
            [("data: 12", 8), ("34\n", 4), ("data: 5\nid: 1", 11), ("\n", 6), ("\n", 0)]
        {
            parser.feed(text.as_bytes());
            assert_eq!(parser.unfinished(), waiting, "{text}");
        }
        assert_eq!(parser.gathered.finish().len(), 1);
    }
}
