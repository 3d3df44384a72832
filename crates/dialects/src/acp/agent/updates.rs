//! `session/update`: what the agent reports while it works.

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    ErrorEvent, Other, PlanEntry, PlanStatus, PlanUpdated, Status, StatusChanged, UsageReported,
};

use super::super::wire::{Block, Chunk, Notice, Notification, Usage};
use super::{Setting, Translator};
use crate::json::Value;
use crate::tape::Out;

impl Translator {
    pub(super) fn update(&mut self, params: Option<Value<'_>>, out: &mut Out<'_>) {
        let Some(read) = params.and_then(Value::to::<Notification<'_>>) else { return };
        let Some(update) = read.update else { return };
        let Some(kind) = update.get("sessionUpdate").and_then(Value::string) else { return };
        let is_content = matches!(
            &*kind,
            "user_message_chunk"
                | "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        );
        let is_ours = self.is_ours(read.session_id.as_deref(), out);
        if is_content {
            self.other_spoke = !is_ours;
        }
        if !is_ours {
            return out.emit(Other::named("otherSession"));
        }
        if is_content && self.replaying {
            return out.emit(Other::named("replay"));
        }
        let call = update.get("toolCallId").and_then(Value::string);
        self.spawn_waiting(call.as_deref(), out);
        match &*kind {
            "agent_message_chunk" => self.chunk(false, update, out),
            "agent_thought_chunk" => self.chunk(true, update, out),
            "user_message_chunk" => self.prompted(update, out),
            "tool_call" | "tool_call_update" => {
                let is_first = kind == "tool_call";
                update.to().into_iter().for_each(|call| self.tool_call(&call, is_first, out));
            }
            "plan" => self.plan(update, out),
            "available_commands_update" => self.commands_changed(update, out),
            "current_mode_update" => {
                if let Some(mode) = update.get("currentModeId").and_then(Value::string) {
                    self.mode_changed(&mode, out);
                }
            }
            "config_option_update" => {
                let options = update.get("configOptions");
                options.into_iter().for_each(|options| self.options_changed(options, out));
            }
            "session_info_update" => out.emit(
                StatusChanged::new(Status::Title)
                    .message(update.read::<Text<'_>>("title"))
                    .details(update.json()),
            ),
            "usage_update" => update.to().into_iter().for_each(|usage| self.usage(&usage, out)),
            "notice" => update.to().into_iter().for_each(|read| notice(read, out)),
            "compaction_update" => out.emit(compaction(update)),
            "compaction_summary_chunk" => out.emit(
                StatusChanged::new(Status::Compacting)
                    .message(update.get("content").and_then(|content| content.read("text")))
                    .details(update.json()),
            ),
            _ => out.emit(Other { name: Some(Text::from(&*kind)) }),
        }
    }

    /// Whether that is our session. A recording that starts in mid-session belongs to the first session it
    /// names.
    pub(super) fn is_ours(&mut self, session: Option<&str>, out: &Out<'_>) -> bool {
        match (session, &self.session) {
            (None, _) => true,
            (Some(id), Some(ours)) => id == ours,
            (Some(id), None) => {
                if out.is_recording() {
                    self.session = Some(id.to_owned());
                }
                true
            }
        }
    }

    fn chunk(&mut self, is_thought: bool, update: Value<'_>, out: &mut Out<'_>) {
        let Some(Chunk { content: Some(content), message_id, meta, .. }) = update.to() else {
            return;
        };
        let Some(Block { kind: Some(kind), text, .. }) = content.to() else { return };
        let spawned_by = meta.and_then(|meta| meta.claude?.spawned_by);
        let text = text.filter(|_| kind == "text");
        if text.is_some_and(|text| !text.is_string()) {
            return;
        }
        let mode = text
            .filter(|_| self.has(|quirks| quirks.says_modes) && !is_thought)
            .and_then(mode_update);
        if let Some(mode) = mode.filter(|mode| self.mode.ids.iter().any(|id| id == mode)) {
            return self.mode_changed(&mode, out);
        }
        if self.has(|quirks| quirks.hides_refused) {
            // Gemini runs calls one after another and reports nothing about a refused one (fixture
            // real-shell-reject): if it continues, an open request was refused.
            self.settle_passed_over(out);
        }
        self.in_turn(out);
        let agent = self.speaker(spawned_by.as_deref(), out);
        self.has_output |= !is_thought && agent.parent.is_none();
        match text.and_then(Value::to::<Text<'_>>) {
            Some(text) => self.text(agent, is_thought, text, message_id.as_deref(), out),
            None => {
                self.advance(out);
                out.emit_as(
                    &agent,
                    StatusChanged::new(Status::Notice)
                        .message(Text::from(describe(&kind, content)))
                        .details(content.json()),
                );
            }
        }
    }

    fn prompted(&mut self, update: Value<'_>, out: &mut Out<'_>) {
        let Some(Chunk { content: Some(content), .. }) = update.to() else { return };
        self.advance(out);
        let text = content.read::<Text<'_>>("text");
        let details = text.is_none().then(|| content.json());
        content.carried();
        out.emit(StatusChanged::new(Status::Prompted).message(text).details(details));
    }

    fn plan(&mut self, update: Value<'_>, out: &mut Out<'_>) {
        let Some(entries) = update.get("entries").filter(|entries| entries.is_array()) else {
            return;
        };
        self.in_turn(out);
        self.has_output = true;
        self.advance(out);
        let entries = entries.items().filter_map(|entry| {
            let status = entry.get("status").and_then(Value::string).unwrap_or_default();
            Some(PlanEntry {
                content: entry.read("content")?,
                status: PlanStatus::from_word(&status),
                priority: entry.read("priority"),
            })
        });
        out.emit(PlanUpdated { entries: entries.collect(), explanation: None });
    }

    fn commands_changed(&mut self, update: Value<'_>, out: &mut Out<'_>) {
        let Some(commands) = update.get("availableCommands") else { return };
        self.commands = Some(commands.json().into_owned());
        out.emit(
            StatusChanged::new(Status::Commands)
                .message(Text::from("availableCommands"))
                .details(commands.json()),
        );
        if self.has(|quirks| quirks.replays_late) && self.session.is_some() {
            self.replaying = false;
            self.pump(out);
        }
    }

    fn mode_changed(&mut self, mode: &str, out: &mut Out<'_>) {
        if !self.choose(Setting::Mode, mode, out) {
            let visible = self.visible_mode().unwrap_or_else(|| mode.to_owned());
            out.emit(StatusChanged::new(Status::Mode).message(Text::from(visible)));
        }
    }

    fn usage(&mut self, usage: &Usage<'_>, out: &mut Out<'_>) {
        let cost = usage.cost.as_ref().and_then(|cost| {
            let is_usd = cost.currency.as_deref().is_none_or(|currency| currency == "USD");
            cost.amount.filter(|amount| is_usd && amount.is_finite())
        });
        self.cost = cost.or(self.cost);
        if usage.used.is_none() && usage.size.is_none() && cost.is_none() {
            return;
        }
        out.emit(UsageReported {
            context_used: usage.used,
            context_size: usage.size,
            total_cost_usd: cost,
            ..UsageReported::default()
        });
    }
}

/// Gemini reports a new mode as text (fixture real-set-mode-model). A model may write the same text, so
/// only a mode that was announced counts.
fn mode_update(text: Value<'_>) -> Option<String> {
    // Check the raw text first: that needs no copy, and almost no text matches.
    if !text.json().get().starts_with("\"[MODE_UPDATE] ") {
        return None;
    }
    Some(text.string()?.strip_prefix("[MODE_UPDATE] ")?.to_owned())
}

/// A line to show for content that is not text.
fn describe(kind: &str, content: Value<'_>) -> String {
    let resource = content.get("resource").unwrap_or(content);
    let names = ["title", "name", "uri", "mimeType"];
    match names.iter().find_map(|name| resource.get(name).and_then(Value::string)) {
        Some(name) => format!("{kind}: {name}"),
        None => kind.to_owned(),
    }
}

fn notice(notice: Notice<'_>, out: &mut Out<'_>) {
    let title = notice.title.unwrap_or(Text::from("a notice without a title"));
    let message = match notice.description {
        Some(description) => Text::from(format!("{title}: {description}")),
        None => title,
    };
    match notice.severity.as_deref() {
        Some("error") => out.emit(ErrorEvent::new(message)),
        Some("warning") => out.emit(StatusChanged::new(Status::Warning).message(message)),
        _ => out.emit(StatusChanged::new(Status::Notice).message(message)),
    }
}

fn compaction(update: Value<'_>) -> StatusChanged<'_> {
    let word = update.get("status").and_then(Value::string).unwrap_or_default();
    let status = match &*word {
        "completed" => Status::Compacted,
        "failed" | "cancelled" => Status::Warning,
        _ => Status::Compacting,
    };
    let message = (status == Status::Warning).then(|| Text::from(format!("compaction {word}")));
    StatusChanged::new(status).message(message).details(update.json())
}
