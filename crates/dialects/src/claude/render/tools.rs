//! Tool calls: the name and input under which they are shown, and the form of their results.

use std::borrow::Cow;

use agentwire_protocol::event::{RequestRaised, ToolCompleted, ToolKind, ToolStarted};
use agentwire_protocol::{Json, Text};
use serde::Serialize;

use super::frames::{User, UserBlock, UserMessage};
use super::messages::spawned_by;
use super::output::MessageWriter;
use crate::claude::tools::{ToolCall, ToolUse, overlaid};
use crate::json::{Scanner, Value};

/// How much of a running tool's output is stored, in bytes, for a result that does not repeat it.
const OUTPUT_LIMIT: usize = 64 << 10;

/// How much of the input and titles of open calls is stored, in bytes.
const INPUT_LIMIT: usize = 8 << 20;

/// A call without a result yet.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) agent: String,
    /// The name under which it was shown.
    pub(super) name: String,
    /// What it has written so far.
    pub(super) output: String,
    own: String,
    kind: ToolKind,
    server: Option<String>,
    input: Option<Json<'static>>,
    title: Option<String>,
}

impl OpenCall {
    pub(super) fn started(agent: &str, tool: &ToolStarted<'_>) -> Self {
        let text = |text: &Option<Text<'_>>| text.as_ref().map(Text::to_string);
        Self {
            kind: tool.kind,
            server: text(&tool.server),
            input: tool.arguments.clone().map(Json::into_owned),
            title: text(&tool.title),
            ..Self::empty(&tool.tool_id.decode(), agent, tool.tool_name.to_string())
        }
    }

    /// A call in Claude's own terms.
    pub(super) fn new(id: &str, agent: &str, name: String, input: Json<'static>) -> Self {
        Self { input: Some(input), ..Self::empty(id, agent, name) }
    }

    fn empty(id: &str, agent: &str, own: String) -> Self {
        Self {
            id: id.to_owned(),
            agent: agent.to_owned(),
            name: own.clone(),
            output: String::new(),
            own,
            kind: ToolKind::Other,
            server: None,
            input: None,
            title: None,
        }
    }

    /// The call as Claude would make it.
    pub(super) fn shown(&self) -> ToolUse {
        let call = ToolCall {
            name: &self.own,
            kind: self.kind,
            server: self.server.as_deref(),
            input: self.input.as_ref(),
            title: self.title.as_deref(),
        };
        call.as_claude()
    }

    /// Permission is asked for the call. The request may have more or other input than was reported.
    pub(super) fn asked(&mut self, request: &RequestRaised<'_>) {
        self.input = overlaid(self.input.as_ref(), request.input.as_ref());
        self.title = request.title.as_ref().map(Text::to_string).or(self.title.take());
    }

    /// How many bytes of input and title are stored.
    fn bytes(&self) -> usize {
        let title = self.title.as_ref().map_or(0, String::len);
        title + self.input.as_ref().map_or(0, |input| input.get().len())
    }

    pub(super) fn wrote(&mut self, output: &str) {
        let room = OUTPUT_LIMIT.saturating_sub(self.output.len());
        self.output.push_str(output.get(..output.floor_char_boundary(room)).unwrap_or_default());
    }
}

/// Drops the oldest inputs of open calls beyond the limit. The last stays: somebody may be asked about it.
pub(super) fn bound(tools: &mut [OpenCall]) {
    let mut held: usize = tools.iter().map(OpenCall::bytes).sum();
    let others = tools.len().saturating_sub(1);
    for tool in tools.iter_mut().take(others) {
        if held <= INPUT_LIMIT {
            return;
        }
        held -= tool.bytes();
        (tool.input, tool.title) = (None, None);
    }
}

pub(super) struct CallResult<'g> {
    /// A string or content blocks.
    pub(super) content: Json<'g>,
    pub(super) is_error: bool,
    /// The same in a form for programs.
    pub(super) structured: Option<Json<'g>>,
}

impl CallResult<'static> {
    pub(super) fn words(words: &str, is_error: bool) -> Self {
        Self { content: Json::of(&words), is_error, structured: None }
    }
}

pub(super) fn tool_result(
    id: &str,
    agent: &str,
    given: &CallResult<'_>,
    writer: &mut MessageWriter<'_>,
) {
    let block = UserBlock::ToolResult {
        tool_use_id: id,
        content: &given.content,
        is_error: given.is_error,
    };
    user(block, agent, given.structured.as_ref(), writer);
}

/// Writes a `user` message.
pub(super) fn user(
    block: UserBlock<'_>,
    agent: &str,
    structured: Option<&Json<'_>>,
    writer: &mut MessageWriter<'_>,
) {
    let uuid = writer.uuid();
    let session_id = writer.session_id;
    writer.frame(&User {
        message: UserMessage { role: "user", content: [block] },
        parent_tool_use_id: spawned_by(agent),
        session_id,
        uuid,
        tool_use_result: structured,
    });
}

/// The result of a call that ran to its end.
pub(super) fn completed<'g>(
    scanner: &mut Scanner,
    tool: &OpenCall,
    completed: &'g ToolCompleted<'_>,
) -> CallResult<'g> {
    let is_error = !completed.success;
    let result = completed.result.as_ref().filter(|result| !is_empty(result));
    let structured = completed.structured.clone();
    let Some(result) = result else {
        let words = match &completed.error {
            Some(error) if is_error => Cow::Owned(joined(&error.decode(), &tool.output)),
            _ => Cow::Borrowed(&*tool.output),
        };
        let structured = structured.or_else(|| bash(tool, completed, &words));
        return CallResult { content: Json::of(&words), is_error, structured };
    };
    let Ok(document) = scanner.scan(result.get()) else {
        return CallResult { content: Json::of(&result.get()), is_error, structured };
    };
    let root = document.root();
    if let Some(text) = root.string() {
        let structured = structured.or_else(|| bash(tool, completed, &text));
        let content = match completed.exit_code {
            Some(code) if is_error => Json::of(&format!("Exit code {code}\n{text}")),
            _ => result.clone(),
        };
        return CallResult { content, is_error, structured };
    }
    if root.is_array() {
        let blocks: Vec<ResultBlock<'_>> = root.items().map(block).collect();
        return CallResult { content: Json::of(&blocks), is_error, structured };
    }
    CallResult {
        content: Json::of(&result.get()),
        is_error,
        structured: structured.or(Some(result.clone())),
    }
}

/// The result of a call that did not run to its end.
pub(super) fn failed(
    tool: &OpenCall,
    error: &str,
    result: Option<&Json<'_>>,
) -> CallResult<'static> {
    let told = result.and_then(|result| result.read::<String>().ok());
    let words = told.filter(|told| !told.is_empty()).unwrap_or_else(|| joined(error, &tool.output));
    CallResult::words(&words, true)
}

fn joined(error: &str, output: &str) -> String {
    if output.is_empty() { error.to_owned() } else { format!("{error}\n{output}") }
}

fn is_empty(json: &Json<'_>) -> bool {
    matches!(json.get(), "{}" | "[]" | "\"\"" | "null")
}

/// The form in which Claude's Bash returns its output.
fn bash(tool: &OpenCall, completed: &ToolCompleted<'_>, output: &str) -> Option<Json<'static>> {
    (tool.name == "Bash" && completed.success).then(|| {
        Json::of(&Bash { stdout: output, stderr: "", interrupted: false, is_image: false })
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bash<'a> {
    stdout: &'a str,
    stderr: &'a str,
    interrupted: bool,
    is_image: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultBlock<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: Cow<'a, str>, data: Cow<'a, str> },
    Url { url: Cow<'a, str> },
}

/// Text and images of any agent's form become such blocks; everything else is shown as its JSON.
fn block(block: Value<'_>) -> ResultBlock<'_> {
    let inner = block.get("content").filter(|inner| inner.is_object()).unwrap_or(block);
    let text = inner.read("text").or_else(|| inner.get("resource")?.read("text"));
    if let Some(text) = text {
        return ResultBlock::Text { text };
    }
    image(inner).map_or_else(
        || ResultBlock::Text { text: Cow::Owned(inner.json().get().to_owned()) },
        |source| ResultBlock::Image { source },
    )
}

fn image(block: Value<'_>) -> Option<Source<'_>> {
    if let Some(url) = block.read::<Cow<'_, str>>("imageUrl") {
        let inline = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
        return Some(match inline {
            Some((media_type, data)) => Source::Base64 {
                media_type: Cow::Owned(media_type.to_owned()),
                data: Cow::Owned(data.to_owned()),
            },
            None => Source::Url { url },
        });
    }
    if !block.get("type")?.is("image") {
        return None;
    }
    let source = block.get("source").filter(|source| source.is_object()).unwrap_or(block);
    let media_type = source.read("mimeType").or(source.read("media_type"))?;
    Some(Source::Base64 { media_type, data: source.read("data")? })
}
