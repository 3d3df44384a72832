//! The description of the API: OpenAPI 3.1 for programs, and a page for people.

mod schemas;

use std::borrow::Cow;
use std::sync::LazyLock;

use agentwire_protocol::command::CommandShape;
use agentwire_protocol::reply::{Replies, ReplyFrame};
use agentwire_protocol::{Event, WatchChange};
use axum::extract::State;
use axum::response::{Html, IntoResponse as _};
use http::StatusCode;
use http::header::CONTENT_SECURITY_POLICY;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use self::schemas::Schemas;
use super::App;
use super::body::json_text;
use super::rest::HttpResult;
use super::routes::{Operation, Parameter, ROUTES, ResponseKind, Route, SchemaFn, of};

pub(super) fn anything(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// An answer to a request. The path names the request, so the body may omit it.
pub(super) struct Settlement;

impl JsonSchema for Settlement {
    fn schema_name() -> Cow<'static, str> {
        "Settlement".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = agentwire_protocol::Settlement::json_schema(generator);
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != "requestId");
        }
        schema
    }
}

/// A page of a session's events.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "written as text; only used for its schema")]
struct EventPage {
    /// The events, in order.
    events: Vec<Event<'static>>,
    /// The value of `after` for the next page.
    next: u64,
    /// The value of `before` for the page before this one, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<u64>,
    /// The number of the last event in the log.
    last: u64,
    /// The session has ended and no more events will come.
    ended: bool,
    /// `exact`, or the events that are missing.
    resume: Value,
}

/// The installed agents, as `agentwire agents --json` prints them.
pub(super) fn agents(_generator: &mut SchemaGenerator) -> Schema {
    let agent = json!({
        "type": "object",
        "required": ["name", "standing", "drivers", "install", "configured"],
        "properties": {
            "name": { "type": "string" },
            "path": { "type": "string", "description": "path of the program" },
            "error": { "type": "string", "description": "why the program was not found" },
            "version": { "type": "string" },
            "standing": { "type": "string", "description": "how its version compares to the tested ones" },
            "problems": {
                "type": "array",
                "description": "known problems of that version",
                "items": {
                    "type": "object",
                    "required": ["what", "remedy", "fatal"],
                    "properties": {
                        "what": { "type": "string" },
                        "remedy": { "type": "string", "description": "what to do" },
                        "fatal": { "type": "boolean", "description": "whether it makes sessions impossible" },
                    },
                },
            },
            "login": {
                "enum": ["signedIn", "notSignedIn", "notTold"],
                "description": "whether it is signed in, as far as it reports that",
            },
            "loginMethod": { "type": "string", "description": "how it is signed in: apiKey, token, account or cloud" },
            "keyVariable": {
                "type": "string",
                "description": "the environment variable that has a key, if the program does not report its login",
            },
            "drivers": {
                "type": "array",
                "items": { "type": "string" },
                "description": "the available drivers; the first is the default",
            },
            "variable": { "type": "string", "description": "the environment variable that names another program" },
            "install": { "type": "string", "description": "how to install it" },
            "configured": { "type": "boolean", "description": "whether the settings name it" },
        },
    });
    json_schema!({
        "type": "object",
        "required": ["agents"],
        "properties": { "agents": { "type": "array", "items": agent } },
    })
}

pub fn openapi() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in ROUTES {
        let operations = route.operations.iter().map(|operation| {
            (operation.method.to_owned(), describe(route, operation, &mut schemas))
        });
        paths.insert(route.path.to_owned(), Value::Object(operations.collect()));
    }
    let problem = json!({
        "type": "object",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": schemas.output_schema(of::<agentwire_protocol::ErrorCode>),
            "detail": { "type": "string" },
            "details": {},
        },
    });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agentwire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "One program between every coding agent and every client.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "Problem": {
                "description": "What went wrong",
                "content": { "application/problem+json": {
                    "schema": { "$ref": "#/components/schemas/Problem" },
                } },
            } },
            "schemas": { "Problem": problem },
        },
    });
    schemas.put_into(&mut document);
    document
}

fn describe(route: &Route, operation: &Operation, schemas: &mut Schemas) -> Value {
    let in_path =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = in_path.map(|name| {
        let schema = match name {
            "id" => json!({ "type": "string", "format": "uuid" }),
            "seq" => json!({ "type": "integer", "minimum": 1 }),
            _ => json!({ "type": "string" }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let query = operation.query.iter().map(|it| parameter(it, "query"));
    let headers = operation.headers.iter().map(|it| parameter(it, "header"));
    let parameters: Vec<Value> = path.chain(query).chain(headers).collect();
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("operationId", json!(operation.name));
    put("summary", json!(operation.summary));
    put("parameters", json!(parameters));
    if let Some(body) = operation.body {
        let known = schemas.input_schema(body);
        // A request that stops an agent is never refused for its form.
        let schema = match operation.needs_body {
            true => known,
            false => {
                json!({ "description": "anything else counts as no body", "anyOf": [known, {}] })
            }
        };
        let content = json!({ "application/json": { "schema": schema } });
        put("requestBody", json!({ "required": operation.needs_body, "content": content }));
    }
    let mut responses = json!({
        operation.status.to_string(): with_headers(operation, response_content(operation, schemas)),
        "default": { "$ref": "#/components/responses/Problem" },
    });
    if let (Some((status, when)), Some(all)) = (operation.or, responses.as_object_mut()) {
        all.insert(status.to_string(), with_headers(operation, json!({ "description": when })));
    }
    put("responses", responses);
    if let ResponseKind::Unified = operation.response {
        let receives =
            [schemas.output_schema(of::<Event<'static>>), schemas.output_schema(of::<ReplyFrame>)];
        let messages = json!({
            "sends": schemas.input_schema(of::<CommandShape>),
            "receives": { "anyOf": receives },
            "replies": schemas.output_schema(of::<Replies>),
        });
        put("x-messages", messages);
    }
    match operation.scope {
        Some(scope) => put("x-scope", json!(scope.as_str())),
        None => put("security", json!([])),
    };
    Value::Object(fields)
}

fn parameter(parameter: &Parameter, place: &str) -> Value {
    let (name, about) = (parameter.name, parameter.about);
    let about = match parameter.range.filter(|_| parameter.is_clamped) {
        Some((from, to)) => {
            format!("{about}, {from} to {to}; a number outside this range is clamped to it")
        }
        None => about.to_owned(),
    };
    json!({ "name": name, "in": place, "description": about, "schema": schema(parameter) })
}

fn schema(parameter: &Parameter) -> Value {
    let mut schema = Map::from_iter([("type".to_owned(), json!(parameter.kind))]);
    if let Some((from, to)) = parameter.range {
        let (least, most) = match parameter.kind {
            "string" => ("minLength", "maxLength"),
            _ => ("minimum", "maximum"),
        };
        if !parameter.is_clamped {
            schema.insert(least.to_owned(), json!(from));
            schema.insert(most.to_owned(), json!(to));
        }
    }
    if !parameter.values.is_empty() {
        schema.insert("enum".to_owned(), json!(parameter.values));
    }
    Value::Object(schema)
}

/// A response, with its headers.
fn with_headers(operation: &Operation, mut response: Value) -> Value {
    if let Some(fields) =
        response.as_object_mut().filter(|_| !operation.response_headers.is_empty())
    {
        let header = |it: &Parameter| json!({ "description": it.about, "schema": schema(it) });
        let headers = operation.response_headers.iter().map(|it| (it.name.to_owned(), header(it)));
        fields.insert("headers".to_owned(), Value::Object(headers.collect()));
    }
    response
}

fn response_content(operation: &Operation, schemas: &mut Schemas) -> Value {
    let content = match &operation.response {
        ResponseKind::Json(schema_fn) => {
            json!({ "application/json": { "schema": schemas.output_schema(*schema_fn) } })
        }
        ResponseKind::Events => {
            let page = schemas.output_schema(of::<EventPage>);
            json!({
                "application/json": { "schema": page },
                "text/event-stream": { "schema": { "type": "string" } },
            })
        }
        ResponseKind::Changes => json!({
            "application/json": { "schema": schemas.output_schema(of::<WatchChange>) },
            "text/event-stream": { "schema": { "type": "string" } },
        }),
        ResponseKind::Text(kind) => json!({ *kind: { "schema": { "type": "string" } } }),
        ResponseKind::Socket | ResponseKind::Unified => {
            return json!({ "description": "The connection is open" });
        }
    };
    json!({ "description": "Done", "content": content })
}

/// `GET /openapi.json`
pub(super) async fn document(State(_app): State<App>) -> HttpResult {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_string());
    Ok(json_text(StatusCode::OK, DOCUMENT.clone()))
}

/// `GET /docs`
pub(super) async fn page() -> HttpResult {
    let mut text = String::from(HEAD);
    for route in ROUTES {
        for operation in route.operations {
            let scope = operation.scope.map_or("anyone", |scope| scope.as_str());
            let method = operation.method.to_ascii_uppercase();
            text += &format!(
                "<section><h2><b>{method}</b> <code>{}</code></h2><p>{}. Needs: {scope}.</p>",
                route.path, operation.summary
            );
            if !operation.query.is_empty() || !operation.headers.is_empty() {
                text += "<dl>";
                for parameter in operation.query.iter().chain(operation.headers) {
                    let range = parameter.range.filter(|(_, to)| *to < 1 << 53);
                    let range = range.map(|(from, to)| format!(", {from} to {to}"));
                    let values = parameter.values.join(" or ");
                    let (about, range) = (parameter.about, range.unwrap_or_default());
                    text += &format!(
                        "<dt><code>{}</code></dt><dd>{about}{range} {values}</dd>",
                        parameter.name
                    );
                }
                text += "</dl>";
            }
            text += "</section>";
        }
    }
    text += "</main>";
    let style = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    Ok(([(CONTENT_SECURITY_POLICY, style)], Html(text)).into_response())
}

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>agentwire</title>\
<style>body{font:16px/1.5 system-ui;max-width:50em;margin:2em auto;padding:0 1em}\
h2{font-size:1em;margin:1.5em 0 0}code{font-size:1em}dl{margin:0 0 0 1em}dt{float:left;margin-right:1em}\
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}</style><main><h1>agentwire</h1>\
<p>Errors are <code>application/problem+json</code> with a <code>code</code>. \
<code>/openapi.json</code> has the same for programs.</p>";
