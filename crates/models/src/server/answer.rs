//! Answers one request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Shared;
use crate::api::{Api, ApiCall, ApiRequest, apis};
use crate::conversation::Conversation;
use crate::planner::ResponseSteps;
use crate::request_record::RecordedRequest;
use crate::response_plan::{Block, End, Failure, ResponsePlan};
use crate::stream_body::{After, Frame, StreamBody, stream_body};

/// The size limit of a request.
const LARGEST: usize = 64 * 1024 * 1024;

/// The only model name that is refused.
const NO_MODEL: &str = "no-such-model";

type HttpResponse = Response<Either<Full<Bytes>, StreamBody>>;

pub(super) async fn answer(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<HttpResponse, Infallible> {
    let (head, body) = request.into_parts();
    let read = Limited::new(body, LARGEST).collect().await;
    let mut request = ApiRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: Bytes::new(),
    };
    let failure = match read {
        Ok(body) => {
            request.body = body.to_bytes();
            None
        }
        Err(_) => Some(Failure::new(413, "failed to read the body: more than 64 MiB, or cut off")),
    };
    let api = apis().into_iter().find(|api| api.owns(&request));
    let number = shared.record().note(RecordedRequest::new(&request, api.map(Api::name)));
    let id = shared.id();
    let answer = match (api, failure) {
        (Some(api), Some(failure)) => refuse(api, &failure, &id),
        (Some(api), None) => answer_api(&shared, api, &request, number, &id),
        (None, _) if request.path == "/" => hello(),
        (None, _) => unknown(&shared, number, &request),
    };
    let status = answer.status().as_u16();
    let seen = shared.record().change(number, |seen| seen.status = status);
    if let (Some(watch), Some(seen)) = (&shared.watch, seen) {
        watch(&seen);
    }
    Ok(answer)
}

fn answer_api(
    shared: &Arc<Shared>,
    api: &'static dyn Api,
    request: &ApiRequest,
    number: u64,
    id: &str,
) -> HttpResponse {
    match api.read(request) {
        Ok(ApiCall::Turn(conversation)) => {
            shared.record().change(number, |seen| {
                seen.model = Some(conversation.model.clone());
                seen.side = conversation.side.is_some();
            });
            if conversation.model == NO_MODEL {
                return refuse(api, &api.no_model(&conversation.model), id);
            }
            turn(shared, api, &conversation, number, id, request.body.len())
        }
        Ok(ApiCall::Value(value)) => whole(200, api.headers(id, None), value.to_string().into()),
        Ok(ApiCall::Stream(frames)) => {
            shared.record().change(number, |seen| seen.side = true);
            stream(stream_body(frames, After::Close, || {}), api.headers(id, None))
        }
        Ok(ApiCall::Unknown) => {
            shared.record().note_unknown(number);
            refuse(api, &not_found(request), id)
        }
        Err(failure) => refuse(api, &failure, id),
    }
}

fn turn(
    shared: &Arc<Shared>,
    api: &'static dyn Api,
    conversation: &Conversation,
    number: u64,
    id: &str,
    size: usize,
) -> HttpResponse {
    let steps = match ResponseSteps::find(conversation) {
        Ok(steps) => steps,
        Err(failure) => return refuse(api, &failure, id),
    };
    let key = steps.counts().then_some(steps.key);
    let attempt = key.map_or(0, |key| shared.attempts().next(key));
    let plan = steps.plan(conversation, attempt, id, size);
    if let Some(key) = key
        && !plan.passing
    {
        shared.attempts().forget(key);
    }
    let after = match &plan.end {
        End::Fail(failure) if plan.blocks.is_empty() || !conversation.stream => {
            let mut answer = refuse(api, failure, id);
            answer.headers_mut().extend(plan.headers);
            return answer;
        }
        End::Fail(_) | End::Stop(_) => After::Close,
        End::Hang => After::Hang,
        End::Cut => After::Cut,
    };
    let frames = if conversation.stream { api.stream(&plan) } else { unstreamed(api, &plan) };
    let (recorder, usage) = (Arc::clone(shared), api.reported_usage(plan.usage));
    let body = stream_body(frames, after, move || recorder.record().report(number, usage));
    let mut answer = stream(body, api.headers(id, None));
    if !conversation.stream {
        answer.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    }
    answer.headers_mut().extend(plan.headers);
    answer
}

fn stream(body: StreamBody, headers: Vec<(String, String)>) -> HttpResponse {
    let mut answer = Response::new(Either::Right(body));
    answer.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
    add(&mut answer, headers);
    answer
}

/// A response without streaming; only the first half if it breaks.
fn unstreamed(api: &dyn Api, plan: &ResponsePlan) -> Vec<Frame> {
    if plan.blocks.iter().any(|block| matches!(block, Block::Garbage)) {
        return vec![Frame::new("this is not JSON")];
    }
    let body = Bytes::from(api.whole(plan).to_string());
    match plan.end {
        End::Stop(_) | End::Fail(_) => vec![Frame::new(body).reporting_usage()],
        End::Hang | End::Cut => vec![Frame::new(body.slice(..body.len() / 2))],
    }
}

fn refuse(api: &dyn Api, failure: &Failure, id: &str) -> HttpResponse {
    let mut headers = api.headers(id, Some(failure));
    if let Some(seconds) = failure.retry_after {
        headers.push(("retry-after".to_owned(), seconds.to_string()));
    }
    whole(failure.status, headers, api.failure(failure, id).to_string().into())
}

/// Claude Code 2.1.197 checks that the server is there before it sends a request.
fn hello() -> HttpResponse {
    let names = apis().map(Api::name);
    whole(200, Vec::new(), json!({"server": "agentwire", "apis": names}).to_string().into())
}

fn unknown(shared: &Shared, number: u64, request: &ApiRequest) -> HttpResponse {
    shared.record().note_unknown(number);
    let body: Value = json!({"error": {"message": not_found(request).message}});
    whole(404, Vec::new(), body.to_string().into())
}

fn not_found(request: &ApiRequest) -> Failure {
    let ApiRequest { method, path, .. } = request;
    Failure::new(404, format!("no model API has {method} {path}"))
}

fn whole(status: u16, headers: Vec<(String, String)>, body: Bytes) -> HttpResponse {
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    answer.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    add(&mut answer, headers);
    answer
}

/// Adds headers, except invalid ones.
fn add(answer: &mut HttpResponse, headers: Vec<(String, String)>) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            answer.headers_mut().insert(name, value);
        }
    }
}
