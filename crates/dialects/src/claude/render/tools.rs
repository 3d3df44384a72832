//! Tool calls: under which name and input they are shown, and what their results look like.

use std::borrow::Cow;

use agentwire_protocol::event::{ToolCompleted, ToolKind, ToolStarted};
use agentwire_protocol::{Json, Text};
use serde::Serialize;

use super::frames::{User, UserBlock, UserMessage};
use super::speech::spawned_by;
use super::voice::Voice;
use crate::json::{Scanner, Value};

/// How much of a running tool's output is kept, for a result that does not repeat it.
const OUTPUT_LIMIT: usize = 64 << 10;

/// A call whose result has not come.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) id: String,
    /// Who called it.
    pub(super) agent: String,
    pub(super) name: String,
    pub(super) input: Json<'static>,
    /// What it wrote so far.
    pub(super) output: String,
}

impl Tool {
    pub(super) fn new(id: &str, agent: &str, name: String, input: Json<'static>) -> Self {
        Self { id: id.to_owned(), agent: agent.to_owned(), name, input, output: String::new() }
    }

    /// It wrote this.
    pub(super) fn wrote(&mut self, output: &str) {
        let room = OUTPUT_LIMIT.saturating_sub(self.output.len());
        self.output.push_str(output.get(..output.floor_char_boundary(room)).unwrap_or_default());
    }

    /// Whether its call shows what it does to a file.
    pub(super) fn shows_edit(&self) -> bool {
        matches!(&*self.name, "Edit" | "Write")
    }
}

/// The name and input under which a call is shown: Claude's where what it does and what it is called
/// with are Claude's, else the agent's own.
pub(super) fn shown(scanner: &mut Scanner, tool: &ToolStarted<'_>) -> (String, Json<'static>) {
    let own = tool.tool_name.to_string();
    let arguments = tool.arguments.as_ref().filter(|arguments| arguments.get().starts_with('{'));
    let input = arguments.cloned().map_or(Json::checked("{}"), Json::into_owned);
    if let Some(server) = &tool.server {
        return (format!("mcp__{server}__{own}"), input);
    }
    let has = |scanner: &mut Scanner, fields: &[&str]| {
        scanner.scan(input.get()).is_ok_and(|document| {
            let is_string = |field: &&str| document.root().get(field).is_some_and(Value::is_string);
            fields.iter().all(is_string)
        })
    };
    let name = match tool.kind {
        ToolKind::Execute if has(scanner, &["command"]) => "Bash",
        // An agent that tells no arguments of a command shows it as the call's title.
        ToolKind::Execute if arguments.is_none() => match &tool.title {
            Some(command) => return ("Bash".to_owned(), Json::of(&Command { command })),
            None => return (own, input),
        },
        ToolKind::Edit if has(scanner, &["file_path", "old_string", "new_string"]) => "Edit",
        ToolKind::Edit if has(scanner, &["file_path", "content"]) => "Write",
        ToolKind::Execute
        | ToolKind::Edit
        | ToolKind::Read
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Search
        | ToolKind::Fetch
        | ToolKind::Think
        | ToolKind::Agent
        | ToolKind::Question
        | ToolKind::Mcp
        | ToolKind::SwitchMode
        | ToolKind::Other => return (own, input),
    };
    (name.to_owned(), input)
}

#[derive(Serialize)]
struct Command<'a> {
    command: &'a Text<'a>,
}

/// What came of a call.
pub(super) struct Given<'g> {
    /// A string or content blocks.
    pub(super) content: Json<'g>,
    pub(super) is_error: bool,
    /// The same in a form for programs.
    pub(super) structured: Option<Json<'g>>,
}

impl Given<'static> {
    /// Words alone.
    pub(super) fn words(words: &str, is_error: bool) -> Self {
        Self { content: Json::of(&words), is_error, structured: None }
    }
}

/// Says the result of a call.
pub(super) fn tool_result(id: &str, agent: &str, given: &Given<'_>, voice: &mut Voice<'_>) {
    let block = UserBlock::ToolResult {
        tool_use_id: id,
        content: &given.content,
        is_error: given.is_error,
    };
    user(block, agent, given.structured.as_ref(), voice);
}

/// Says a `user` message.
pub(super) fn user(
    block: UserBlock<'_>,
    agent: &str,
    structured: Option<&Json<'_>>,
    voice: &mut Voice<'_>,
) {
    let uuid = voice.uuid();
    let session_id = voice.session_id;
    voice.frame(&User {
        r#type: "user",
        message: UserMessage { role: "user", content: [block] },
        parent_tool_use_id: spawned_by(agent),
        session_id,
        uuid,
        tool_use_result: structured,
    });
}

/// What a call that ran to its end gave.
pub(super) fn completed<'g>(
    scanner: &mut Scanner,
    tool: &Tool,
    completed: &'g ToolCompleted<'_>,
) -> Given<'g> {
    let is_error = !completed.success;
    let result = completed.result.as_ref().filter(|result| !is_empty(result));
    let structured = completed.structured.clone();
    let Some(result) = result else {
        let words = match &completed.error {
            Some(error) if is_error => Cow::Owned(joined(&error.decode(), &tool.output)),
            _ => Cow::Borrowed(&*tool.output),
        };
        let structured = structured.or_else(|| bash(tool, completed, &words));
        return Given { content: Json::of(&words), is_error, structured };
    };
    let Ok(document) = scanner.scan(result.get()) else {
        return Given { content: Json::of(&result.get()), is_error, structured };
    };
    let root = document.root();
    if let Some(text) = root.string() {
        let structured = structured.or_else(|| bash(tool, completed, &text));
        let content = match completed.exit_code {
            Some(code) if is_error => Json::of(&format!("Exit code {code}\n{text}")),
            _ => result.clone(),
        };
        return Given { content, is_error, structured };
    }
    if root.is_array() {
        let blocks: Vec<ResultBlock<'_>> = root.items().map(block).collect();
        return Given { content: Json::of(&blocks), is_error, structured };
    }
    Given {
        content: Json::of(&result.get()),
        is_error,
        structured: structured.or(Some(result.clone())),
    }
}

/// What a call that did not run to its end gave.
pub(super) fn failed(tool: &Tool, error: &str, result: Option<&Json<'_>>) -> Given<'static> {
    let told = result.and_then(|result| result.read::<String>().ok());
    let words = told.filter(|told| !told.is_empty()).unwrap_or_else(|| joined(error, &tool.output));
    Given::words(&words, true)
}

fn joined(error: &str, output: &str) -> String {
    if output.is_empty() { error.to_owned() } else { format!("{error}\n{output}") }
}

fn is_empty(json: &Json<'_>) -> bool {
    matches!(json.get(), "{}" | "[]" | "\"\"" | "null")
}

/// The form in which Claude's Bash gives its output.
fn bash(tool: &Tool, completed: &ToolCompleted<'_>, output: &str) -> Option<Json<'static>> {
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

/// A block of a result.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultBlock<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
}

/// Where an image is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: Cow<'a, str>, data: Cow<'a, str> },
    Url { url: Cow<'a, str> },
}

/// Text and images are told as such, in whichever agent's form they came; the rest as its JSON.
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
