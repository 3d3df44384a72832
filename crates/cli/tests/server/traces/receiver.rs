//! A small OTLP/HTTP receiver for both JSON and protobuf.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use crate::shared::PATIENCE;

pub(super) struct Receiver {
    pub(super) endpoint: String,
    got: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: BTreeMap<String, Value>,
    pub(super) error: Option<String>,
}

impl Receiver {
    pub(super) fn answering(status: u16) -> Self {
        Self::new(Some(status))
    }

    /// Accepts connections and never answers.
    pub(super) fn hanging() -> Self {
        Self::new(None)
    }

    fn new(status: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&got);
        // It ends with the test program, which does not wait for it.
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                match status {
                    Some(status) => {
                        let request = take(&stream, status);
                        taken.lock().expect("no panic").extend(request);
                    }
                    None => held.push(stream),
                }
            }
        });
        Self { endpoint, got }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.got.lock().expect("no panic").clone()
    }

    pub(super) fn until(&self, fits: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let begun = Instant::now();
        loop {
            let spans: Vec<Span> = self.requests().iter().flat_map(Request::spans).collect();
            if fits(&spans) {
                return spans;
            }
            assert!(begun.elapsed() < PATIENCE, "{spans:#?}");
            std::thread::yield_now();
        }
    }
}

fn take(mut stream: &TcpStream, status: u16) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).ok()?;
    Some(Request { path, headers, body })
}

impl Request {
    pub(super) fn resource(&self) -> BTreeMap<String, Value> {
        let request = self.json();
        attributes(&request["resourceSpans"][0]["resource"]["attributes"])
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let request = self.json();
        let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned();
        spans.unwrap_or_default().iter().map(span).collect()
    }

    /// The request as JSON, whichever form it had.
    fn json(&self) -> Value {
        match self.headers["content-type"].as_str() {
            "application/json" => serde_json::from_slice(&self.body).expect("JSON"),
            _ => protobuf(&self.body),
        }
    }
}

fn span(told: &Value) -> Span {
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| text(name).parse().expect("a number");
    assert_eq!((text("traceId").len(), text("spanId").len()), (32, 16), "{told}");
    Span {
        trace: text("traceId"),
        id: text("spanId"),
        parent: told["parentSpanId"].as_str().map(str::to_owned),
        name: text("name"),
        start: number("startTimeUnixNano"),
        end: number("endTimeUnixNano"),
        attributes: attributes(&told["attributes"]),
        error: (told["status"]["code"] == 2)
            .then(|| told["status"]["message"].as_str().unwrap_or_default().to_owned()),
    }
}

fn attributes(told: &Value) -> BTreeMap<String, Value> {
    let told = told.as_array().cloned().unwrap_or_default();
    let pairs = told.iter().map(|pair| {
        let value = pair["value"].as_object().and_then(|value| value.iter().next());
        let value = match value.expect("a value") {
            (kind, number) if kind == "intValue" => {
                json!(number.as_str().expect("text").parse::<i64>().expect("a number"))
            }
            (_, value) => value.clone(),
        };
        (pair["key"].as_str().expect("a key").to_owned(), value)
    });
    pairs.collect()
}

/// A field of a protobuf message.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("a field of type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn bytes_of(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let found = fields(message).into_iter().filter_map(|(number, field)| match field {
        Field::Bytes(bytes) if number == wanted => Some(bytes),
        Field::Bytes(_) | Field::Number(_) => None,
    });
    found.collect()
}

fn number_of(message: &[u8], wanted: u64) -> u64 {
    let found = fields(message).into_iter().find_map(|(number, field)| match field {
        Field::Number(value) if number == wanted => Some(value),
        Field::Bytes(_) | Field::Number(_) => None,
    });
    found.unwrap_or(0)
}

fn text_of(message: &[u8], wanted: u64) -> String {
    let bytes = bytes_of(message, wanted).first().copied().unwrap_or_default();
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Uses the field numbers of `opentelemetry/proto/trace/v1/trace.proto`.
fn protobuf(request: &[u8]) -> Value {
    let of_resource = bytes_of(request, 1)[0];
    let of_scope = bytes_of(of_resource, 2)[0];
    let spans: Vec<Value> = bytes_of(of_scope, 2).into_iter().map(protobuf_span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": protobuf_attributes(bytes_of(of_resource, 1)[0], 1) },
        "scopeSpans": [{ "spans": spans }],
    }] })
}

fn protobuf_span(span: &[u8]) -> Value {
    let hex = |number| -> String {
        let bytes = bytes_of(span, number).first().copied().unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let status = bytes_of(span, 15).first().copied().unwrap_or_default();
    let parent = hex(4);
    json!({
        "traceId": hex(1),
        "spanId": hex(2),
        "parentSpanId": if parent.is_empty() { Value::Null } else { json!(parent) },
        "name": text_of(span, 5),
        "startTimeUnixNano": number_of(span, 7).to_string(),
        "endTimeUnixNano": number_of(span, 8).to_string(),
        "attributes": protobuf_attributes(span, 9),
        "status": { "code": number_of(status, 3), "message": text_of(status, 2) },
    })
}

fn protobuf_attributes(message: &[u8], number: u64) -> Value {
    let pairs = bytes_of(message, number).into_iter().map(|pair| {
        let (kind, value) = fields(bytes_of(pair, 2)[0]).pop().expect("a value");
        let value = match (kind, value) {
            (1, Field::Bytes(text)) => json!({ "stringValue": String::from_utf8_lossy(text) }),
            (3, Field::Number(number)) => json!({ "intValue": number.cast_signed().to_string() }),
            (4, Field::Number(bits)) => json!({ "doubleValue": f64::from_bits(bits) }),
            (5, Field::Bytes(list)) => {
                let texts: Vec<_> =
                    bytes_of(list, 1).into_iter().map(|any| text_of(any, 1)).collect();
                json!({ "arrayValue": texts })
            }
            (kind, _) => panic!("a value of kind {kind}"),
        };
        json!({ "key": text_of(pair, 1), "value": value })
    });
    pairs.collect()
}
