//! The task list that Claude keeps without a terminal, where it has no `TodoWrite`. Each call changes one
//! task, and the plan is all of them (fixture real-tasks).

use agentwire_protocol::Text;
use agentwire_protocol::event::{PlanEntry, PlanStatus};

use crate::json::Value;

/// How many tasks are remembered.
const TASK_LIMIT: usize = 1024;

/// How much of a task's text is stored, in characters.
const SUBJECT_LIMIT: usize = 4096;

/// The tasks, as far as their changes were seen. Those of an earlier process are unknown until Claude lists
/// them.
#[derive(Debug, Default)]
pub(super) struct Tasks(Vec<Task>);

#[derive(Debug)]
struct Task {
    id: String,
    subject: String,
    status: PlanStatus,
}

/// What a call does to the list if it succeeds.
#[derive(Debug)]
pub(super) enum TaskCall {
    Create,
    /// The requested change; the result only says that it was made.
    Update {
        subject: Option<String>,
        status: Option<String>,
    },
    List,
}

impl TaskCall {
    pub(super) fn asked(name: &str, input: Value<'_>) -> Option<Self> {
        let text = |field| input.get(field).and_then(Value::string).map(|text| bounded(&text));
        match name {
            "TaskCreate" => Some(Self::Create),
            "TaskUpdate" => Some(Self::Update { subject: text("subject"), status: text("status") }),
            "TaskList" => Some(Self::List),
            _ => None,
        }
    }
}

impl Tasks {
    /// Forgets all tasks: another conversation starts.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The whole list after a call with that result; `None` if the call did not change it.
    pub(super) fn after(
        &mut self,
        call: TaskCall,
        result: Value<'_>,
    ) -> Option<Vec<PlanEntry<'static>>> {
        match call {
            TaskCall::Create => {
                if !self.add(result.get("task")?) {
                    return None;
                }
            }
            TaskCall::Update { subject, status } => {
                let id = result.get("taskId")?.string()?;
                let is_done = result.get("success")?.to::<bool>()?;
                let at = self.0.iter().position(|task| task.id == id).filter(|_| is_done)?;
                if status.as_deref() == Some("deleted") {
                    self.0.remove(at);
                } else if let Some(task) = self.0.get_mut(at) {
                    task.subject = subject.unwrap_or(std::mem::take(&mut task.subject));
                    task.status = status.map_or(task.status, |word| PlanStatus::from_word(&word));
                }
            }
            TaskCall::List => {
                let tasks = result.get("tasks").filter(|tasks| tasks.is_array())?;
                self.0.clear();
                for task in tasks.items() {
                    self.add(task);
                }
            }
        }
        Some(self.0.iter().map(Task::entry).collect())
    }

    fn add(&mut self, task: Value<'_>) -> bool {
        let text = |field| task.get(field).and_then(Value::string);
        let (Some(id), Some(subject)) = (text("id"), text("subject")) else { return false };
        let (id, subject) = (bounded(&id), bounded(&subject));
        let status = PlanStatus::from_word(&text("status").unwrap_or_default());
        self.0.retain(|task| task.id != id);
        let has_room = self.0.len() < TASK_LIMIT;
        if has_room {
            self.0.push(Task { id, subject, status });
        }
        has_room
    }
}

impl Task {
    fn entry(&self) -> PlanEntry<'static> {
        let content = Text::from(self.subject.clone());
        PlanEntry { content, status: self.status, priority: None }
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(SUBJECT_LIMIT).collect()
}
