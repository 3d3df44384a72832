//! Forms that the agent wants filled in: each field is a question.

use std::borrow::Cow;

use agentwire_protocol::Text;
use agentwire_protocol::event::{Question, QuestionOption};

use super::requests::FormField;
use crate::json::Value;

/// The suffix with which claude-agent-acp names a question's field for an answer that is not among the
/// choices (fixture real-claude-question).
const OTHER: &str = "_custom";

/// The questions of a form's schema, and where the answers go. If the form has a single question, its text
/// may be in the form's message.
pub(super) fn form_questions<'d>(
    schema: Option<Value<'d>>,
    message: Option<&Text<'d>>,
) -> (Vec<Question<'d>>, Vec<FormField>) {
    let properties = schema.and_then(|schema| schema.get("properties"));
    let all: Vec<(Cow<'d, str>, Value<'d>)> =
        properties.into_iter().flat_map(Value::fields).collect();
    let has_choices = |id: &str| all.iter().any(|(own, schema)| own == id && is_choice(*schema));
    let is_other = |id: &str| id.strip_suffix(OTHER).is_some_and(has_choices);
    let asked_fields: Vec<_> = all.iter().filter(|(id, _)| !is_other(id)).collect();
    let message = message.filter(|_| asked_fields.len() == 1);
    let questions = asked_fields.into_iter().map(|(id, schema)| {
        let other = format!("{id}{OTHER}");
        let other = all.iter().any(|(own, _)| *own == other && is_other(own)).then_some(other);
        question(id.clone(), *schema, message, other)
    });
    questions.unzip()
}

fn is_choice(schema: Value<'_>) -> bool {
    let items = schema.get("items").unwrap_or(schema);
    ["enum", "oneOf", "anyOf"].iter().any(|name| items.get(name).is_some())
}

fn question<'d>(
    id: Cow<'d, str>,
    schema: Value<'d>,
    message: Option<&Text<'d>>,
    other: Option<String>,
) -> (Question<'d>, FormField) {
    let kind = schema.get("type").and_then(Value::string).unwrap_or_default();
    let items = schema.get("items").unwrap_or(schema);
    let labels = items.get("enum").into_iter().flat_map(Value::items).filter_map(Value::to);
    let mut options: Vec<QuestionOption<'d>> =
        labels.map(|label| QuestionOption { label, description: None }).collect();
    let titled = ["oneOf", "anyOf"].iter().filter_map(|name| items.get(name));
    options.extend(titled.flat_map(Value::items).filter_map(|choice| {
        let description = choice.read("description").or_else(|| choice.read("title"));
        Some(QuestionOption { label: choice.read("const")?, description })
    }));
    if kind == "boolean" {
        let words = ["true", "false"].map(Text::from);
        options.extend(words.map(|label| QuestionOption { label, description: None }));
    }
    let header: Option<Text<'d>> = schema.read("title");
    let described = schema.read("description").or_else(|| message.cloned());
    let question = described.or_else(|| header.clone()).unwrap_or_else(|| Text::new(id.clone()));
    let field = FormField {
        id: id.clone().into_owned(),
        question: question.to_string(),
        kind: kind.clone().into_owned(),
        choices: options.iter().map(|option| option.label.to_string()).collect(),
        other,
    };
    let question = Question {
        question,
        id: Some(Text::new(id)),
        header,
        options,
        multi_select: kind == "array",
        is_secret: false,
    };
    (question, field)
}
