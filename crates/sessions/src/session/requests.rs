//! Open and settled requests: what the session knows about them in addition to their events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use agentwire_dialects::describe::{CallFacts, Description};
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{Answer, ErrorCode, GatewayError, Json};
use serde_json::json;
use tokio::time::Instant;

use super::pending_request::PendingRequest;

/// How many settled requests are remembered. A client that answers late learns how the request ended.
const SETTLED_LIMIT: usize = 1024;

#[derive(Default)]
pub(super) struct Requests {
    /// When an open request is denied because nobody answered.
    deadlines: BTreeMap<String, Instant>,
    /// Settled requests, oldest first.
    settled: VecDeque<SettledRequest>,
}

struct SettledRequest {
    id: String,
    /// How, and by whom.
    how: String,
    client: Option<Arc<str>>,
}

impl Requests {
    /// The request is denied at `until` if nobody has answered.
    pub(super) fn wait(&mut self, id: &str, until: Instant) {
        self.deadlines.insert(id.to_owned(), until);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.values().min().copied()
    }

    pub(super) fn take_late(&mut self, now: Instant) -> Vec<String> {
        self.deadlines.extract_if(.., |_, at| *at <= now).map(|(id, _)| id).collect()
    }

    /// The request is settled and waits no longer.
    pub(super) fn settled(&mut self, id: &str, how: String, client: Option<Arc<str>>) {
        self.deadlines.remove(id);
        if self.settled.len() >= SETTLED_LIMIT {
            self.settled.pop_front();
        }
        self.settled.push_back(SettledRequest { id: id.to_owned(), how, client });
    }

    /// Why a request that is not open cannot be answered.
    pub(super) fn not_open(&self, id: &str) -> GatewayError {
        let Some(SettledRequest { how, client, .. }) =
            self.settled.iter().find(|over| over.id == id)
        else {
            let message = format!("there is no open request {id} in this session");
            return GatewayError::new(ErrorCode::RequestNotFound, message);
        };
        let message = format!("request {id} is already settled: {how}");
        let (details, message) = match client {
            None => (json!({ "requestId": id, "settled": how }), message),
            Some(client) => (
                json!({ "requestId": id, "settled": how, "client": **client }),
                format!("{message} `{client}`"),
            ),
        };
        GatewayError {
            details: Some(Json::of(&details)),
            ..GatewayError::new(ErrorCode::RequestSettled, message)
        }
    }
}

/// Whether the answer allows a request of the gateway itself, about `what`.
pub(super) fn allows(answer: &Answer, what: &str) -> Result<bool, GatewayError> {
    match answer {
        Answer::Allow { .. } => Ok(true),
        Answer::Deny { .. } => Ok(false),
        Answer::Answers(_) | Answer::HookOutput(_) => {
            let message = format!("answer {what} with allow or deny");
            Err(GatewayError::new(ErrorCode::InvalidMessage, message))
        }
    }
}

/// Refuses an answer that does not fit the request.
pub(super) fn check_answer(raised: &PendingRequest, answer: &Answer) -> Result<(), GatewayError> {
    let id = &raised.id;
    let message = match (raised.kind, answer) {
        (
            RequestKind::Permission | RequestKind::Question,
            Answer::Allow { updated_input: Some(input), .. },
        ) if !input.get().starts_with('{') => "updatedInput must be an object".to_owned(),
        (RequestKind::Question, Answer::Answers(answers)) if !raised.questions.is_empty() => {
            match answers.keys().find(|key| !raised.questions.contains(key)) {
                Some(key) => format!("request {id} has no question `{key}`"),
                None => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    Err(GatewayError::new(ErrorCode::InvalidMessage, message))
}

/// What a request asks for, as the agent's dialect describes it.
pub(super) fn asked(raised: &PendingRequest) -> Description<'_> {
    let tool = raised.tool.as_ref();
    raised.tools.describe(&CallFacts {
        tool_name: raised.tool_name.as_deref().or(tool.map(|tool| tool.name.as_str())),
        is_title: tool.is_some_and(|tool| tool.is_title),
        call_id: raised.tool_use_id.as_deref(),
        kind: tool.map(|tool| tool.kind),
        input: raised.input.as_ref(),
        title: raised.title.as_deref(),
        server: tool.and_then(|tool| tool.server.as_deref()),
        blocked_path: raised.blocked_path.as_deref(),
        warns: raised.warns,
        moved: raised.moved,
        directory: None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn those_who_come_late_learn_how_a_request_ended() {
        let mut requests = Requests::default();
        assert_eq!(requests.not_open("a").code, ErrorCode::RequestNotFound);
        requests.settled("a", "allowed by client".to_owned(), Some("phone".into()));
        let error = requests.not_open("a");
        assert_eq!(error.code, ErrorCode::RequestSettled);
        assert!(error.message.ends_with("allowed by client `phone`"), "{}", error.message);
        for number in 0..SETTLED_LIMIT {
            requests.settled(&number.to_string(), "denied by gateway".to_owned(), None);
        }
        assert_eq!(requests.not_open("a").code, ErrorCode::RequestNotFound);
        assert_eq!(requests.not_open("0").code, ErrorCode::RequestSettled);
    }

    #[test]
    fn what_waits_too_long_is_found_once_and_never_after_its_answer() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut requests = Requests::default();
        for (id, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
            requests.wait(id, start + seconds * second);
        }
        assert_eq!(requests.deadline(), Some(start + second));
        requests.settled("a", "denied by client".to_owned(), None);
        assert_eq!(requests.take_late(start + second), [""; 0]);
        assert_eq!(requests.take_late(start + 2 * second), ["b"]);
        assert_eq!(requests.take_late(start + 2 * second), [""; 0]);
        assert_eq!(requests.deadline(), Some(start + 3 * second));
    }
}
