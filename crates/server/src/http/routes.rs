//! The routes: one table, from which the router and the OpenAPI document are made.

use agentwire_protocol::command::{InterruptFields, NewText, QueryFields, RewindFields};
use agentwire_protocol::reply::{
    InterruptResult, Nothing, OpenRequest, PromptQueue, PromptResult, RequestList, SessionDetails,
    SessionList,
};
use agentwire_protocol::{
    AgentType, Event, Json, NewSession, Prompt, SearchQuery, SearchResult, SessionChange,
    SessionRequest, SessionSort, SessionState, SessionSummary, UsageBin, UsageBy, UsageReport,
};
use axum::Router;
use axum::routing::{MethodRouter, get, patch, post};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::problem::Problem;
use super::{
    App, auth, board, events, inbox, metrics, openapi, queue, reports, rest, socket, watch,
    web_page,
};
use crate::tokens::Scope;

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) methods: fn() -> MethodRouter<App>,
    pub(super) operations: &'static [Operation],
}

/// An operation: what a method does at a path.
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// The `operationId`.
    pub(super) name: &'static str,
    /// The scope that the client needs; none if no token is needed.
    pub(super) scope: Option<Scope>,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    /// The request headers.
    pub(super) headers: &'static [Parameter],
    pub(super) body: Option<SchemaFn>,
    pub(super) needs_body: bool,
    pub(super) status: u16,
    pub(super) response: ResponseKind,
    /// Another status, without a body, and when it is sent.
    pub(super) or: Option<(u16, &'static str)>,
    /// The response headers.
    pub(super) response_headers: &'static [Parameter],
}

/// A parameter in a query or a header.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The JSON Schema type, and the limits: of a number, or of the length of a text.
    pub(super) kind: &'static str,
    pub(super) range: Option<(u64, u64)>,
    /// A number outside the range is clamped to it, not refused.
    pub(super) is_clamped: bool,
    pub(super) values: &'static [&'static str],
}

pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// The kind of a response.
pub(super) enum ResponseKind {
    Json(SchemaFn),
    /// A page of events, or a stream.
    Events,
    /// A stream of changes of all sessions.
    Changes,
    Text(&'static str),
    Socket,
    /// A WebSocket of the unified protocol.
    Unified,
}

pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn operation(
    method: &'static str,
    name: &'static str,
    scope: Option<Scope>,
    summary: &'static str,
) -> Operation {
    let response = ResponseKind::Json(of::<Nothing>);
    Operation {
        method,
        name,
        scope,
        summary,
        query: &[],
        headers: &[],
        body: None,
        needs_body: true,
        status: 200,
        response,
        or: None,
        response_headers: &[],
    }
}

const fn number(name: &'static str, about: &'static str, from: u64, to: u64) -> Parameter {
    Parameter {
        name,
        about,
        kind: "integer",
        range: Some((from, to)),
        is_clamped: false,
        values: &[],
    }
}

/// A number that is clamped to its range.
const fn amount(name: &'static str, about: &'static str, from: u64, to: u64) -> Parameter {
    Parameter { is_clamped: true, ..number(name, about, from, to) }
}

const fn word(
    name: &'static str,
    about: &'static str,
    values: &'static [&'static str],
) -> Parameter {
    Parameter { name, about, kind: "string", range: None, is_clamped: false, values }
}

const MOST: u64 = u64::MAX;
const PROFILE: Parameter = word(
    "profile",
    "full shows everything, lean leaves native out, core shows only the specification's twelve event types",
    &["core", "lean", "full"],
);
const AFTER: Parameter =
    number("after", "the number of the last event that the client has", 0, MOST);
const KEY: Parameter = Parameter {
    range: Some((1, NewSession::KEY_LIMIT as u64)),
    is_clamped: false,
    ..word("Idempotency-Key", "a request sent again with the same key counts once", &[])
};
const RESUME: Parameter =
    word("Agentwire-Resume", "exact, or missing FROM-TO: events that this log does not have", &[]);

/// All routes of the main address.
pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/healthz",
        methods: || get(rest::healthz),
        operations: &[Operation {
            response: ResponseKind::Text("text/plain"),
            ..operation("get", "health", None, "Check that the server is up")
        }],
    },
    Route {
        path: "/",
        methods: || get(web_page::page),
        operations: &[Operation {
            response: ResponseKind::Text("text/html"),
            ..operation("get", "getPage", None, "The web page")
        }],
    },
    Route {
        path: "/page.js",
        methods: || get(web_page::script),
        operations: &[Operation {
            response: ResponseKind::Text("text/javascript"),
            ..operation("get", "getPageScript", None, "The script of the web page")
        }],
    },
    Route {
        path: "/page.css",
        methods: || get(web_page::style),
        operations: &[Operation {
            response: ResponseKind::Text("text/css"),
            ..operation("get", "getPageStyle", None, "The style sheet of the web page")
        }],
    },
    Route {
        path: "/v1/sign-in",
        methods: || post(web_page::sign_in),
        operations: &[Operation {
            body: Some(of::<web_page::SignIn>),
            response: ResponseKind::Json(of::<web_page::SignedIn>),
            ..operation(
                "post",
                "signIn",
                None,
                "Exchange a ticket from serve --open for the operator's token",
            )
        }],
    },
    Route {
        path: "/v1/sessions",
        methods: || get(rest::list).post(rest::create),
        operations: &[
            Operation {
                query: &[
                    amount("limit", "page size", 1, 500),
                    word("after", "the next of the previous page", &[]),
                    Parameter {
                        kind: "boolean",
                        ..word("live", "only sessions that have not ended", &[])
                    },
                    word("state", "only sessions in this state", &SessionState::NAMES),
                    word("agent", "only sessions of this agent", &AgentType::NAMES),
                    word("directory", "only sessions in this directory or below it", &[]),
                    word(
                        "q",
                        "only sessions with these words in the title, the start of the first prompt, the \
                         directory or the tags",
                        &[],
                    ),
                    word("sort", "the order; activity by default", &SessionSort::NAMES),
                ],
                response: ResponseKind::Json(of::<SessionList>),
                ..operation(
                    "get",
                    "listSessions",
                    Some(Scope::Watch),
                    "List sessions, the last active first",
                )
            },
            Operation {
                headers: &[KEY],
                body: Some(of::<SessionRequest>),
                status: 201,
                response_headers: &[word("Location", "the path of the session", &[])],
                response: ResponseKind::Json(of::<SessionSummary>),
                ..operation(
                    "post",
                    "createSession",
                    Some(Scope::Drive),
                    "Start or resume a session",
                )
            },
        ],
    },
    Route {
        path: "/v1/sessions/{id}",
        methods: || get(rest::show).patch(rest::configure).delete(rest::delete),
        operations: &[
            Operation {
                response: ResponseKind::Json(of::<SessionDetails>),
                ..operation("get", "getSession", Some(Scope::Watch), "Show a session")
            },
            Operation {
                body: Some(of::<SessionChange>),
                response: ResponseKind::Json(of::<SessionSummary>),
                ..operation(
                    "patch",
                    "configureSession",
                    Some(Scope::Drive),
                    "Change the title, the pin, the tags, the model or the mode of a session",
                )
            },
            operation(
                "delete",
                "forgetSession",
                Some(Scope::Admin),
                "Stop a session if it is running, and delete it",
            ),
        ],
    },
    Route {
        path: "/v1/sessions/{id}/events",
        methods: || get(events::events),
        operations: &[Operation {
            query: &[
                AFTER,
                number("before", "a page of the newest events before this number", 0, MOST),
                amount("limit", "page size", 1, 10_000),
                amount("wait", "how many seconds a page waits for its first event", 0, 60),
                PROFILE,
            ],
            headers: &[number(
                "Last-Event-ID",
                "the same as after; takes precedence over it",
                0,
                MOST,
            )],
            response: ResponseKind::Events,
            or: Some((204, "A stream has nothing more to send: the session has ended")),
            response_headers: &[RESUME],
            ..operation(
                "get",
                "listEvents",
                Some(Scope::Watch),
                "Read events: a page, or a stream with Accept: text/event-stream",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/events/{seq}",
        methods: || get(events::event),
        operations: &[Operation {
            query: &[PROFILE],
            response: ResponseKind::Json(of::<Event<'static>>),
            ..operation("get", "getEvent", Some(Scope::Watch), "Read one event")
        }],
    },
    Route {
        path: "/v1/sessions/{id}/ws",
        methods: || get(socket::unified),
        operations: &[Operation {
            query: &[AFTER, PROFILE],
            status: 101,
            response: ResponseKind::Unified,
            response_headers: &[RESUME],
            ..operation("get", "openSession", Some(Scope::Watch), "WebSocket: events and commands")
        }],
    },
    Route {
        path: "/v1/ws",
        methods: || get(socket::all),
        operations: &[Operation {
            status: 101,
            response: ResponseKind::Unified,
            ..operation(
                "get",
                "openGateway",
                Some(Scope::Watch),
                "WebSocket: events of many sessions, commands, and changes of all sessions",
            )
        }],
    },
    Route {
        path: "/v1/watch",
        methods: || get(watch::watch),
        operations: &[Operation {
            query: &[
                word("after", "the cursor of the last message that the client has", &[]),
                amount("wait", "how many seconds a single message waits for a change", 0, 60),
            ],
            headers: &[word("Last-Event-ID", "the same as after; takes precedence over it", &[])],
            response: ResponseKind::Changes,
            ..operation(
                "get",
                "watchSessions",
                Some(Scope::Watch),
                "All sessions and open requests, then changes: one message, or a stream with Accept: text/event-stream",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/prompt",
        methods: || post(rest::prompt),
        operations: &[Operation {
            headers: &[KEY],
            body: Some(of::<Prompt>),
            status: 202,
            response: ResponseKind::Json(of::<PromptResult>),
            ..operation("post", "promptSession", Some(Scope::Drive), "Send a prompt to a session")
        }],
    },
    Route {
        path: "/v1/sessions/{id}/queue",
        methods: || get(queue::list),
        operations: &[Operation {
            response: ResponseKind::Json(of::<PromptQueue>),
            ..operation(
                "get",
                "listQueue",
                Some(Scope::Watch),
                "List the prompts that wait for their turn",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/queue/{message}",
        methods: || patch(queue::edit).delete(queue::cancel),
        operations: &[
            Operation {
                body: Some(of::<NewText>),
                ..operation(
                    "patch",
                    "editPrompt",
                    Some(Scope::Drive),
                    "Change the text of a prompt that waits for its turn",
                )
            },
            operation(
                "delete",
                "cancelPrompt",
                Some(Scope::Drive),
                "Cancel a prompt that waits for its turn",
            ),
        ],
    },
    Route {
        path: "/v1/sessions/{id}/interrupt",
        methods: || post(rest::interrupt),
        operations: &[Operation {
            body: Some(of::<InterruptFields>),
            needs_body: false,
            response: ResponseKind::Json(of::<InterruptResult>),
            ..operation(
                "post",
                "interruptSession",
                Some(Scope::Drive),
                "Stop the turn; the session stays open",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/stop",
        methods: || post(rest::stop),
        operations: &[Operation {
            response: ResponseKind::Json(of::<SessionSummary>),
            ..operation("post", "stopSession", Some(Scope::Drive), "End a session")
        }],
    },
    Route {
        path: "/v1/sessions/{id}/finish",
        methods: || post(rest::finish),
        operations: &[Operation {
            ..operation(
                "post",
                "finishSession",
                Some(Scope::Drive),
                "End a session once its work is done",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/rewind",
        methods: || post(rest::rewind),
        operations: &[Operation {
            body: Some(of::<RewindFields>),
            response: ResponseKind::Json(of::<Json<'static>>),
            ..operation(
                "post",
                "rewindSession",
                Some(Scope::Drive),
                "Restore files to their state at a message",
            )
        }],
    },
    Route {
        path: "/v1/sessions/{id}/query",
        methods: || post(rest::query_agent),
        operations: &[Operation {
            body: Some(of::<QueryFields>),
            response: ResponseKind::Json(of::<rest::QueryResult>),
            ..operation("post", "querySession", Some(Scope::Drive), "Query a session's agent")
        }],
    },
    Route {
        path: "/v1/sessions/{id}/requests/{request}",
        methods: || get(inbox::show).post(inbox::settle),
        operations: &[
            Operation {
                response: ResponseKind::Json(of::<OpenRequest>),
                ..operation("get", "getRequest", Some(Scope::Watch), "Show an open request")
            },
            Operation {
                body: Some(of::<openapi::Settlement>),
                ..operation(
                    "post",
                    "settleRequest",
                    Some(Scope::Approve),
                    "Answer a request; requestId may be omitted",
                )
            },
        ],
    },
    Route {
        path: "/v1/requests",
        methods: || get(inbox::list),
        operations: &[Operation {
            query: &[
                word("state", "state of the requests", &["open"]),
                word("sessionId", "only requests of this session", &[]),
            ],
            response: ResponseKind::Json(of::<RequestList>),
            ..operation(
                "get",
                "listRequests",
                Some(Scope::Watch),
                "List the open requests of all sessions",
            )
        }],
    },
    Route {
        path: "/v1/usage",
        methods: || get(reports::usage),
        operations: &[Operation {
            query: &[
                word("from", "only turns that ended at this time or later, RFC 3339", &[]),
                word("to", "only turns that ended before this time, RFC 3339", &[]),
                word("bin", "the length of a row in time", &UsageBin::NAMES),
                word("by", "what rows tell apart", &UsageBy::NAMES),
            ],
            response: ResponseKind::Json(of::<UsageReport>),
            ..operation(
                "get",
                "getUsage",
                Some(Scope::Watch),
                "Report the usage of turns that have ended",
            )
        }],
    },
    Route {
        path: "/v1/search",
        methods: || get(reports::search),
        operations: &[Operation {
            query: &[
                word("q", "the words; in double quotes, they must follow each other", &[]),
                word("sessionId", "only in this session", &[]),
                word("type", "only texts of events of this type", &SearchQuery::TYPES),
                word("after", "the next of the previous page", &[]),
                amount("limit", "page size", 1, SearchResult::LIMIT as u64),
            ],
            response: ResponseKind::Json(of::<SearchResult>),
            ..operation(
                "get",
                "search",
                Some(Scope::Watch),
                "Search in prompts, answers, thinking, calls and paths",
            )
        }],
    },
    Route {
        path: "/v1/tickets",
        methods: || post(rest::ticket),
        operations: &[Operation {
            status: 201,
            response: ResponseKind::Json(of::<rest::Ticket>),
            ..operation(
                "post",
                "createTicket",
                Some(Scope::Watch),
                "Create a ticket for one WebSocket of a browser, valid for 30 s",
            )
        }],
    },
    Route {
        path: "/v1/agents",
        methods: || get(rest::agents),
        operations: &[Operation {
            response: ResponseKind::Json(openapi::agents),
            ..operation("get", "listAgents", Some(Scope::Watch), "List the installed agents")
        }],
    },
    Route {
        path: "/v1/status",
        methods: || get(rest::status),
        operations: &[Operation {
            response: ResponseKind::Json(of::<rest::ServerStatus>),
            ..operation("get", "getStatus", Some(Scope::Watch), "Show the status of the server")
        }],
    },
    Route {
        path: "/metrics",
        methods: || get(metrics::metrics),
        operations: &[Operation {
            response: ResponseKind::Text("text/plain"),
            ..operation(
                "get",
                "getMetrics",
                Some(Scope::Watch),
                "The server's metrics, for Prometheus",
            )
        }],
    },
    Route {
        path: "/openapi.json",
        methods: || get(openapi::document),
        operations: &[Operation {
            response: ResponseKind::Json(openapi::anything),
            ..operation("get", "getOpenapi", Some(Scope::Watch), "This API description")
        }],
    },
    Route {
        path: "/docs",
        methods: || get(openapi::page),
        operations: &[Operation {
            response: ResponseKind::Text("text/html"),
            ..operation("get", "getDocs", Some(Scope::Watch), "This API description, as a web page")
        }],
    },
    Route {
        path: "/api/sessions",
        methods: || post(board::create),
        operations: &[Operation {
            headers: &[KEY],
            body: Some(of::<board::BoardSessionRequest>),
            response: ResponseKind::Json(of::<board::BoardSession>),
            ..operation("post", "createBoardSession", Some(Scope::Drive), "Board: start a session")
        }],
    },
    Route {
        path: "/api/sessions/{id}",
        methods: || get(board::show),
        operations: &[Operation {
            response: ResponseKind::Json(of::<board::BoardSession>),
            ..operation("get", "getBoardSession", Some(Scope::Watch), "Board: show a session")
        }],
    },
    Route {
        path: "/api/sessions/{id}/events",
        methods: || get(board::events),
        operations: &[Operation {
            query: &[
                number("offset", "how many events to skip", 0, MOST),
                amount("limit", "page size", 1, 1000),
            ],
            response: ResponseKind::Json(of::<board::BoardEventPage>),
            ..operation("get", "listBoardEvents", Some(Scope::Watch), "Board: list events")
        }],
    },
    Route {
        path: "/api/sessions/{id}/cancel",
        methods: || post(board::cancel),
        operations: &[Operation {
            response: ResponseKind::Json(of::<board::BoardSession>),
            ..operation("post", "cancelBoardSession", Some(Scope::Drive), "Board: stop a session")
        }],
    },
    Route {
        path: "/ws/sessions/{id}",
        methods: || get(socket::board),
        operations: &[Operation {
            status: 101,
            response: ResponseKind::Socket,
            ..operation("get", "openBoardSession", Some(Scope::Watch), "Board: WebSocket of events")
        }],
    },
    Route {
        path: "/insights",
        methods: || get(socket::insights),
        operations: &[Operation {
            status: 101,
            response: ResponseKind::Socket,
            ..operation("get", "openInsights", Some(Scope::Watch), "WebSocket: insights")
        }],
    },
    Route {
        path: "/rpc",
        methods: || get(socket::rpc),
        operations: &[Operation {
            status: 101,
            response: ResponseKind::Socket,
            ..operation("get", "openRpc", Some(Scope::Watch), "WebSocket: JSON-RPC 2.0")
        }],
    },
];

/// Whether this request needs no token.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    let route = ROUTES.iter().find(|route| route.path == path);
    let operations = route.map(|route| route.operations).unwrap_or_default();
    let is_same = |operation: &Operation| method.as_str().eq_ignore_ascii_case(operation.method);
    // Under /v1/, only the listed methods are open. At other open paths, any method is let through, so that
    // a wrong one gets 405.
    !operations.is_empty()
        && operations.iter().all(|operation| operation.scope.is_none())
        && (!path.starts_with("/v1/") || operations.iter().any(is_same))
}

/// Whether the path is a WebSocket.
pub(super) fn is_socket(path: &str) -> bool {
    let is_at = |route: &&Route| {
        let (wanted, given) = (route.path.split('/'), path.split('/'));
        wanted.clone().count() == given.clone().count()
            && wanted.zip(given).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
    };
    let mut operations = ROUTES.iter().filter(is_at).flat_map(|route| route.operations);
    operations
        .any(|operation| matches!(operation.response, ResponseKind::Socket | ResponseKind::Unified))
}

/// Whether the request answers a request of an agent: a denial is never refused for its form.
pub(super) fn is_settlement(method: &Method, path: &str) -> bool {
    let mut parts = path.split('/').rev();
    *method == Method::POST && parts.nth(1) == Some("requests")
}

pub(super) fn main(app: App) -> Router {
    let router = ROUTES
        .iter()
        .fold(Router::new(), |router, route| router.route(route.path, (route.methods)()));
    guarded(router, app)
}

/// The only route of the insights address.
pub(super) fn insights(app: App) -> Router {
    guarded(Router::new().route("/", get(socket::insights)), app)
}

fn guarded(router: Router<App>, app: App) -> Router {
    router
        .fallback(|| async { Problem::no_route() })
        .method_not_allowed_fallback(|| async { Problem::no_method() })
        .layer(axum::middleware::from_fn_with_state(app.clone(), auth::authenticate))
        .layer(axum::middleware::from_fn_with_state(app.clone(), metrics::observe))
        .with_state(app)
}
