//! A request at the terminal: what is shown, and what each key means. It reads no keys itself.

use std::collections::BTreeMap;

use agentwire_protocol::command::Remember;
use agentwire_protocol::event::{
    Question, RequestKind, RequestOptionKind, RequestRaised, TRUST_DIRECTORY,
};
use agentwire_protocol::{Json, Settlement};

use super::layout::{Ink, Page};
use super::{decoded, input};

const KEYS: usize = 9;

#[derive(Debug)]
pub(crate) struct Dialog {
    request: RequestRaised<'static>,
    /// The subagent that asks, if it is not the main agent.
    agent: Option<String>,
    stage: Stage,
    answers: BTreeMap<String, Json<'static>>,
    /// Options chosen for the current question.
    chosen: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Asks whether the tool may run.
    Permission,
    /// Asks for a message with the denial.
    Reason,
    /// Asks for a key that answers this question.
    Choice(usize),
    /// Asks for a typed answer to this question.
    TypedAnswer(usize),
}

/// How to read the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One key at a time, without echo.
    Keys,
    Line,
    /// A line at a time, without echo.
    Secret,
}

/// What a key or a line did.
#[derive(Debug, PartialEq)]
pub(crate) enum DialogStep {
    /// Nothing.
    Same,
    /// The next stage.
    Next,
    Answer(Box<Settlement>),
    Interrupt,
}

impl Dialog {
    /// `None` if keys cannot answer the request.
    pub(crate) fn new(request: RequestRaised<'static>, agent: Option<String>) -> Option<Self> {
        let stage = match request.kind {
            RequestKind::Permission => Stage::Permission,
            RequestKind::Question if request.questions.is_empty() => Stage::Permission,
            RequestKind::Question => first_stage(request.questions.first()?, 0),
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => return None,
        };
        Some(Self { request, agent, stage, answers: BTreeMap::new(), chosen: Vec::new() })
    }

    pub(crate) fn id(&self) -> String {
        self.request.request_id.to_string()
    }

    pub(crate) fn tool(&self) -> Option<String> {
        decoded(self.request.tool_use_id.as_ref())
    }

    pub(crate) fn reading(&self) -> Reading {
        match self.stage {
            Stage::Permission | Stage::Choice(_) => Reading::Keys,
            Stage::Reason => Reading::Line,
            Stage::TypedAnswer(at) => {
                match self.question(at).is_some_and(|question| question.is_secret) {
                    true => Reading::Secret,
                    false => Reading::Line,
                }
            }
        }
    }

    /// Shows everything needed for an answer.
    pub(crate) fn show(&self, page: &mut Page, directory: Option<&str>) {
        let request = &self.request;
        if request.questions.is_empty() {
            let tool = request.tool_name.as_ref().filter(|_| !self.is_trust());
            let name = tool.or(request.title.as_ref()).or(request.name.as_ref());
            let name = decoded(name).unwrap_or_else(|| "The agent".to_owned());
            let of = self.agent.as_ref().map(|agent| format!("  ({agent})")).unwrap_or_default();
            let asks = if tool.is_some() { " asks for permission" } else { "" };
            page.line(&[
                (Ink::Yellow, "? "),
                (Ink::Bold, &name),
                (Ink::Plain, asks),
                (Ink::Dim, &of),
            ]);
            page.indent += 2;
            if let Some(input) = &request.input {
                input::show(page, input, directory);
            }
            let path = request.blocked_path.as_ref().map(|path| format!("because of {path}"));
            for why in [decoded(request.message.as_ref()), path].into_iter().flatten() {
                page.line(&[(Ink::Dim, &why)]);
            }
            page.indent -= 2;
        }
        self.show_stage(page);
    }

    /// Shows the current stage.
    pub(crate) fn show_stage(&self, page: &mut Page) {
        match self.stage {
            Stage::Permission => page.line(&[(Ink::Yellow, "  "), (Ink::Yellow, &self.legend())]),
            Stage::Reason => {}
            Stage::Choice(at) | Stage::TypedAnswer(at) => {
                let Some(question) = self.question(at) else { return };
                if matches!(self.stage, Stage::TypedAnswer(_)) && has_keys(question) {
                    return;
                }
                let header = question.header.as_ref().map(|header| format!("{header}: "));
                let of = match self.request.questions.len() {
                    1 => String::new(),
                    count => format!("  ({} of {count})", at + 1),
                };
                page.line(&[
                    (Ink::Yellow, "? "),
                    (Ink::Dim, &header.unwrap_or_default()),
                    (Ink::Bold, &question.question.decode()),
                    (Ink::Dim, &of),
                ]);
                for (number, option) in (1..).zip(&question.options) {
                    let mark = if self.chosen.contains(&(number - 1)) { "*" } else { " " };
                    let label = format!(" {mark}{number}. {}", option.label);
                    let means = option.description.as_ref().map(|text| format!("  {text}"));
                    page.line(&[(Ink::Plain, &label), (Ink::Dim, &means.unwrap_or_default())]);
                }
                if matches!(self.stage, Stage::Choice(_)) {
                    let how = if question.multi_select {
                        "  [1…] choose any  [enter] answer  [t] type an answer  [n] decline  [i] interrupt"
                    } else {
                        "  [1…] choose  [t] type an answer  [n] decline  [i] interrupt"
                    };
                    page.line(&[(Ink::Yellow, how)]);
                }
            }
        }
    }

    /// The text before the cursor.
    pub(crate) fn prompt(&self) -> &'static str {
        match self.stage {
            Stage::Permission => "allow? ",
            Stage::Reason => "  message for the agent (empty: back): ",
            Stage::Choice(_) => "your choice? ",
            Stage::TypedAnswer(at) => match self.question(at).is_some_and(has_keys) {
                true => "  your answer (empty: back): ",
                false => "  your answer (empty: decline): ",
            },
        }
    }

    /// Handles a key. Enter does nothing unless an option is chosen.
    pub(crate) fn key(&mut self, key: char) -> DialogStep {
        match (self.stage, key.to_ascii_lowercase()) {
            (Stage::Permission, 'y') if self.offers(RequestOptionKind::AllowOnce) => {
                self.answer(Settlement::allow(self.id()))
            }
            (Stage::Permission, 'a') if self.may_remember() => {
                let allow = Settlement::allow(self.id());
                self.answer(Settlement { remember: Some(Remember::Session), ..allow })
            }
            (Stage::Permission, 'n') => self.deny("The user denied this request."),
            (Stage::Permission, 'd') => self.go(Stage::Reason),
            (Stage::Permission | Stage::Choice(_), 'i') => DialogStep::Interrupt,
            (Stage::Choice(_), 'n') => self.deny("The user declined to answer."),
            (Stage::Choice(at), 't') => self.go(Stage::TypedAnswer(at)),
            (Stage::Choice(at), '\r' | '\n') if !self.chosen.is_empty() => self.take_chosen(at),
            (Stage::Choice(at), digit) => self.choose(at, digit),
            (Stage::Permission | Stage::Reason | Stage::TypedAnswer(_), _) => DialogStep::Same,
        }
    }

    /// Handles a line.
    pub(crate) fn line(&mut self, line: &str) -> DialogStep {
        let line = line.trim();
        match self.stage {
            Stage::Reason if line.is_empty() => self.go(Stage::Permission),
            Stage::Reason => self.deny(line),
            Stage::TypedAnswer(at) => {
                let Some(question) = self.question(at) else { return DialogStep::Same };
                match (line.is_empty(), has_keys(question)) {
                    (true, true) => self.go(Stage::Choice(at)),
                    (true, false) => self.deny("The user declined to answer."),
                    (false, has_keys) => {
                        let numbers = if has_keys { None } else { numbered(question, line) };
                        let answer = numbers.unwrap_or_else(|| Json::of(&line));
                        self.answered(at, answer)
                    }
                }
            }
            Stage::Permission | Stage::Choice(_) => DialogStep::Same,
        }
    }

    fn question(&self, at: usize) -> Option<&Question<'static>> {
        self.request.questions.get(at)
    }

    fn legend(&self) -> String {
        let keys = [
            self.offers(RequestOptionKind::AllowOnce).then_some("[y] allow"),
            self.may_remember().then_some("[a] always in this session"),
            Some("[n] deny"),
            Some("[d] deny with a message"),
            Some("[i] interrupt"),
        ];
        keys.into_iter().flatten().collect::<Vec<_>>().join("  ")
    }

    /// An agent that lists its options accepts no others.
    fn offers(&self, kind: RequestOptionKind) -> bool {
        let options = &self.request.options;
        options.is_empty() || options.iter().any(|option| option.kind == kind)
    }

    fn may_remember(&self) -> bool {
        self.request.tool_name.is_some()
            && !self.request.allow_is_once
            && !self.is_trust()
            && self.offers(RequestOptionKind::AllowAlways)
    }

    /// The gateway asks whether to trust the project. It always remembers the answer.
    fn is_trust(&self) -> bool {
        self.request.tool_name.as_ref().is_some_and(|name| *name == *TRUST_DIRECTORY)
    }

    fn go(&mut self, stage: Stage) -> DialogStep {
        self.stage = stage;
        DialogStep::Next
    }

    fn deny(&self, message: &str) -> DialogStep {
        self.answer(Settlement::deny(self.id(), message))
    }

    /// The digest binds the answer to what was shown.
    fn answer(&self, settlement: Settlement) -> DialogStep {
        let input_digest = Some(self.request.input_digest.clone());
        DialogStep::Answer(Box::new(Settlement { input_digest, ..settlement }))
    }

    fn choose(&mut self, at: usize, digit: char) -> DialogStep {
        let Some(question) = self.question(at) else { return DialogStep::Same };
        let number = digit.to_digit(10).map_or(0, |digit| digit as usize);
        let Some(option) = number.checked_sub(1).filter(|index| *index < question.options.len())
        else {
            return DialogStep::Same;
        };
        let multi_select = question.multi_select;
        match self.chosen.iter().position(|chosen| *chosen == option) {
            Some(place) => {
                self.chosen.remove(place);
            }
            None => self.chosen.push(option),
        }
        if multi_select { DialogStep::Next } else { self.take_chosen(at) }
    }

    fn take_chosen(&mut self, at: usize) -> DialogStep {
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.sort_unstable();
        let Some(question) = self.question(at) else { return DialogStep::Same };
        let answer = labels(question, &chosen);
        self.answered(at, answer)
    }

    fn answered(&mut self, at: usize, answer: Json<'static>) -> DialogStep {
        let Some(question) = self.question(at) else { return DialogStep::Same };
        let key = question.id.as_ref().unwrap_or(&question.question).to_string();
        self.answers.insert(key, answer);
        self.chosen.clear();
        match self.question(at + 1) {
            Some(next) => {
                let stage = first_stage(next, at + 1);
                self.go(stage)
            }
            None => {
                let answers = Some(std::mem::take(&mut self.answers));
                let allow = Settlement::allow(self.id());
                self.answer(Settlement { behavior: None, answers, ..allow })
            }
        }
    }
}

fn has_keys(question: &Question<'_>) -> bool {
    (1..=KEYS).contains(&question.options.len())
}

fn first_stage(question: &Question<'_>, at: usize) -> Stage {
    if has_keys(question) { Stage::Choice(at) } else { Stage::TypedAnswer(at) }
}

/// The options that a line of numbers names.
fn numbered(question: &Question<'_>, line: &str) -> Option<Json<'static>> {
    let words = line.split([',', ' ']).filter(|word| !word.is_empty());
    let chosen: Option<Vec<usize>> = words
        .map(|word| {
            let index = word.parse::<usize>().ok()?.checked_sub(1)?;
            (index < question.options.len()).then_some(index)
        })
        .collect();
    let chosen = chosen.filter(|chosen| question.multi_select || chosen.len() == 1)?;
    Some(labels(question, &chosen))
}

/// Interprets an answer: options by number or label, else the text itself.
pub(crate) fn meant(question: &Question<'_>, line: &str) -> Json<'static> {
    let line = line.trim();
    let is_label = |label: &str| label.eq_ignore_ascii_case(line);
    let labelled = question.options.iter().position(|option| is_label(&option.label.decode()));
    match numbered(question, line) {
        Some(answer) => answer,
        None => labelled.map_or_else(|| Json::of(&line), |index| labels(question, &[index])),
    }
}

/// One label, or a list if the question allows several.
fn labels(question: &Question<'_>, chosen: &[usize]) -> Json<'static> {
    let labels = chosen.iter().filter_map(|index| question.options.get(*index));
    let labels: Vec<String> = labels.map(|option| option.label.to_string()).collect();
    match labels.as_slice() {
        [label] if !question.multi_select => Json::of(label),
        labels => Json::of(&labels),
    }
}

#[cfg(test)]
#[path = "dialog_tests.rs"]
mod tests;
