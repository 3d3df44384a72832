//! A session's requests to its user: permissions, and questions one at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{Json, MAIN_AGENT, Settlement};

use super::messages::{Choice, Permission, Question, of_agent};
use crate::claude::tools::ToolUse;

#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    /// Not shown yet: a request that a rule settles never is.
    raised: Vec<UnshownRequest>,
    /// The agents that wait for an answer, by request.
    open: BTreeMap<String, String>,
    /// Permissions that no page has answered.
    permissions: BTreeSet<String>,
    questions: VecDeque<Questions>,
}

#[derive(Debug)]
pub(super) struct UnshownRequest {
    pub(super) agent: String,
    pub(super) request: RequestRaised<'static>,
    /// The call that a permission is for.
    pub(super) tool: Option<ToolUse>,
}

/// The questions of one request; the answers arrive one after the other.
#[derive(Debug)]
struct Questions {
    agent: String,
    request: RequestRaised<'static>,
    answers: BTreeMap<String, Json<'static>>,
    /// The question that was answered last, once all are answered.
    sent: Option<String>,
}

pub(super) enum AnswerProgress {
    /// The request has another question.
    Next(Json<'static>),
    /// That was the last one.
    All(Box<Settlement>),
}

impl OpenRequests {
    pub(super) fn raise(&mut self, raised: UnshownRequest) {
        self.raised.push(raised);
    }

    /// The request was settled. Returns whether it had been shown.
    pub(super) fn settled(&mut self, id: &str) -> bool {
        self.raised.retain(|raised| &*raised.request.request_id.decode() != id);
        self.permissions.remove(id);
        self.questions.retain(|open| &*open.request.request_id.decode() != id);
        self.open.remove(id).is_some()
    }

    pub(super) fn take_raised(&mut self) -> Vec<UnshownRequest> {
        std::mem::take(&mut self.raised)
    }

    /// The request is shown: its agent waits for the answer.
    pub(super) fn wait(&mut self, raised: &UnshownRequest) {
        self.open.insert(raised.request.request_id.to_string(), raised.agent.clone());
    }

    pub(super) fn waits(&self, agent: &str) -> bool {
        self.open.values().any(|asker| asker == agent)
    }

    /// Shows a request. Of several questions it shows the first, or all of them if nobody will answer.
    pub(super) fn ask(
        &mut self,
        session: &str,
        raised: UnshownRequest,
        is_recorded: bool,
        say: &mut dyn FnMut(Json<'static>),
    ) {
        let UnshownRequest { agent, request, tool } = raised;
        if let Some(tool) = tool {
            say(permission(session, &agent, &request, &tool));
            self.permissions.insert(request.request_id.to_string());
            return;
        }
        let open = Questions { agent, request, answers: BTreeMap::new(), sent: None };
        let count = if is_recorded { open.request.questions.len() } else { 1 };
        (0..count).filter_map(|at| open.frame(session, at)).for_each(say);
        self.questions.push_back(open);
    }

    /// Whether that permission is open. It is answered once.
    pub(super) fn permission(&mut self, id: &str) -> bool {
        self.permissions.remove(id)
    }

    /// Answers the question that the agent waits for. If no agent is named: the main agent's question, else
    /// the oldest.
    pub(super) fn answer(
        &mut self,
        session: &str,
        agent: Option<&str>,
        text: &str,
    ) -> Option<AnswerProgress> {
        let open = || self.questions.iter().filter(|open| open.sent.is_none());
        let of = |agent: &str| open().find(|open| open.agent == agent);
        let open = match agent {
            Some(agent) => of(agent),
            None => of(MAIN_AGENT).or_else(|| open().next()),
        }?;
        let id = open.request.request_id.to_string();
        let open = self.of(&id)?;
        let answered = open.take(text);
        if let Some(next) = open.open().and_then(|at| open.frame(session, at)) {
            return Some(AnswerProgress::Next(next));
        }
        open.sent = answered;
        let answers = Some(open.answers.clone());
        Some(AnswerProgress::All(Box::new(Settlement { answers, ..Settlement::allow(id) })))
    }

    /// The answer was not accepted: it may be given again while the request is open.
    pub(super) fn reopen(&mut self, id: &str) {
        if !self.open.contains_key(id) {
            return;
        }
        match self.of(id) {
            Some(open) => {
                let last = open.sent.take();
                last.iter().for_each(|last| drop(open.answers.remove(last)));
            }
            None => drop(self.permissions.insert(id.to_owned())),
        }
    }

    fn of(&mut self, id: &str) -> Option<&mut Questions> {
        self.questions.iter_mut().find(|open| &*open.request.request_id.decode() == id)
    }
}

fn permission(
    session: &str,
    agent: &str,
    request: &RequestRaised<'static>,
    tool: &ToolUse,
) -> Json<'static> {
    let fields = Permission {
        permission_id: &request.request_id,
        tool_name: &tool.name,
        tool_input: &tool.input,
        tool_use_id: request.tool_use_id.as_ref().unwrap_or(&request.request_id),
    };
    of_agent("permission.request", session, agent, fields)
}

impl Questions {
    /// The first question without an answer.
    fn open(&self) -> Option<usize> {
        self.request.questions.iter().position(|it| !self.answers.contains_key(&key(it)))
    }

    /// The message for that question. Each has its own id.
    fn frame(&self, session: &str, at: usize) -> Option<Json<'static>> {
        let question = self.request.questions.get(at)?;
        let options = question.options.iter().map(|option| Choice {
            label: &option.label,
            description: option.description.as_ref().filter(|words| !words.is_empty()),
        });
        let request = self.request.request_id.decode();
        let fields = Question {
            question_id: &match at {
                0 => request.into_owned(),
                more => format!("{request}-{}", more + 1),
            },
            question: &question.question,
            options: options.collect(),
        };
        Some(of_agent("agent.question", session, &self.agent, fields))
    }

    /// Answers the next question and returns its key.
    fn take(&mut self, text: &str) -> Option<String> {
        let answered = self.open().and_then(|at| self.request.questions.get(at)).map(key)?;
        self.answers.insert(answered.clone(), Json::of(&text));
        Some(answered)
    }
}

/// The key by which the agent knows the answer.
fn key(question: &agentwire_protocol::event::Question<'static>) -> String {
    question.id.as_ref().unwrap_or(&question.question).to_string()
}
