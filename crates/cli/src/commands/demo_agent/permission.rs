//! Whether a tool may run: first hooks, then rules and the mode, then the client.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agent::{Agent, Halt};
use super::flags::Flags;
use super::hooks::{Decision, HookEvent, HookVerdict};
use super::json::JsonFields as _;
use super::requests::{ClientAnswer, Requester};
use super::rules::{Mode, Rule, resolved};
use super::tools::ToolCall;

/// The permissions of the session.
pub(super) struct Permissions {
    pub(super) mode: Mode,
    /// The mode that the client set and the gateway enforces, while this agent itself asks.
    pub(super) client_mode: Option<String>,
    pub(super) allow: Vec<Rule>,
    pub(super) deny: Vec<Rule>,
    /// Directories where files may be read without asking, and edited if the mode allows it.
    directories: Vec<PathBuf>,
}

/// What a tool needs before it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// It reads this file outside the session's directories.
    Read(PathBuf),
    /// It changes this file.
    Edit(PathBuf),
    /// A rule or a user must allow it.
    Leave,
    /// It is itself a question.
    Talk,
}

pub(super) enum PermissionOutcome {
    /// It may run with this input; `how` says who allowed it.
    Yes {
        input: Value,
        how: Value,
    },
    No(Refusal),
}

/// Why a tool does not run.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) meta: Value,
    /// The turn must end.
    pub(super) interrupt: bool,
}

impl Refusal {
    fn new(message: String, source: &str) -> Self {
        let meta = json!({
            "non_execution_kind": "permission-rule",
            "permission_decision": { "decision": "reject", "source": source },
        });
        Self { message, meta, interrupt: false }
    }
}

fn accepted(input: &Value, source: &str) -> PermissionOutcome {
    let how = json!({ "decision": "accept", "source": source });
    PermissionOutcome::Yes { input: input.clone(), how }
}

impl Permissions {
    pub(super) fn new(flags: &Flags, directory: &Path) -> Self {
        let added = flags.directories.iter().map(|added| directory.join(added));
        Self {
            mode: flags.mode,
            client_mode: None,
            allow: flags.allowed.clone(),
            deny: flags.disallowed.clone(),
            directories: std::iter::once(directory.to_owned()).chain(added).collect(),
        }
    }

    /// The mode as the client knows it.
    pub(super) fn shown(&self) -> &str {
        match &self.client_mode {
            Some(client_mode) if self.mode == Mode::Default => client_mode,
            Some(_) | None => self.mode.name(),
        }
    }

    /// Whether the file is in one of the session's directories, with links resolved.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        let Some(path) = resolved(path) else { return false };
        let directories = self.directories.iter().filter_map(|directory| resolved(directory));
        directories.into_iter().any(|directory| path.starts_with(directory))
    }

    fn has(rules: &[Rule], call: &ToolCall<'_>, directory: &Path) -> bool {
        rules.iter().any(|rule| rule.covers(call.name, call.input, directory))
    }
}

impl Agent {
    pub(super) fn permit(
        &mut self,
        call: &ToolCall<'_>,
        need: &Need,
    ) -> Result<PermissionOutcome, Halt> {
        let name = call.name;
        let fields = json!({ "tool_name": name, "tool_input": call.input, "tool_use_id": call.id });
        let outputs = self.raise(&HookEvent::of_call("PreToolUse", call, fields))?;
        let verdict = HookVerdict::of(&outputs);
        if let Some(reason) = verdict.stop {
            return Err(Halt::Hook(reason));
        }
        if verdict.decision == Some(Decision::Deny) {
            let message = format!("PreToolUse:{name} hook error: {}", verdict.reason);
            return Ok(PermissionOutcome::No(Refusal::new(message, "hook")));
        }
        let changed = verdict.input;
        let input = changed.as_ref().unwrap_or(call.input);
        let call = &ToolCall { input, ..*call };
        let need = &if changed.is_some() { self.need(call) } else { need.clone() };
        let directory = &self.session.directory;
        let permissions = &self.permissions;
        if Permissions::has(&permissions.deny, call, directory) {
            let message = format!("Permission to use {name} with this input has been denied.");
            return self.refused_unasked(call, message);
        }
        match (verdict.decision, need, permissions.mode) {
            (Some(Decision::Allow), ..) => return Ok(accepted(input, "hook")),
            (Some(Decision::Ask), ..) => return self.ask_permission(call, need),
            (_, Need::Nothing, _) => return Ok(accepted(input, "config")),
            (_, Need::Talk, Mode::DontAsk)
            | (_, Need::Read(_) | Need::Edit(_) | Need::Leave, _) => {}
            (_, Need::Talk, _) => return self.ask_permission(call, need),
        }
        let edits = |path| permissions.mode == Mode::AcceptEdits && permissions.is_inside(path);
        let by_mode =
            permissions.mode == Mode::Bypass || matches!(need, Need::Edit(path) if edits(path));
        if by_mode {
            return Ok(accepted(input, "config"));
        }
        if *need != Need::Talk && Permissions::has(&permissions.allow, call, directory) {
            return Ok(accepted(input, "user_permanent"));
        }
        let refusing = match permissions.mode {
            // Plan mode allows reading.
            Mode::Plan if matches!(need, Need::Read(_)) => None,
            Mode::Plan => Some("plan mode"),
            Mode::DontAsk => Some("don't ask mode"),
            Mode::Default | Mode::AcceptEdits | Mode::Bypass | Mode::Auto => None,
        };
        match refusing {
            Some(mode) => {
                let message = format!(
                    "Permission to use {name} has been denied because the agent is running in {mode}."
                );
                self.refused_unasked(call, message)
            }
            None => self.ask_permission(call, need),
        }
    }

    /// Reports the denial, since the client was not asked.
    fn refused_unasked(
        &mut self,
        call: &ToolCall<'_>,
        message: String,
    ) -> Result<PermissionOutcome, Halt> {
        self.emit(json!({
            "type": "system",
            "subtype": "permission_denied",
            "tool_name": call.name,
            "tool_use_id": call.id,
            "message": message,
        }))?;
        Ok(PermissionOutcome::No(Refusal::new(message, "config")))
    }

    /// Asks the client and its hooks at once; the first decision counts.
    fn ask_permission(
        &mut self,
        call: &ToolCall<'_>,
        need: &Need,
    ) -> Result<PermissionOutcome, Halt> {
        let suggestions = self.suggestions(call, need);
        let mut open = Vec::new();
        let mut question = None;
        if self.flags.asks_on_stdio {
            let request = self.question(call, need, &suggestions);
            let id = self.request(Requester::Turn, &request)?;
            open.push(id.clone());
            question = Some(id);
        }
        let fields = json!({
            "tool_name": call.name,
            "tool_input": call.input,
            "permission_suggestions": suggestions,
        });
        let hook_event = HookEvent::of_call("PermissionRequest", call, fields);
        open.extend(self.raise_together(&hook_event)?);
        while !open.is_empty() {
            let Some((id, answer)) = self.answer(&open, None)? else { break };
            open.retain(|other| *other != id);
            let permit = if question.as_ref() == Some(&id) {
                Some(self.answered(call, answer)?)
            } else {
                self.hook_answered(call, answer)?
            };
            if let Some(permit) = permit {
                open.iter().try_for_each(|other| self.withdraw(other))?;
                return Ok(permit);
            }
        }
        let message = format!("{} needs approval, but there is no client to ask.", call.name);
        self.refused_unasked(call, message)
    }

    fn question(&self, call: &ToolCall<'_>, need: &Need, suggestions: &Value) -> Value {
        let input = call.input;
        let mut request = json!({
            "subtype": "can_use_tool",
            "tool_name": call.name,
            "display_name": call.name,
            "input": input,
            "tool_use_id": call.id,
        });
        match need {
            Need::Talk => request.set("requires_user_interaction", true),
            Need::Edit(file) | Need::Read(file) => {
                let short = file.strip_prefix(&self.session.directory).unwrap_or(file);
                request.set("description", short.display().to_string());
                if !self.permissions.is_inside(file) {
                    request.set("decision_reason", "Path is outside allowed working directories");
                    request.set("decision_reason_type", "workingDir");
                }
            }
            Need::Leave | Need::Nothing => {
                let words = input.at("description").as_str().or(input.at("command").as_str());
                if let Some(words) = words {
                    request.set("description", words);
                }
            }
        }
        if suggestions.as_array().is_some_and(|list| !list.is_empty()) {
            request.set("permission_suggestions", suggestions.clone());
        }
        if let Some(server) = self.server_of(call.name) {
            request.set("mcp_server", json!({ "name": server.name, "source": server.source() }));
        }
        if let Some(spawned) = self.active.subagent() {
            request.set("agent_id", spawned.agent_id.as_str());
        }
        request
    }

    /// Suggested rules that would avoid the request next time.
    fn suggestions(&self, call: &ToolCall<'_>, need: &Need) -> Value {
        let rule = |content: Option<&str>| {
            let rule = Rule { tool: call.name.to_owned(), content: content.map(str::to_owned) };
            json!([{
                "type": "addRules",
                "rules": [rule.to_json()],
                "behavior": "allow",
                "destination": "localSettings",
            }])
        };
        match need {
            Need::Nothing | Need::Talk => json!([]),
            Need::Read(path) => json!([{
                "type": "addRules",
                "rules": [{ "toolName": call.name, "ruleContent": path }],
                "behavior": "allow",
                "destination": "session",
            }]),
            Need::Edit(path) => {
                let mut list = vec![
                    json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" }),
                ];
                if !self.permissions.is_inside(path) {
                    let parent = path.parent().unwrap_or(path);
                    list.push(json!({
                        "type": "addDirectories", "directories": [parent], "destination": "session",
                    }));
                }
                json!(list)
            }
            Need::Leave => rule(call.input.at("command").as_str().filter(|_| call.name == "Bash")),
        }
    }

    /// The client's answer to `can_use_tool`.
    fn answered(
        &mut self,
        call: &ToolCall<'_>,
        answer: ClientAnswer,
    ) -> Result<PermissionOutcome, Halt> {
        let failed = |error: &str| {
            let message = format!("Tool permission request failed: {error}");
            Ok(PermissionOutcome::No(Refusal::new(message, "config")))
        };
        match answer {
            ClientAnswer::Given(answer) => match self.decided(call, &answer, "user_temporary")? {
                Some(permit) => Ok(permit),
                None => Ok(PermissionOutcome::No(Refusal::new(
                    "The canUseTool callback returned an invalid permission result. Expected \
                     {behavior: 'allow', updatedInput?: object} or {behavior: 'deny', message: \
                     string}."
                        .to_owned(),
                    "config",
                ))),
            },
            ClientAnswer::Failed(error) => failed(&format!("Error: {error}")),
            ClientAnswer::Closed => {
                failed("AbortError: Tool permission stream closed before response received")
            }
        }
    }

    /// The answer of a `PermissionRequest` hook; `None` if it does not decide.
    fn hook_answered(
        &mut self,
        call: &ToolCall<'_>,
        answer: ClientAnswer,
    ) -> Result<Option<PermissionOutcome>, Halt> {
        match answer {
            ClientAnswer::Given(output) => {
                self.decided(call, output.at("hookSpecificOutput").at("decision"), "hook")
            }
            ClientAnswer::Failed(_) => {
                let what =
                    "PermissionRequest: a hook callback failed. Its answer was treated as empty.";
                self.inform(what, "hook_callback_failed")?;
                Ok(None)
            }
            ClientAnswer::Closed => Ok(None),
        }
    }

    fn decided(
        &mut self,
        call: &ToolCall<'_>,
        decision: &Value,
        source: &str,
    ) -> Result<Option<PermissionOutcome>, Halt> {
        let changed = decision.get("updatedInput").filter(|input| !input.is_null());
        match decision.at("behavior").as_str() {
            Some("allow") if changed.is_none_or(Value::is_object) => {
                let updates = decision.at("updatedPermissions").as_array().into_iter().flatten();
                for update in updates {
                    self.update_permissions(update)?;
                }
                Ok(Some(accepted(changed.unwrap_or(call.input), source)))
            }
            Some("deny") => {
                let message = decision.at("message").as_str().unwrap_or("Permission denied");
                let source = if source == "hook" { "hook" } else { "user_reject" };
                let interrupt = decision.at("interrupt") == true;
                let refusal = Refusal::new(message.to_owned(), source);
                Ok(Some(PermissionOutcome::No(Refusal { interrupt, ..refusal })))
            }
            _ => Ok(None),
        }
    }

    /// Applies an entry of `updatedPermissions` to this session, whatever its destination.
    fn update_permissions(&mut self, update: &Value) -> Result<(), Halt> {
        let rules = update.at("rules").as_array().into_iter().flatten();
        let rules: Vec<Rule> = rules.filter_map(Rule::from_json).collect();
        let permissions = &mut self.permissions;
        let list = match update.at("behavior").as_str() {
            Some("deny") => &mut permissions.deny,
            _ => &mut permissions.allow,
        };
        let directories = update.at("directories").as_array().into_iter().flatten();
        let directories = directories.filter_map(Value::as_str).map(PathBuf::from);
        match update.at("type").as_str() {
            Some("addRules") => list.extend(rules),
            Some("replaceRules") => *list = rules,
            Some("removeRules") => list.retain(|rule| !rules.contains(rule)),
            Some("addDirectories") => permissions.directories.extend(directories),
            Some("removeDirectories") => {
                let gone: Vec<PathBuf> = directories.collect();
                permissions.directories.retain(|directory| !gone.contains(directory));
            }
            Some("setMode") => {
                let mode = update.at("mode").as_str().and_then(Mode::named);
                if let Some(mode) = mode.filter(|mode| self.may_set(*mode)) {
                    return self.set_mode(mode);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Only a session that was started with that permission may switch to bypass.
    pub(super) fn may_set(&self, mode: Mode) -> bool {
        mode != Mode::Bypass || self.flags.may_bypass
    }

    pub(super) fn set_mode(&mut self, mode: Mode) -> Result<(), Halt> {
        self.permissions.mode = mode;
        self.emit(json!({
            "type": "system", "subtype": "status", "status": null, "permissionMode": mode.name(),
        }))
    }
}
