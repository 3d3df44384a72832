//! `agentwire permit`: lists and answers requests.

mod inbox;

use std::collections::BTreeMap;

use agentwire_client::OpenRequest;
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{ErrorCode, GatewayError, Json, Settlement};

use crate::args::{At, Global, Permit, PermitVerb};
use crate::failure::Failure;
use crate::source::{self, Source};
use crate::view::dialog::meant;
use crate::{format, print, view};

pub(crate) fn run(global: &Global, args: &Permit) -> Result<(), Failure> {
    match &args.verb {
        PermitVerb::Ls { json, at } => {
            source::open(global, at, async |source| inbox::list(source, *json).await)
        }
        PermitVerb::Allow { request, input, remember, at } => {
            settle(global, at, request, "allowed", |open| {
                if !open.request.questions.is_empty() {
                    let message = "this is a question; answer it with `agentwire permit answer`";
                    return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
                }
                Ok(Settlement {
                    updated_input: input.clone(),
                    remember: Some(*remember),
                    ..Settlement::allow(open.request.request_id.to_string())
                })
            })
        }
        PermitVerb::Deny { request, message, at } => {
            settle(global, at, request, "denied", |open| {
                Ok(Settlement::deny(open.request.request_id.to_string(), message.as_str()))
            })
        }
        PermitVerb::Answer { request, answers, at } => {
            settle(global, at, request, "answered", |open| answered(open, answers))
        }
    }
}

/// Answers a request. The digest binds the answer to what was listed.
fn settle(
    global: &Global,
    at: &At,
    name: &str,
    how: &str,
    answer: impl Fn(&OpenRequest) -> Result<Settlement, GatewayError>,
) -> Result<(), Failure> {
    source::open(global, at, async |source| {
        let open = inbox::find(source, name).await?;
        let settlement =
            Settlement { input_digest: Some(open.request.input_digest.clone()), ..answer(&open)? };
        let session = source.reach(&open.session_id).await?.session()?;
        session.settle(settlement).await?;
        let directory = directory(source, &open).await;
        let about = format::line(&view::about(&open.request, directory.as_deref()));
        let short = format::short(open.session_id.as_str());
        print::done(&format!("{how}: {about}  (session {short})"));
        Ok(())
    })
}

/// The session's directory, to shorten paths within it.
async fn directory(source: &Source, open: &OpenRequest) -> Option<String> {
    source.summary(&open.session_id).await.ok()?.working_directory
}

/// One answer for each question.
fn answered(open: &OpenRequest, answers: &[String]) -> Result<Settlement, GatewayError> {
    let invalid = |message: String| GatewayError::new(ErrorCode::InvalidMessage, message);
    let questions = &open.request.questions;
    if questions.is_empty() {
        let message = match open.request.kind {
            RequestKind::Permission | RequestKind::Question => {
                "this is a permission request; use `agentwire permit allow` or `agentwire permit deny`"
            }
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                "only the program that drives the session can answer this request"
            }
        };
        return Err(invalid(message.to_owned()));
    }
    if questions.len() != answers.len() {
        let asked = questions.iter().map(|asked| format::line(&asked.question.decode()));
        let asked = asked.collect::<Vec<_>>();
        return Err(invalid(format!(
            "the request has {}, but you gave {}; the questions: {}",
            format::count(questions.len() as u64, "question"),
            format::count(answers.len() as u64, "answer"),
            asked.join(" · ")
        )));
    }
    let keyed = questions.iter().zip(answers).map(|(question, answer)| {
        let key = question.id.as_ref().unwrap_or(&question.question).to_string();
        (key, meant(question, answer))
    });
    let answers: BTreeMap<String, Json<'static>> = keyed.collect();
    let allow = Settlement::allow(open.request.request_id.to_string());
    Ok(Settlement { behavior: None, answers: Some(answers), ..allow })
}
