//! `assistant` and `user` lines, block by block.

use agentwire_protocol::Text;
use agentwire_protocol::event::{ErrorEvent, Other, Status, StatusChanged, UsageReported};

use super::text::BlockKind;
use super::tools::ToolResult;
use super::turns::{context_used, usage};
use super::{Translator, plain_text};
use crate::claude::wire::{Assistant, Block, Message, ResultMeta, User};
use crate::json::Value;
use crate::tape::{Agent, Out};

impl Translator {
    pub(super) fn assistant(&mut self, line: Assistant<'_>, out: &mut Out<'_>) {
        let Some(message) = line.message else { return };
        let agent = self.named_speaker(
            line.parent_tool_use_id.as_deref(),
            line.agent_id.as_deref(),
            line.subagent_type,
            line.task_description,
            out,
        );
        let code = line.error.or(message.error.clone());
        if code.is_some() || line.is_api_error_message == Some(true) {
            return self.api_error(&agent, code, &message, out);
        }
        let content = message.content.into_iter().flat_map(Value::items);
        for block in content.filter_map(Value::to::<Block<'_>>) {
            self.ensure_turn_of(&agent, out);
            self.block(&agent, message.id.as_deref(), line.tool_use_meta, block, out);
        }
        self.message_usage(&agent, message, out);
    }

    /// The agent's message about a failed model call is not an answer.
    fn api_error(
        &mut self,
        agent: &Agent<'_>,
        code: Option<Text<'_>>,
        message: &Message<'_>,
        out: &mut Out<'_>,
    ) {
        self.ensure_turn_of(agent, out);
        if agent.parent.is_none() {
            self.error_code = code.as_ref().map(Text::to_string);
        }
        let text = message.content.and_then(plain_text).or(code.clone());
        let text = text.unwrap_or(Text::from("the model call failed"));
        out.emit_as(agent, ErrorEvent { code, ..ErrorEvent::new(text) });
    }

    fn block(
        &mut self,
        agent: &Agent<'_>,
        message: Option<&str>,
        meta: Option<Value<'_>>,
        block: Block<'_>,
        out: &mut Out<'_>,
    ) {
        let Some(kind) = block.kind.clone() else { return };
        match (&*kind, block.text.clone(), block.thinking.clone()) {
            ("text", Some(text), _) => {
                self.report_complete_block(agent, message, BlockKind::Text, text, None, out);
            }
            ("thinking", _, Some(text)) => {
                self.report_complete_block(
                    agent,
                    message,
                    BlockKind::Thinking,
                    text,
                    block.signature,
                    out,
                );
            }
            // The thoughts are in `data`, for the model API only.
            ("redacted_thinking", ..) => {
                let text = Text::fixed("");
                self.report_complete_block(
                    agent,
                    message,
                    BlockKind::Thinking,
                    text,
                    block.data,
                    out,
                );
            }
            ("tool_use" | "server_tool_use" | "mcp_tool_use", ..) => {
                self.start_tool(agent, block, meta, out);
            }
            (kind, ..) if kind.ends_with("_tool_result") => {
                let error = block.content.and_then(|content| content.read("error_code"));
                let result = ToolResult {
                    is_error: block.is_error == Some(true) || error.is_some(),
                    error,
                    content: block.content,
                    structured: None,
                    meta: ResultMeta::default(),
                };
                if let Some(id) = block.tool_use_id {
                    self.tool_result(agent, &id, &result, out);
                }
            }
            (kind, ..) => out.emit_as(agent, Other::named(format!("assistant/{kind}"))),
        }
    }

    /// Reports the count on the line, which is that at the message's start, once for each message. A
    /// streamed message reports its own at its end.
    fn message_usage(&mut self, agent: &Agent<'_>, message: Message<'_>, out: &mut Out<'_>) {
        let (Some(id), Some(counted)) = (message.id, message.usage) else { return };
        let usage = usage(&counted);
        if usage.total_tokens == 0 || self.streams.streamed(&id) || !self.agents.counts(&id) {
            return;
        }
        out.emit_as(
            agent,
            UsageReported {
                usage: Some(usage),
                model: message.model,
                context_used: Some(context_used(&usage)),
                message_id: Some(Text::new(id)),
                ..UsageReported::default()
            },
        );
    }

    pub(super) fn user(&mut self, line: User<'_>, out: &mut Out<'_>) {
        let Some(content) = line.message.and_then(|message| message.content) else { return };
        let agent = self.named_speaker(
            line.parent_tool_use_id.as_deref(),
            line.agent_id.as_deref(),
            line.subagent_type,
            line.task_description,
            out,
        );
        let blocks: Vec<Block<'_>> = content.items().filter_map(Value::to).collect();
        let is_result = |block: &&Block<'_>| block.kind.as_deref() == Some("tool_result");
        let results = blocks.iter().filter(is_result).count();
        for block in blocks.into_iter().filter(|block| is_result(&block)) {
            let Some(id) = block.tool_use_id else { continue };
            let metas = line.tool_result_meta.into_iter().flat_map(Value::items);
            let mut metas = metas.filter(|meta| meta.get("id").is_some_and(|own| own.is(&id)));
            let meta = metas.next().and_then(Value::to::<ResultMeta<'_>>).unwrap_or_default();
            let result = ToolResult {
                is_error: block.is_error == Some(true),
                error: None,
                content: block.content,
                // It belongs to one result; a line with several does not say to which.
                structured: line.tool_use_result.filter(|_| results == 1),
                meta,
            };
            self.tool_result(&agent, &id, &result, out);
        }
        if results == 0 {
            let synthetic = line.is_synthetic == Some(true);
            content_text(content)
                .into_iter()
                .for_each(|text| self.user_text(&agent, &text, synthetic, out));
        }
    }

    /// A message to the model, from the user or from the agent in the user's name.
    fn user_text(
        &mut self,
        agent: &Agent<'_>,
        text: &Text<'_>,
        synthetic: bool,
        out: &mut Out<'_>,
    ) {
        const OUTPUT: (&str, &str) = ("<local-command-stdout>", "</local-command-stdout>");
        let words = text.decode();
        if words.starts_with("[Request interrupted by user") {
            self.interrupted = true;
            return out.emit_as(agent, StatusChanged::new(Status::Notice).message(text.clone()));
        }
        if let Some(output) = words.strip_prefix(OUTPUT.0) {
            let output = output.strip_suffix(OUTPUT.1).unwrap_or(output).trim();
            let output = Text::from(output);
            return out.emit_as(agent, StatusChanged::new(Status::Notice).message(output));
        }
        let status = if synthetic { Status::Notice } else { Status::Prompted };
        out.emit_as(agent, StatusChanged::new(status).message(text.clone()));
    }
}

/// A prompt of images alone has no text, but is still a prompt.
fn content_text(content: Value<'_>) -> Option<Text<'_>> {
    plain_text(content).or_else(|| content.items().next().map(|_| Text::fixed("")))
}
