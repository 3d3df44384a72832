//! A minimal client for HTTP and WebSockets.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::PATIENCE;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The code of the body, which must be a problem.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
        body["code"].as_str().expect("a code").to_owned()
    }
}

pub(crate) fn read_answer(stream: TcpStream) -> Answer {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {line:?}"));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut bytes = Vec::new();
    match headers.get("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => {
            bytes.resize(length, 0);
            reader.read_exact(&mut bytes).expect("a body");
        }
        None => drop(reader.read_to_end(&mut bytes)),
    }
    Answer { status, headers, text: String::from_utf8(bytes).expect("UTF-8") }
}

pub(crate) struct Socket {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    /// Opens a WebSocket, or returns the status of the refusal.
    pub(crate) fn open(
        address: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        // No limit on what the server sends.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let stream = MaybeTlsStream::Plain(stream);
        match tungstenite::client::client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn say(&mut self, frame: &Value) {
        self.text(&frame.to_string());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).expect("it listens");
    }

    /// Reads to the end. Returns the server's close code and reason; 1005 if it sent none.
    pub(crate) fn closed(&mut self) -> (u16, String) {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(close))) => {
                    return (close.code.into(), close.reason.to_string());
                }
                Ok(Message::Close(None)) => return (1005, String::new()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Writes these bytes unframed.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let MaybeTlsStream::Plain(stream) = self.socket.get_mut() else { panic!("plain") };
        let _ = stream.write_all(bytes);
    }

    /// The text of the next frame; `None` once the server has closed.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return None,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads to the end. Returns the server's close code and reason, which it must send.
    pub(crate) fn farewell(&mut self) -> (u16, String) {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(close))) => {
                    return (close.code.into(), close.reason.to_string());
                }
                Ok(Message::Close(None)) => panic!("it closed without a reason"),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits for a ping of the server.
    pub(crate) fn pinged(&mut self) {
        while !matches!(self.socket.read().expect("it is open"), Message::Ping(_)) {}
    }

    pub(crate) fn frame(&mut self) -> Value {
        let text = self.next().expect("one more frame");
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn until(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let frame = self.frame();
            if fits(&frame) {
                return frame;
            }
        }
    }
}
