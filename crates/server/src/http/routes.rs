//! The routes: one table, from which the router and the OpenAPI document are made.

use agentwire_protocol::command::{InterruptFields, QueryFields, RewindFields};
use agentwire_protocol::reply::{
    InterruptResult, Nothing, OpenRequest, PromptResult, RequestList, SessionDetails, SessionList,
};
use agentwire_protocol::{Configure, Json, NewSession, Prompt, SessionRequest, SessionSummary};
use axum::Router;
use axum::routing::{MethodRouter, get, post};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::problem::Problem;
use super::{App, auth, board, events, inbox, metrics, openapi, rest, socket, web_page};
use crate::tokens::Scope;

pub(super) struct Place {
    pub(super) path: &'static str,
    pub(super) methods: fn() -> MethodRouter<App>,
    pub(super) acts: &'static [Act],
}

/// An operation: what a method does at a path.
pub(super) struct Act {
    pub(super) method: &'static str,
    /// The `operationId`.
    pub(super) name: &'static str,
    /// The scope that the client needs; none if no token is needed.
    pub(super) scope: Option<Scope>,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    /// The request headers.
    pub(super) headers: &'static [Parameter],
    pub(super) body: Option<Shape>,
    pub(super) needs_body: bool,
    pub(super) status: u16,
    pub(super) gives: Gives,
    /// Another status, without a body, and when it is sent.
    pub(super) or: Option<(u16, &'static str)>,
    /// The response headers.
    pub(super) tells: &'static [Parameter],
}

/// A parameter in a query or a header.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The JSON Schema type, and the limits: of a number, or of the length of a text.
    pub(super) kind: &'static str,
    pub(super) range: Option<(u64, u64)>,
    /// A number outside the range is clamped to it, not refused.
    pub(super) is_cut: bool,
    pub(super) values: &'static [&'static str],
}

pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The kind of a response.
pub(super) enum Gives {
    Json(Shape),
    /// A page of events, or a stream.
    Events,
    Text(&'static str),
    Socket,
    /// A WebSocket of the unified protocol.
    Unified,
}

pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn act(
    method: &'static str,
    name: &'static str,
    scope: Option<Scope>,
    summary: &'static str,
) -> Act {
    let gives = Gives::Json(of::<Nothing>);
    Act {
        method,
        name,
        scope,
        summary,
        query: &[],
        headers: &[],
        body: None,
        needs_body: true,
        status: 200,
        gives,
        or: None,
        tells: &[],
    }
}

const fn number(name: &'static str, about: &'static str, from: u64, to: u64) -> Parameter {
    Parameter { name, about, kind: "integer", range: Some((from, to)), is_cut: false, values: &[] }
}

/// A number that is clamped to its range.
const fn amount(name: &'static str, about: &'static str, from: u64, to: u64) -> Parameter {
    Parameter { is_cut: true, ..number(name, about, from, to) }
}

const fn word(
    name: &'static str,
    about: &'static str,
    values: &'static [&'static str],
) -> Parameter {
    Parameter { name, about, kind: "string", range: None, is_cut: false, values }
}

const MOST: u64 = u64::MAX;
const PROFILE: Parameter =
    word("profile", "core shows only the specification's twelve event types", &["core", "full"]);
const AFTER: Parameter =
    number("after", "the number of the last event that the client has", 0, MOST);
const KEY: Parameter = Parameter {
    range: Some((1, NewSession::KEY_LIMIT as u64)),
    is_cut: false,
    ..word("Idempotency-Key", "a request sent again with the same key counts once", &[])
};
const RESUME: Parameter =
    word("Agentwire-Resume", "exact, or missing FROM-TO: events that this log does not have", &[]);

/// All routes of the main address.
pub(super) const PLACES: &[Place] = &[
    Place {
        path: "/healthz",
        methods: || get(rest::healthz),
        acts: &[Act {
            gives: Gives::Text("text/plain"),
            ..act("get", "health", None, "Check that the server is up")
        }],
    },
    Place {
        path: "/",
        methods: || get(web_page::page),
        acts: &[Act {
            gives: Gives::Text("text/html"),
            ..act("get", "getPage", None, "The web page")
        }],
    },
    Place {
        path: "/page.js",
        methods: || get(web_page::script),
        acts: &[Act {
            gives: Gives::Text("text/javascript"),
            ..act("get", "getPageScript", None, "The script of the web page")
        }],
    },
    Place {
        path: "/page.css",
        methods: || get(web_page::style),
        acts: &[Act {
            gives: Gives::Text("text/css"),
            ..act("get", "getPageStyle", None, "The style sheet of the web page")
        }],
    },
    Place {
        path: "/v1/sign-in",
        methods: || post(web_page::sign_in),
        acts: &[Act {
            body: Some(of::<web_page::SignIn>),
            gives: Gives::Json(of::<web_page::SignedIn>),
            ..act(
                "post",
                "signIn",
                None,
                "Exchange a ticket from serve --open for the operator's token",
            )
        }],
    },
    Place {
        path: "/v1/sessions",
        methods: || get(rest::list).post(rest::create),
        acts: &[
            Act {
                query: &[
                    amount("limit", "page size", 1, 500),
                    word("after", "the last session of the previous page", &[]),
                    Parameter {
                        kind: "boolean",
                        ..word("live", "only sessions that have not ended", &[])
                    },
                ],
                gives: Gives::Json(of::<SessionList>),
                ..act("get", "listSessions", Some(Scope::Watch), "List sessions, newest first")
            },
            Act {
                headers: &[KEY],
                body: Some(of::<SessionRequest>),
                status: 201,
                tells: &[word("Location", "the path of the session", &[])],
                gives: Gives::Json(of::<SessionSummary>),
                ..act("post", "createSession", Some(Scope::Drive), "Start or resume a session")
            },
        ],
    },
    Place {
        path: "/v1/sessions/{id}",
        methods: || get(rest::show).patch(rest::configure).delete(rest::forget),
        acts: &[
            Act {
                gives: Gives::Json(of::<SessionDetails>),
                ..act("get", "getSession", Some(Scope::Watch), "Show a session")
            },
            Act {
                body: Some(of::<Configure>),
                gives: Gives::Json(of::<SessionSummary>),
                ..act(
                    "patch",
                    "configureSession",
                    Some(Scope::Drive),
                    "Change the model or the mode of a session",
                )
            },
            act(
                "delete",
                "forgetSession",
                Some(Scope::Admin),
                "Stop a session if it is running, and delete it",
            ),
        ],
    },
    Place {
        path: "/v1/sessions/{id}/events",
        methods: || get(events::events),
        acts: &[Act {
            query: &[
                AFTER,
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
            gives: Gives::Events,
            or: Some((204, "A stream has nothing more to send: the session has ended")),
            tells: &[RESUME],
            ..act(
                "get",
                "listEvents",
                Some(Scope::Watch),
                "Read events: a page, or a stream with Accept: text/event-stream",
            )
        }],
    },
    Place {
        path: "/v1/sessions/{id}/ws",
        methods: || get(socket::unified),
        acts: &[Act {
            query: &[AFTER, PROFILE],
            status: 101,
            gives: Gives::Unified,
            tells: &[RESUME],
            ..act("get", "openSession", Some(Scope::Watch), "WebSocket: events and commands")
        }],
    },
    Place {
        path: "/v1/sessions/{id}/prompt",
        methods: || post(rest::prompt),
        acts: &[Act {
            headers: &[KEY],
            body: Some(of::<Prompt>),
            status: 202,
            gives: Gives::Json(of::<PromptResult>),
            ..act("post", "promptSession", Some(Scope::Drive), "Send a prompt to a session")
        }],
    },
    Place {
        path: "/v1/sessions/{id}/interrupt",
        methods: || post(rest::interrupt),
        acts: &[Act {
            body: Some(of::<InterruptFields>),
            needs_body: false,
            gives: Gives::Json(of::<InterruptResult>),
            ..act(
                "post",
                "interruptSession",
                Some(Scope::Drive),
                "Stop the turn; the session stays open",
            )
        }],
    },
    Place {
        path: "/v1/sessions/{id}/stop",
        methods: || post(rest::stop),
        acts: &[Act {
            gives: Gives::Json(of::<SessionSummary>),
            ..act("post", "stopSession", Some(Scope::Drive), "End a session")
        }],
    },
    Place {
        path: "/v1/sessions/{id}/finish",
        methods: || post(rest::finish),
        acts: &[Act {
            ..act(
                "post",
                "finishSession",
                Some(Scope::Drive),
                "End a session once its work is done",
            )
        }],
    },
    Place {
        path: "/v1/sessions/{id}/rewind",
        methods: || post(rest::rewind),
        acts: &[Act {
            body: Some(of::<RewindFields>),
            gives: Gives::Json(of::<Json<'static>>),
            ..act(
                "post",
                "rewindSession",
                Some(Scope::Drive),
                "Restore files to their state at a message",
            )
        }],
    },
    Place {
        path: "/v1/sessions/{id}/query",
        methods: || post(rest::ask),
        acts: &[Act {
            body: Some(of::<QueryFields>),
            gives: Gives::Json(of::<rest::Queried>),
            ..act("post", "querySession", Some(Scope::Drive), "Query a session's agent")
        }],
    },
    Place {
        path: "/v1/sessions/{id}/requests/{request}",
        methods: || get(inbox::show).post(inbox::settle),
        acts: &[
            Act {
                gives: Gives::Json(of::<OpenRequest>),
                ..act("get", "getRequest", Some(Scope::Watch), "Show an open request")
            },
            Act {
                body: Some(of::<openapi::Settlement>),
                ..act(
                    "post",
                    "settleRequest",
                    Some(Scope::Approve),
                    "Answer a request; requestId may be omitted",
                )
            },
        ],
    },
    Place {
        path: "/v1/requests",
        methods: || get(inbox::list),
        acts: &[Act {
            query: &[
                word("state", "state of the requests", &["open"]),
                word("sessionId", "only requests of this session", &[]),
            ],
            gives: Gives::Json(of::<RequestList>),
            ..act(
                "get",
                "listRequests",
                Some(Scope::Watch),
                "List the open requests of all sessions",
            )
        }],
    },
    Place {
        path: "/v1/tickets",
        methods: || post(rest::ticket),
        acts: &[Act {
            status: 201,
            gives: Gives::Json(of::<rest::Ticket>),
            ..act(
                "post",
                "createTicket",
                Some(Scope::Watch),
                "Create a ticket for one WebSocket of a browser, valid for 30 s",
            )
        }],
    },
    Place {
        path: "/v1/agents",
        methods: || get(rest::agents),
        acts: &[Act {
            gives: Gives::Json(openapi::agents),
            ..act("get", "listAgents", Some(Scope::Watch), "List the installed agents")
        }],
    },
    Place {
        path: "/v1/status",
        methods: || get(rest::status),
        acts: &[Act {
            gives: Gives::Json(of::<rest::ServerStatus>),
            ..act("get", "getStatus", Some(Scope::Watch), "Show the status of the server")
        }],
    },
    Place {
        path: "/metrics",
        methods: || get(metrics::metrics),
        acts: &[Act {
            gives: Gives::Text("text/plain"),
            ..act("get", "getMetrics", Some(Scope::Watch), "The server's metrics, for Prometheus")
        }],
    },
    Place {
        path: "/openapi.json",
        methods: || get(openapi::document),
        acts: &[Act {
            gives: Gives::Json(openapi::anything),
            ..act("get", "getOpenapi", Some(Scope::Watch), "This API description")
        }],
    },
    Place {
        path: "/docs",
        methods: || get(openapi::page),
        acts: &[Act {
            gives: Gives::Text("text/html"),
            ..act("get", "getDocs", Some(Scope::Watch), "This API description, as a web page")
        }],
    },
    Place {
        path: "/api/sessions",
        methods: || post(board::create),
        acts: &[Act {
            headers: &[KEY],
            body: Some(of::<board::BoardSessionRequest>),
            gives: Gives::Json(of::<board::BoardSession>),
            ..act("post", "createBoardSession", Some(Scope::Drive), "Board: start a session")
        }],
    },
    Place {
        path: "/api/sessions/{id}",
        methods: || get(board::show),
        acts: &[Act {
            gives: Gives::Json(of::<board::BoardSession>),
            ..act("get", "getBoardSession", Some(Scope::Watch), "Board: show a session")
        }],
    },
    Place {
        path: "/api/sessions/{id}/events",
        methods: || get(board::events),
        acts: &[Act {
            query: &[
                number("offset", "how many events to skip", 0, MOST),
                amount("limit", "page size", 1, 1000),
            ],
            gives: Gives::Json(of::<board::BoardEventPage>),
            ..act("get", "listBoardEvents", Some(Scope::Watch), "Board: list events")
        }],
    },
    Place {
        path: "/api/sessions/{id}/cancel",
        methods: || post(board::cancel),
        acts: &[Act {
            gives: Gives::Json(of::<board::BoardSession>),
            ..act("post", "cancelBoardSession", Some(Scope::Drive), "Board: stop a session")
        }],
    },
    Place {
        path: "/ws/sessions/{id}",
        methods: || get(socket::board),
        acts: &[Act {
            status: 101,
            gives: Gives::Socket,
            ..act("get", "openBoardSession", Some(Scope::Watch), "Board: WebSocket of events")
        }],
    },
    Place {
        path: "/insights",
        methods: || get(socket::insights),
        acts: &[Act {
            status: 101,
            gives: Gives::Socket,
            ..act("get", "openInsights", Some(Scope::Watch), "WebSocket: insights")
        }],
    },
    Place {
        path: "/rpc",
        methods: || get(socket::rpc),
        acts: &[Act {
            status: 101,
            gives: Gives::Socket,
            ..act("get", "openRpc", Some(Scope::Watch), "WebSocket: JSON-RPC 2.0")
        }],
    },
];

/// Whether this request needs no token.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    let place = PLACES.iter().find(|place| place.path == path);
    let acts = place.map(|place| place.acts).unwrap_or_default();
    let is_same = |act: &Act| method.as_str().eq_ignore_ascii_case(act.method);
    // Under /v1/, only the listed methods are open. At other open paths, any method is let through, so that
    // a wrong one gets 405.
    !acts.is_empty()
        && acts.iter().all(|act| act.scope.is_none())
        && (!path.starts_with("/v1/") || acts.iter().any(is_same))
}

/// Whether the path is a WebSocket.
pub(super) fn is_socket(path: &str) -> bool {
    let is_at = |place: &&Place| {
        let (wanted, given) = (place.path.split('/'), path.split('/'));
        wanted.clone().count() == given.clone().count()
            && wanted.zip(given).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
    };
    let mut acts = PLACES.iter().filter(is_at).flat_map(|place| place.acts);
    acts.any(|act| matches!(act.gives, Gives::Socket | Gives::Unified))
}

pub(super) fn main(app: App) -> Router {
    let router = PLACES
        .iter()
        .fold(Router::new(), |router, place| router.route(place.path, (place.methods)()));
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
        .layer(axum::middleware::from_fn_with_state(app.clone(), auth::door))
        .layer(axum::middleware::from_fn_with_state(app.clone(), metrics::observe))
        .with_state(app)
}
