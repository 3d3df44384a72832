//! Errors, plans, status changes, and the agent's stderr.

use agentwire_protocol::event::{ErrorEvent, PlanStatus, PlanUpdated, Status, StatusChanged};
use agentwire_protocol::{MAIN_AGENT, Native, Stream};

use super::layout::Ink;
use super::{View, decoded};

impl View {
    pub(super) fn error(&mut self, error: &ErrorEvent<'_>) {
        let message = error.message.decode();
        if self.state.is_news(&message) {
            if !self.shows_all() {
                return self.note(&message);
            }
            self.work();
            let retries = if error.will_retry == Some(true) { " (retrying)" } else { "" };
            self.page.line(&[(Ink::Red, "! "), (Ink::Red, &message), (Ink::Dim, retries)]);
        }
    }

    pub(super) fn plan(&mut self, plan: &PlanUpdated<'_>) {
        self.work();
        self.page.line(&[(Ink::Cyan, "● "), (Ink::Bold, "Plan")]);
        if let Some(explanation) = &plan.explanation {
            self.page.marked(Ink::Dim, explanation.decode().trim_end(), Some("  "));
        }
        for entry in &plan.entries {
            let (mark, ink) = match entry.status {
                PlanStatus::Pending => ("  ☐ ", Ink::Plain),
                PlanStatus::InProgress => ("  ◐ ", Ink::Bold),
                PlanStatus::Completed => ("  ☑ ", Ink::Dim),
                PlanStatus::Cancelled => ("  ☒ ", Ink::Dim),
            };
            self.page.line(&[(ink, mark), (ink, &entry.content.decode())]);
        }
    }

    pub(super) fn status(&mut self, status: &StatusChanged<'_>, agent: &str) {
        if let Some(place) = status.info.as_ref().and_then(|info| info.working_directory.as_ref()) {
            self.state.directory = Some(place.to_string());
        }
        let message = decoded(status.message.as_ref()).unwrap_or_default();
        let all = self.shows_all();
        let (ink, mark) = match status.status {
            Status::Prompted if agent == MAIN_AGENT => return self.prompt(&message),
            Status::Warning => {
                self.state.warning.clone_from(&message);
                (Ink::Yellow, "! ")
            }
            Status::Notice if all => (Ink::Dim, "· "),
            Status::Retrying if all => (Ink::Yellow, "· retrying the model API: "),
            Status::Compacting if all => (Ink::Dim, "· compacting the context "),
            Status::Compacted if all => (Ink::Dim, "· context compacted "),
            Status::Model if all => (Ink::Dim, "· model: "),
            Status::Mode if all => (Ink::Dim, "· mode: "),
            _ => return,
        };
        if !all {
            return self.note(&message);
        }
        self.work();
        self.page.line(&[(ink, mark), (ink, message.trim_end())]);
    }

    /// A line on a shared stderr names its program.
    pub(super) fn note(&mut self, text: &str) {
        self.page.line(&[(Ink::Plain, "agentwire: "), (Ink::Plain, text)]);
    }

    pub(super) fn stderr(&mut self, native: &[Native<'_>]) {
        for line in native.iter().filter(|native| native.stream == Stream::Stderr) {
            let text = String::from_utf8_lossy(line.line.bytes()).into_owned();
            if !text.trim().is_empty() {
                self.work();
                self.page.line(&[(Ink::Dim, "stderr "), (Ink::Dim, &text)]);
            }
        }
    }
}
