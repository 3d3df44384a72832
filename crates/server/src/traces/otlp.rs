//! Spans in OTLP: as protobuf, with the field numbers of `opentelemetry/proto/trace/v1`, and as JSON.

use serde_json::{Value as Json, json};

use super::settings::{Encoding, Settings};
use super::spans::{Attribute, Span, Value};

/// The semantic conventions that the attribute names follow.
const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.41.0";

/// `SPAN_KIND_INTERNAL`
const INTERNAL: u64 = 1;

/// `STATUS_CODE_ERROR`
const ERROR: u64 = 2;

/// The content type and body of a request with these spans.
pub(super) fn request(settings: &Settings, spans: &[Span]) -> (&'static str, Vec<u8>) {
    match settings.encoding {
        Encoding::Protobuf => ("application/x-protobuf", protobuf(&settings.resource, spans)),
        Encoding::Json => {
            ("application/json", json(&settings.resource, spans).to_string().into_bytes())
        }
    }
}

fn protobuf(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let mut request = ProtobufWriter::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |about| {
            for (key, value) in resource {
                about.message(1, |pair| {
                    pair.text(1, key);
                    pair.message(2, |any| any.text(1, value));
                });
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.text(1, "agentwire");
                scope.text(2, env!("CARGO_PKG_VERSION"));
            });
            for span in spans {
                scope_spans.message(2, |written| write_span(span, written));
            }
            scope_spans.text(3, CONVENTIONS);
        });
    });
    request.bytes
}

fn write_span(span: &Span, out: &mut ProtobufWriter) {
    out.bytes(1, &span.trace);
    out.bytes(2, &span.id);
    if let Some(parent) = &span.parent {
        out.bytes(4, parent);
    }
    out.text(5, &span.name);
    out.number(6, INTERNAL);
    out.fixed(7, span.start);
    out.fixed(8, span.end);
    write_attributes(9, &span.attributes, out);
    for event in &span.events {
        out.message(11, |out| {
            out.fixed(1, event.time);
            out.text(2, event.name);
            write_attributes(3, &event.attributes, out);
        });
    }
    if let Some(error) = &span.error {
        out.message(15, |status| {
            status.text(2, error);
            status.number(3, ERROR);
        });
    }
}

fn write_attributes(field: u64, attributes: &[Attribute], out: &mut ProtobufWriter) {
    for (key, value) in attributes {
        out.message(field, |pair| {
            pair.text(1, key);
            pair.message(2, |any| match value {
                Value::Text(text) => any.text(1, text),
                Value::Number(number) => any.number(3, number.cast_unsigned()),
                Value::Real(number) => any.fixed(4, number.to_bits()),
                Value::List(texts) => any.message(5, |list| {
                    for text in texts {
                        list.message(1, |any| any.text(1, text));
                    }
                }),
            });
        });
    }
}

#[derive(Default)]
struct ProtobufWriter {
    bytes: Vec<u8>,
}

impl ProtobufWriter {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn fixed(&mut self, field: u64, bits: u64) {
        self.varint(field << 3 | 1);
        self.bytes.extend_from_slice(&bits.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.bytes);
    }
}

fn json(resource: &[(String, String)], spans: &[Span]) -> Json {
    let about = resource
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }));
    json!({ "resourceSpans": [{
        "resource": { "attributes": about.collect::<Vec<_>>() },
        "scopeSpans": [{
            "scope": { "name": "agentwire", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans.iter().map(json_span).collect::<Vec<_>>(),
            "schemaUrl": CONVENTIONS,
        }],
    }] })
}

pub(super) fn json_span(span: &Span) -> Json {
    let events = span.events.iter().map(|event| {
        json!({
            "timeUnixNano": event.time.to_string(),
            "name": event.name,
            "attributes": json_attributes(&event.attributes),
        })
    });
    let mut told = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": json_attributes(&span.attributes),
        "events": events.collect::<Vec<_>>(),
        "status": span.error.as_ref().map_or(json!({}), |error| json!({ "code": ERROR, "message": error })),
    });
    if let (Some(parent), Some(fields)) = (&span.parent, told.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), hex(parent).into());
    }
    told
}

fn json_attributes(attributes: &[Attribute]) -> Json {
    let told = attributes.iter().map(|(key, value)| {
        let value = match value {
            Value::Text(text) => json!({ "stringValue": text }),
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::Real(number) => json!({ "doubleValue": number }),
            Value::List(texts) => {
                let values: Vec<_> =
                    texts.iter().map(|text| json!({ "stringValue": text })).collect();
                json!({ "arrayValue": { "values": values } })
            }
        };
        json!({ "key": key, "value": value })
    });
    told.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
