//! Permission modes, and rules that allow or deny a tool.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::json::JsonFields as _;
use crate::commands::claude::argv;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Default,
    AcceptEdits,
    Plan,
    Bypass,
    DontAsk,
    Auto,
}

impl Mode {
    const ALL: [Self; 6] =
        [Self::AcceptEdits, Self::Auto, Self::Bypass, Self::Default, Self::DontAsk, Self::Plan];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Bypass => "bypassPermissions",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    pub(super) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// A tool, and which of its calls the rule covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) tool: String,
    pub(super) content: Option<String>,
}

impl Rule {
    /// `Tool` or `Tool(content)`
    fn parse(text: &str) -> Self {
        let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match parts {
            Some((tool, content)) => {
                Self { tool: tool.trim().to_owned(), content: Some(content.to_owned()) }
            }
            None => Self { tool: text.to_owned(), content: None },
        }
    }

    /// In the form of `updatedPermissions`: `{"toolName", "ruleContent"?}`
    pub(super) fn from_json(rule: &Value) -> Option<Self> {
        Some(Self {
            tool: rule.get("toolName")?.as_str()?.to_owned(),
            content: rule.get("ruleContent").and_then(Value::as_str).map(str::to_owned),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.content {
            Some(content) => serde_json::json!({ "toolName": self.tool, "ruleContent": content }),
            None => serde_json::json!({ "toolName": self.tool }),
        }
    }

    /// Whether it covers this call.
    pub(super) fn covers(&self, tool: &str, input: &Value, directory: &Path) -> bool {
        if !self.names(tool) {
            return false;
        }
        let Some(content) = self.content.as_deref().filter(|content| !matches!(*content, "" | "*"))
        else {
            return true;
        };
        match tool {
            "Bash" => {
                input.at("command").as_str().is_some_and(|command| same_command(content, command))
            }
            "Read" | "Write" | "Edit" => input.at("file_path").as_str().is_some_and(|path| {
                let path = settled(&directory.join(path));
                match content.strip_suffix("/**") {
                    Some(parent) => path.starts_with(settled(&directory.join(parent))),
                    None => path == settled(&directory.join(content)),
                }
            }),
            _ => false,
        }
    }

    /// `mcp__server` names every tool of that server.
    fn names(&self, tool: &str) -> bool {
        let server = self.tool.strip_suffix("__*").unwrap_or(&self.tool);
        let of_server = server.starts_with("mcp__")
            && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"));
        self.tool == tool || of_server
    }
}

/// The path without `.` and `..`, resolved lexically.
pub(super) fn settled(path: &Path) -> PathBuf {
    let mut settled = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(settled.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => settled.push(part),
        }
    }
    settled
}

/// The path with links resolved, as far as it exists; `None` if it cannot be determined.
pub(super) fn resolved(path: &Path) -> Option<PathBuf> {
    for there in path.ancestors() {
        let Ok(found) = there.canonicalize() else { continue };
        let rest = path.strip_prefix(there).ok()?;
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        return rest.components().all(is_plain).then(|| found.join(rest));
    }
    None
}

/// `prefix:*` covers one simple command, never one that a shell would split or expand.
fn same_command(content: &str, command: &str) -> bool {
    let Some(prefix) = content.strip_suffix(":*") else { return content == command };
    let simple = !command.contains(|c: char| "&|;<>$`(){}\\\"'\n\r*?[]~#!".contains(c));
    let rest = command.strip_prefix(prefix);
    simple && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Parses a list of rules.
pub(super) fn rules(list: &str) -> Vec<Rule> {
    argv::rules(list).map(Rule::parse).collect()
}
