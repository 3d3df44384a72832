// Everything that a server says and accepts. Written by scripts/generate.mjs from schema/openapi.json.

/** The version of agentwire that this package belongs to. */
export const VERSION = "0.1.0";

/** A subagent definition. */
export interface AgentDefinition {
  /** When to use it. */
  description: string;
  /** Its model. */
  model?: string;
  /** Its system prompt. */
  prompt: string;
  /** The tools it may use; all if omitted. */
  tools?: string[];
}

/** A subagent definition. */
export interface AgentDefinitionInput {
  /** When to use it. */
  description: string;
  /** Its model. */
  model?: string | null;
  /** Its system prompt. */
  prompt: string;
  /** The tools it may use; all if omitted. */
  tools?: string[] | null;
}

/** A subagent ended. */
export interface AgentFinishedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** How long it took, as reported by the agent. */
  durationMs?: number;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** The agent's own id for the subagent. */
  nativeId?: string;
  /** How it ended. */
  outcome: AgentOutcome;
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Its answer. */
  result?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "agentFinished";
  /** The tokens it used, if the agent reports them. */
  usage?: TokenUsage;
}

/** What an agent reports about itself when it is ready. */
export interface AgentInfo {
  /** The account that the agent reports. */
  account?: unknown;
  /** The version of the agent's program. */
  agentVersion?: string;
  /** The agent's list of subagent kinds. */
  agents?: unknown;
  /** The capabilities that the agent reports. */
  capabilities?: unknown;
  /** The agent's list of commands. */
  commands?: unknown;
  /** The agent's list of MCP servers. */
  mcpServers?: unknown;
  /** The agent's own name for its permission mode. */
  mode?: string;
  /** The model in use. */
  model?: string;
  /** The agent's list of models. */
  models?: unknown;
  /** The agent's list of modes. */
  modes?: unknown;
  /** The agent's own session id, which it needs to resume. */
  nativeSessionId?: string;
  /** The agent's list of tools. */
  tools?: unknown;
  /** The working directory. */
  workingDirectory?: string;
}

/** How a subagent ended. */
export type AgentOutcome = "completed" | "failed" | "cancelled";

/** A subagent started. */
export interface AgentSpawnedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Whether the agent that spawned it keeps working in the meantime. */
  background?: boolean;
  /** What it is for, in a few words. */
  description?: string;
  /** Unique across all sessions. */
  id: string;
  /** The kind of subagent, as the agent names it. */
  name?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** The agent's own id for the subagent. */
  nativeId?: string;
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Its prompt. */
  prompt?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "agentSpawned";
}

/** The agents that agentwire drives. */
export type AgentType = "claude" | "codex" | "gemini" | "acp" | "demo";

/** When the gateway asks before a tool runs. */
export type ApprovalMode = "ask" | "askDangerous" | "autoEdit" | "autoAll";

/** Read the session's events from a given point. */
export interface AttachCommand {
  /** The last event already seen. */
  after?: number;
  command: "attach";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Which events to show. */
  profile?: Profile;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** A session that the client attached to. */
export interface Attached {
  /** The agent. */
  agentType: AgentType;
  /** The agent's version, as it reports it. */
  agentVersion?: string;
  /** When the gateway asks for approval. */
  approvalMode?: ApprovalMode;
  /** Cost of all turns, if the agent reports it. */
  costUsd?: number;
  /** When it started, RFC 3339 in UTC. */
  createdAt: string;
  /** The driver of the agent. */
  driver?: string;
  /** What went wrong, if anything did. */
  error?: string;
  /** The version of agentwire that ran it last. */
  gatewayVersion?: string;
  /** A UUID. */
  id: SessionId;
  /** The number of its last event. */
  lastSeq: number;
  /** How the last finished turn ended. */
  lastTurn?: TurnEnd;
  /** The model in use. */
  model?: string;
  /** The agent's own session id, which it needs to resume. */
  nativeSessionId?: string;
  /** How many requests are waiting for an answer. */
  openRequests: number;
  /** Whether it is pinned. */
  pinned: boolean;
  /** Why it ended. */
  reason?: SessionEndReason;
  /** Whether events are missing. */
  resume: Resume;
  /** The current state. */
  state: SessionState;
  /** Its tags. */
  tags: string[];
  /** The title that a client gave it, else the agent's, else the first words of the first prompt. */
  title?: string;
  /** How many turns it has had. */
  turns: number;
  /** When its last event was received. */
  updatedAt: string;
  /** Tokens used by all turns. */
  usage: TokenUsage;
  /** The working directory. */
  workingDirectory?: string;
}

/** Whether the call may run. */
export type Behavior = "allow" | "deny";

/** Cancel a prompt that waits for its turn. */
export interface CancelCommand {
  command: "cancel";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The `messageId` of the accepted prompt. */
  messageId: string;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** A session that is new or has changed. */
export interface ChangedSession {
  /** All its open requests, oldest first, if they have changed. */
  requests?: OpenRequest[];
  /** The session as it appears in a list. */
  session: SessionSummary;
}

/** One line of a client: a command to a session, or an inquiry to the gateway. */
export type CommandFrame = StartCommand | AttachCommand | PromptCommand | InterruptCommand | StopCommand | FinishCommand | SettleCommand | ConfigureCommand | QueryCommand | RewindCommand | QueueCommand | CancelCommand | EditCommand | ListCommand | LabelCommand | ShowCommand | RequestsCommand | UsageCommand | SearchCommand | DetachCommand | WatchCommand | UnwatchCommand;

/** Change the model or the mode. Omitted fields stay as they are. */
export interface ConfigureCommand {
  /** When to ask for approval. */
  approvalMode?: ApprovalMode | null;
  command: "configure";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Limit on reasoning tokens per step; `null` restores the value that the session was started with. */
  maxThinkingTokens?: number | null;
  /** The model; `null` restores the one that the session was started with. */
  model?: string | null;
  /** The agent's own name for a permission mode; takes precedence over `approvalMode`. */
  permissionMode?: string | null;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** How an agent's processes are contained. */
export interface ContainmentStatus {
  /** What an agent could still circumvent. */
  caveat?: string;
  /**
   * `namespace`: a pid namespace, in which agentwire's own files are hidden; `keeper`: a process that
   * watches the agent's processes; `processGroup`: neither.
   */
  kind: string;
  /** Why a stronger containment is not available. */
  reason?: string;
}

/** What to do with a prompt if a turn is running. */
export type Delivery = "queue" | "steer" | "now";

/** Stop showing events of that session. */
export interface DetachCommand {
  command: "detach";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session. */
  sessionId: SessionId;
}

/** The reply to a command that succeeded. */
export interface DoneFrame {
  /** The id of the command, if it had one. */
  id?: unknown;
  /** The type depends on the command, see `Replies`. */
  reply: unknown;
}

/** Change the text of a prompt that waits for its turn. */
export interface EditCommand {
  command: "edit";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The `messageId` of the accepted prompt. */
  messageId: string;
  /** The new text; images stay as they are. */
  prompt: string;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/**
 * Why a call was refused. Each front maps every code to its own specification's codes with an exhaustive
 * match.
 */
export type ErrorCode = "invalidJson" | "invalidMessage" | "unknownMethod" | "unauthorized" | "forbidden" | "sessionNotFound" | "agentUnavailable" | "startFailed" | "agentFailed" | "requestNotFound" | "requestSettled" | "timeout" | "unsupported" | "overloaded" | "storageFull" | "conflict" | "internal";

/** Something went wrong. The error itself ends neither the turn nor the session. */
export interface ErrorEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The agent's own name for the error, or one of agentwire's. */
  code?: string;
  /** The agent's own data for the error. */
  details?: unknown;
  /** Unique across all sessions. */
  id: string;
  /** What went wrong. */
  message: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "error";
  /** Whether the agent retries on its own. */
  willRetry?: boolean;
}

/** A command that was refused and changed nothing; or, without an `id`, a problem with the connection. */
export interface ErrorFrame {
  /** Why it was refused. */
  error: GatewayError;
  /** The id of the command, if it had one. */
  id?: unknown;
}

/** One entry in a session's log. It never changes once it has a number. */
export type Event = SessionStartedEvent | SessionEndedEvent | TurnStartedEvent | TurnCompletedEvent | TurnFailedEvent | TextChunkEvent | ToolStartedEvent | ToolProgressEvent | ToolCompletedEvent | ToolFailedEvent | FileChangedEvent | ErrorEvent | ThinkingChunkEvent | PlanUpdatedEvent | AgentSpawnedEvent | AgentFinishedEvent | RequestRaisedEvent | RequestSettledEvent | StatusChangedEvent | UsageReportedEvent | OtherEvent;

/** A page of a session's events. */
export interface EventPage {
  /** The session has ended and no more events will come. */
  ended: boolean;
  /** The events, in order. */
  events: Event[];
  /** The number of the last event in the log. */
  last: number;
  /** The value of `after` for the next page. */
  next: number;
  /** The value of `before` for the page before this one, if there is one. */
  previous?: number;
  /** `exact`, or the events that are missing. */
  resume: unknown;
}

/** What happened to a file. */
export type FileChangeType = "created" | "modified" | "deleted";

/** A file was changed. */
export interface FileChangedEvent {
  /** The text after the change. */
  after?: string;
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The text before the change. */
  before?: string;
  /** What happened to it. */
  changeType: FileChangeType;
  /** A unified diff, if the agent's data allow one. */
  diff?: string;
  /** The path, as the agent names it. */
  filePath: string;
  /** Unique across all sessions. */
  id: string;
  /** The new path, if the file was moved. */
  movedTo?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The tool call that changed it. */
  toolId?: string;
  type: "fileChanged";
}

/** End the session once its work is done. */
export interface FinishCommand {
  command: "finish";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** A refused call: the kind of error, a message for people, and details for programs. */
export interface GatewayError {
  /** The kind of error. */
  code: ErrorCode;
  /** Further details, for programs. */
  details?: unknown;
  /** What happened and, where possible, what to do next. */
  message: string;
}

/** When a hook is called. */
export interface HookMatcher {
  /** The client's ids of the callbacks, one call each. If there are none, agentwire uses its own id. */
  hookCallbackIds?: string[];
  /** A pattern for tool names, such as `Write|Edit`. */
  matcher?: string;
  /** What to do if the hook itself fails: `block`, or nothing. */
  onFailure?: string;
  /** How many seconds the agent waits for an answer. */
  timeout?: number;
}

/** When a hook is called. */
export interface HookMatcherInput {
  /** The client's ids of the callbacks, one call each. If there are none, agentwire uses its own id. */
  hookCallbackIds?: string[];
  /** A pattern for tool names, such as `Write|Edit`. */
  matcher?: string | null;
  /** What to do if the hook itself fails: `block`, or nothing. */
  onFailure?: string | null;
  /** How many seconds the agent waits for an answer. */
  timeout?: number | null;
}

/** An image, encoded in base64. */
export interface Image {
  /** The image data, in base64. */
  data: string;
  /** The media type, such as `image/png`. */
  mediaType: string;
}

/** What to do with queued prompts when a turn is interrupted. */
export interface Interrupt {
  /** Also cancel the queued prompts; otherwise they stay queued. */
  cancelQueued?: boolean;
}

/** Stop the current turn; the session stays open. */
export interface InterruptCommand {
  /** Also cancel the queued prompts; otherwise they stay queued. */
  cancelQueued?: boolean;
  command: "interrupt";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** An interrupted turn. */
export interface InterruptResult {
  /** With `cancelQueued`: the `messageId`s of the cancelled prompts. */
  cancelled?: string[];
  /** The `messageId`s of the prompts that are still queued. */
  stillQueued: string[];
}

/** Change the title, the pin or the tags of a session. */
export interface LabelCommand {
  command: "label";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Whether the session is pinned. */
  pinned?: boolean | null;
  /** The session. */
  sessionId: SessionId;
  /** All tags: at most 16 of at most 48 characters. */
  tags?: string[] | null;
  /** The title, at most 200 characters; `null` restores the one from the first prompt or the agent. */
  title?: string | null;
}

/** List sessions. */
export interface ListCommand {
  /** The `next` of the previous page. The other fields must be the same as for that page. */
  after?: string | null;
  /** Only sessions of this agent. */
  agent?: AgentType | null;
  command: "list";
  /** Only sessions that work in this directory or below it. */
  directory?: string | null;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The maximum page size; 50 by default. A number outside the range is clamped to it. */
  limit?: number | null;
  /** Only sessions that have not ended. */
  live?: boolean;
  /**
   * Only sessions with all of these words in the title, the start of the first prompt, the directory or
   * the tags.
   */
  q?: string | null;
  /** The order. */
  sort?: SessionSort | null;
  /** Only sessions in this state. */
  state?: SessionState | null;
}

/** An MCP server: a command to run, or a URL. */
export interface McpServer {
  /** The program's arguments. */
  args?: string[];
  /** The program to run. */
  command?: string;
  /** The program's environment variables. */
  env?: Record<string, string>;
  /** Headers to send to the URL. */
  headers?: Record<string, string>;
  /** `stdio` (the default), `sse`, `http`, or `sdk` for a server that the client hosts. */
  type?: string;
  /** The server's URL. */
  url?: string;
}

/** An MCP server: a command to run, or a URL. */
export interface McpServerInput {
  /** The program's arguments. */
  args?: string[];
  /** The program to run. */
  command?: string | null;
  /** The program's environment variables. */
  env?: Record<string, string>;
  /** Headers to send to the URL. */
  headers?: Record<string, string>;
  /** `stdio` (the default), `sse`, `http`, or `sdk` for a server that the client hosts. */
  type?: string | null;
  /** The server's URL. */
  url?: string | null;
}

/** The usage of one model in a turn. */
export interface ModelUsage {
  /** The cost, if the agent reports it. */
  costUsd?: number;
  /** The model. */
  model: string;
  /** Its tokens. */
  usage: TokenUsage;
}

/** One line of an agent, byte for byte. */
export type Native = {
  /** The exact bytes, if they are not UTF-8, or are long and mostly need escapes. */
  base64?: string;
  /** The dialect of the line. */
  dialect: string;
  /** The exact text, embedded, if any strict JSON parser accepts it. */
  json?: unknown;
  stream: Stream;
  /** The exact text, if it is UTF-8 but not such JSON. */
  text?: string;
  /** The output ended without a line end after this line. */
  unterminated?: boolean;
};

/** The new text of a queued prompt. */
export interface NewText {
  /** The new text; images stay as they are. */
  prompt: string;
}

/** An empty reply, `{}`. */
export type Nothing = Record<string, unknown>;

/** What to do when a limit is reached. */
export type OnLimit = "ask" | "fail";

/** An open request, as it was raised. */
export interface OpenRequest {
  /** The agent within the session that raised it. */
  agentId: string;
  /**
   * An allow applies to this call only, even with `remember`: either no rule could allow exactly what is
   * shown, or the agent warns about the call.
   */
  allowIsOnce?: boolean;
  /** The path that caused the request. */
  blockedPath?: string;
  /** For a hook, the client's id of the callback. */
  callbackId?: string;
  /** The input of the tool. For a hook or an MCP message, the message. */
  input?: unknown;
  /**
   * SHA-256 of the exact text of `input`, in hex. An answer that names it applies only to the input that
   * was shown.
   */
  inputDigest: string;
  /**
   * The agent runs the call with the input that is shown, or not at all. An allow with `updatedInput` is
   * refused.
   */
  inputIsFixed?: boolean;
  /** The kind of request. */
  kind: RequestKind;
  /** Why the agent asks. */
  message?: string;
  /** The hook event, the MCP server, or the native method. */
  name?: string;
  /** The answers that the agent offers, if it names them. */
  options?: RequestOption[];
  /** The agent that spawned that agent. */
  parentAgentId?: string;
  /** The questions for the user. */
  questions?: Question[];
  /** When it was raised. */
  raisedAt: string;
  /** The id to settle it with. */
  requestId: string;
  /** The JSON Schema that the answer must follow. */
  schema?: unknown;
  /** The number of the event that raised it. */
  seq: number;
  /** The session of the request. */
  sessionId: SessionId;
  /** Always `open`; settled requests are not listed. */
  state: RequestState;
  /** Rules that "always allow" could add, as the agent proposes them. */
  suggestions?: unknown;
  /** A title to show. */
  title?: string;
  /** The tool that wants to run. */
  toolName?: string;
  /** The tool call. */
  toolUseId?: string;
  /**
   * A warning from the agent itself. No mode except `autoAll`, and no rule with a pattern, allows such a
   * call without asking.
   */
  warning?: string;
}

/** A line that no other event type can represent; it is in `native`. */
export interface OtherEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Unique across all sessions. */
  id: string;
  /** The agent's own name for the message, if it has one. */
  name?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "other";
}

/** The required format of the answer. */
export interface OutputFormat {
  /** The JSON Schema. */
  schema: unknown;
  /** Always `json_schema`. */
  type: string;
}

/** One step of a plan. */
export interface PlanEntry {
  /** What to do. */
  content: string;
  /** The priority, as the agent names it. */
  priority?: string;
  /** The state of the step. */
  status: PlanStatus;
}

/** The state of a step. */
export type PlanStatus = "pending" | "inProgress" | "completed" | "cancelled";

/** The agent's complete plan or to-do list. */
export interface PlanUpdatedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The steps, in order. */
  entries: PlanEntry[];
  /** The plan as text, if it has no steps or more than steps. */
  explanation?: string;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "planUpdated";
}

export interface Problem {
  code: ErrorCode;
  detail: string;
  details?: unknown;
  status: number;
  title: string;
  type: string;
}

/** How much of a log a reader sees. */
export type Profile = "core" | "lean" | "full";

/** A prompt: text, optionally with images. */
export interface Prompt {
  /** The whole message as Claude's content blocks, if it has more than text and images. */
  content?: unknown;
  /** What to do if a turn is running. */
  delivery?: Delivery | null;
  /** Images. */
  images?: Image[];
  /** The client's id for the message, a UUID. A message sent twice counts once. */
  messageId?: string | null;
  /**
   * Further fields of Claude's user message, in Claude's format: an object. Other agents treat them as
   * hints, except `shouldQuery: false`, which is refused.
   */
  native?: unknown;
  /** The text. */
  prompt: string;
}

/** Send a prompt. */
export interface PromptCommand {
  command: "prompt";
  /** The whole message as Claude's content blocks, if it has more than text and images. */
  content?: unknown;
  /** What to do if a turn is running. */
  delivery?: Delivery | null;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Images. */
  images?: Image[];
  /** The client's id for the message, a UUID. A message sent twice counts once. */
  messageId?: string | null;
  /**
   * Further fields of Claude's user message, in Claude's format: an object. Other agents treat them as
   * hints, except `shouldQuery: false`, which is refused.
   */
  native?: unknown;
  /** The text. */
  prompt: string;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** The prompts that wait for their turn, in the order in which they will be sent. */
export interface PromptQueue {
  /** The prompts. */
  queued: QueuedPrompt[];
}

/** An accepted prompt. */
export interface PromptResult {
  /** The id of the prompt; the turn that works on it names it. */
  messageId: string;
  /** The prompt was already accepted before. */
  repeated?: boolean;
}

/** A query to the agent. */
export interface Query {
  /** The arguments. */
  args?: unknown[];
  /** The method, such as `supportedModels`. */
  method: string;
}

/** Ask the agent for something. */
export interface QueryCommand {
  /** The arguments. */
  args?: unknown[];
  command: "query";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The method, such as `supportedModels`. */
  method: string;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** The agent's answer to a query. */
export interface QueryResult {
  /** The result as the agent has it. */
  result: unknown;
}

/** A question to the user. */
export interface Question {
  /** A title of one or two words. */
  header?: string;
  /** The key of its answer. */
  id?: string;
  /** Whether the answer must not be shown. */
  isSecret?: boolean;
  /** Whether several answers may be chosen. */
  multiSelect?: boolean;
  /** The answers to choose from; free text is also allowed. */
  options?: QuestionOption[];
  /** The question text; also the key of its answer, unless it has an `id`. */
  question: string;
}

/** One answer to choose from. */
export interface QuestionOption {
  /** What the choice means. */
  description?: string;
  /** The value to choose. */
  label: string;
}

/** List the prompts that wait for their turn. */
export interface QueueCommand {
  command: "queue";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** A prompt that waits for its turn. */
export interface QueuedPrompt {
  /** How many images it has. */
  images?: number;
  /** The id of the prompt. */
  messageId: string;
  /** The text; at most its first 64 KiB. */
  prompt: string;
}

/** How long an answer applies. */
export type Remember = "once" | "session";

/** The replies by command. */
export interface Replies {
  attach: Attached;
  cancel: Nothing;
  /** The agent's reply. */
  configure: unknown;
  detach: Nothing;
  edit: Nothing;
  finish: Nothing;
  interrupt: InterruptResult;
  label: SessionSummary;
  list: SessionList;
  prompt: PromptResult;
  /** The agent's reply. */
  query: unknown;
  queue: PromptQueue;
  requests: RequestList;
  /** The agent's reply. */
  rewind: unknown;
  search: SearchResult;
  settle: Nothing;
  show: SessionDetails;
  start: SessionSummary;
  stop: Nothing;
  unwatch: Nothing;
  usage: UsageReport;
  watch: Nothing;
}

/** The reply to a command. */
export type ReplyFrame = DoneFrame | ErrorFrame | WatchFrame;

/** The id of a request that an agent raised; unique within its session. */
export type RequestId = string;

/** The kind of a request. */
export type RequestKind = "permission" | "question" | "hook" | "mcp" | "other";

/** Open requests, oldest first. */
export interface RequestList {
  /** The requests. */
  requests: OpenRequest[];
}

/** One answer that the agent offers for a permission request. */
export interface RequestOption {
  /** The agent's id for the answer. */
  id: string;
  /** What it does. */
  kind: RequestOptionKind;
  /** The text to show. */
  label: string;
}

/** What an offered answer does. */
export type RequestOptionKind = "allowOnce" | "allowAlways" | "rejectOnce" | "rejectAlways" | "unknown";

/** How a request ended. */
export type RequestOutcome = "allowed" | "denied" | "answered" | "withdrawn" | "resolved";

/** The agent asks something and waits for the answer. */
export interface RequestRaisedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /**
   * An allow applies to this call only, even with `remember`: either no rule could allow exactly what is
   * shown, or the agent warns about the call.
   */
  allowIsOnce?: boolean;
  /** The path that caused the request. */
  blockedPath?: string;
  /** For a hook, the client's id of the callback. */
  callbackId?: string;
  /** Unique across all sessions. */
  id: string;
  /** The input of the tool. For a hook or an MCP message, the message. */
  input?: unknown;
  /**
   * SHA-256 of the exact text of `input`, in hex. An answer that names it applies only to the input that
   * was shown.
   */
  inputDigest: string;
  /**
   * The agent runs the call with the input that is shown, or not at all. An allow with `updatedInput` is
   * refused.
   */
  inputIsFixed?: boolean;
  /** The kind of request. */
  kind: RequestKind;
  /** Why the agent asks. */
  message?: string;
  /** The hook event, the MCP server, or the native method. */
  name?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** The answers that the agent offers, if it names them. */
  options?: RequestOption[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The questions for the user. */
  questions?: Question[];
  /** The id to settle it with. */
  requestId: string;
  /** The JSON Schema that the answer must follow. */
  schema?: unknown;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** Rules that "always allow" could add, as the agent proposes them. */
  suggestions?: unknown;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** A title to show. */
  title?: string;
  /** The tool that wants to run. */
  toolName?: string;
  /** The tool call. */
  toolUseId?: string;
  type: "requestRaised";
  /**
   * A warning from the agent itself. No mode except `autoAll`, and no rule with a pattern, allows such a
   * call without asking.
   */
  warning?: string;
}

/** A request was answered or withdrawn. */
export interface RequestSettledEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Who settled it. */
  by: SettledBy;
  /** The client of a server that answered: the name of its token. */
  client?: string;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** How it ended. */
  outcome: RequestOutcome;
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The reason, as text. */
  reason?: string;
  /** The request. */
  requestId: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "requestSettled";
  /** The input that the tool runs with, instead of the input that was shown. */
  updatedInput?: unknown;
}

/** The state of a request. */
export type RequestState = "open";

/** List open requests: of one session, or of all. */
export interface RequestsCommand {
  command: "requests";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Only requests of this session; of all sessions if omitted. */
  sessionId?: SessionId | null;
}

/** Whether a client can continue from its last event without a gap. */
export type Resume = "exact" | {
  missing: {
    /** The first of them. */
    from: number;
    /** The last of them. */
    to: number;
  };
};

/** The message whose file state is restored. */
export interface Rewind {
  /** Only report what would change. */
  dryRun?: boolean;
  /** The `messageId` of the accepted prompt. */
  messageId: string;
}

/** Restore files to their state at a message. */
export interface RewindCommand {
  command: "rewind";
  /** Only report what would change. */
  dryRun?: boolean;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The `messageId` of the accepted prompt. */
  messageId: string;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** What an agent's commands may access. */
export type SandboxMode = "none" | "readOnly" | "workspaceWrite" | "fullAccess";

/** The network access of a sandbox. */
export interface SandboxNetwork {
  /** Allow all Unix sockets. */
  allowAllUnixSockets?: boolean;
  /** Allow listening on local ports. */
  allowLocalBinding?: boolean;
  /** Unix sockets to allow. */
  allowUnixSockets?: string[];
}

/** The network access of a sandbox. */
export interface SandboxNetworkInput {
  /** Allow all Unix sockets. */
  allowAllUnixSockets?: boolean | null;
  /** Allow listening on local ports. */
  allowLocalBinding?: boolean | null;
  /** Unix sockets to allow. */
  allowUnixSockets?: string[] | null;
}

/** The agent's own sandbox settings. */
export interface SandboxSettings {
  /** Whether the agent may ask to run a command outside the sandbox. */
  allowUnsandboxedCommands?: boolean;
  /** Whether sandboxed commands run without asking. */
  autoAllowBashIfSandboxed?: boolean;
  /** Whether commands run in a sandbox. */
  enabled?: boolean;
  /** Commands that run outside the sandbox. */
  excludedCommands?: string[];
  /** Whether the agent refuses to start if no sandbox is available. */
  failIfUnavailable?: boolean;
  /** Violations to ignore. */
  ignoreViolations?: SandboxViolations;
  /** The network access of the sandbox. */
  network?: SandboxNetwork;
}

/** The agent's own sandbox settings. */
export interface SandboxSettingsInput {
  /** Whether the agent may ask to run a command outside the sandbox. */
  allowUnsandboxedCommands?: boolean | null;
  /** Whether sandboxed commands run without asking. */
  autoAllowBashIfSandboxed?: boolean | null;
  /** Whether commands run in a sandbox. */
  enabled?: boolean | null;
  /** Commands that run outside the sandbox. */
  excludedCommands?: string[] | null;
  /** Whether the agent refuses to start if no sandbox is available. */
  failIfUnavailable?: boolean | null;
  /** Violations to ignore. */
  ignoreViolations?: SandboxViolationsInput | null;
  /** The network access of the sandbox. */
  network?: SandboxNetworkInput | null;
}

/** Violations to ignore. */
export interface SandboxViolations {
  /** Ignore violations for these files. */
  file?: string[];
  /** Ignore violations for these hosts. */
  network?: string[];
}

/** Violations to ignore. */
export interface SandboxViolationsInput {
  /** Ignore violations for these files. */
  file?: string[] | null;
  /** Ignore violations for these hosts. */
  network?: string[] | null;
}

/** Search in prompts, answers, thinking, calls and paths. */
export interface SearchCommand {
  /** The `next` of the previous page. */
  after?: string | null;
  command: "search";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The maximum page size; 20 by default. */
  limit?: number | null;
  /**
   * The words, all of which a text must have. Words in double quotes must follow each other. A word that
   * ends in `*` stands for all words that start so.
   */
  q?: string;
  /** Only in this session. */
  sessionId?: SessionId | null;
  /**
   * Only texts of events of this type: turnStarted, textChunk, thinkingChunk, toolStarted or
   * fileChanged.
   */
  type?: string | null;
}

/** A text with the words. */
export interface SearchHit {
  /** Where the words are in `snippet`: start and end of each, in characters. */
  marks: (number[])[];
  /** The number of the first event of the text. */
  seq: number;
  /** The session. */
  sessionId: SessionId;
  /** The part of the text around the words. */
  snippet: string;
  /** When it was received. */
  timestamp: string;
  /** The title of the session. */
  title?: string;
  /** The type of that event. */
  type: string;
}

/** What a search found. */
export interface SearchResult {
  /** Whether every event in the store was searched. `false` while old sessions are still being read. */
  complete: boolean;
  /** The texts, the last indexed first. */
  hits: SearchHit[];
  /** The value of `after` for the next page, if there is one. */
  next?: string;
}

/** The status of the server. */
export interface ServerStatus {
  /** How an agent's processes are contained. */
  containment: ContainmentStatus;
  /** The name of the client's token. */
  name: string;
  /** How many requests are waiting for an answer. */
  openRequests: number;
  /** The scope of the client's token. */
  scope: string;
  /** How many sessions run here. */
  sessions: number;
  /** Seconds since the server started. */
  uptimeSeconds: number;
  /** The version of agentwire. */
  version: string;
}

/**
 * A change of a session, as `PATCH` takes it: of its labels, of its model and mode, or of both. Omitted
 * fields stay as they are.
 */
export interface SessionChange {
  /** When to ask for approval. */
  approvalMode?: ApprovalMode | null;
  /** Limit on reasoning tokens per step; `null` restores the value that the session was started with. */
  maxThinkingTokens?: number | null;
  /** The model; `null` restores the one that the session was started with. */
  model?: string | null;
  /** The agent's own name for a permission mode; takes precedence over `approvalMode`. */
  permissionMode?: string | null;
  /** Whether the session is pinned. */
  pinned?: boolean | null;
  /** All tags: at most 16 of at most 48 characters. */
  tags?: string[] | null;
  /** The title, at most 200 characters; `null` restores the one from the first prompt or the agent. */
  title?: string | null;
}

/**
 * The config of a session. The first nine fields are from the specification; the rest are options of the
 * NDJSON backend and agentwire's own.
 */
export interface SessionConfig {
  /** Further directories the agent may work in. */
  additionalDirectories?: string[];
  /** The agent, if it is not given elsewhere. */
  agentType?: string;
  /** Subagent definitions by name. */
  agents?: Record<string, AgentDefinition>;
  /** Tools that run without asking. */
  allowedTools?: string[];
  /** When to ask for approval. */
  approvalMode?: ApprovalMode;
  /** Beta features of the model's service. */
  betas?: string[];
  /** Tools that never run. */
  blockedTools?: string[];
  /** The driver to use for the agent. */
  driver?: string;
  /** Whether the agent stores copies of files, so that they can be rewound. */
  enableFileCheckpointing?: boolean;
  /** Environment variables for the agent. */
  env?: Record<string, string>;
  /** The model to use if the first is not available. */
  fallbackModel?: string;
  /** Hooks that the client answers, by event. */
  hooks?: Record<string, HookMatcher[]>;
  /** Whether text is streamed as the model writes it. On by default. */
  includePartialMessages?: boolean;
  /** Maximum number of tokens for the session. */
  maxBudgetTokens?: number;
  /** Maximum cost of the session, in US dollars. */
  maxBudgetUsd?: number;
  /** Maximum number of reasoning tokens per step. */
  maxThinkingTokens?: number;
  /** Maximum number of steps per turn. */
  maxTurns?: number;
  /** MCP servers by name. */
  mcpServers?: Record<string, McpServer>;
  /** The model. */
  model?: string;
  /** Further arguments for the agent's program, passed on unchanged. */
  nativeArgs?: string[];
  /**
   * Further fields of Claude's `initialize`, in Claude's format. Other agents treat them as hints,
   * except fields that would change what the agent does, which are refused.
   */
  nativeOptions?: Record<string, unknown>;
  /** What to do when `maxTurns` or a budget is reached. */
  onLimit?: OnLimit;
  /** The required format of the answer. */
  outputFormat?: OutputFormat;
  /** The agent's own name for a permission mode; takes precedence over `approvalMode`. */
  permissionMode?: string;
  /** A project that the server knows. */
  projectId?: string;
  /** The agent's own sandbox settings. */
  sandbox?: SandboxSettings;
  /** What commands may access. */
  sandboxMode?: SandboxMode;
  /** Which of the agent's settings files it reads: `user`, `project`, `local`. */
  settingSources?: string[];
  /** The system prompt. */
  systemPrompt?: SystemPrompt;
  /**
   * Whether the project's own files may make the agent run something: `true` trusts them as they are,
   * `false` starts the agent without them. If omitted, agentwire asks.
   */
  trust?: boolean;
  /** The working directory of the agent. */
  workingDirectory?: string;
}

/**
 * The config of a session. The first nine fields are from the specification; the rest are options of the
 * NDJSON backend and agentwire's own.
 */
export interface SessionConfigInput {
  /** Further directories the agent may work in. */
  additionalDirectories?: string[] | null;
  /** The agent, if it is not given elsewhere. */
  agentType?: string | null;
  /** Subagent definitions by name. */
  agents?: Record<string, AgentDefinitionInput> | null;
  /** Tools that run without asking. */
  allowedTools?: string[] | null;
  /** When to ask for approval. */
  approvalMode?: ApprovalMode | null;
  /** Beta features of the model's service. */
  betas?: string[] | null;
  /** Tools that never run. */
  blockedTools?: string[] | null;
  /** The driver to use for the agent. */
  driver?: string | null;
  /** Whether the agent stores copies of files, so that they can be rewound. */
  enableFileCheckpointing?: boolean | null;
  /** Environment variables for the agent. */
  env?: Record<string, string> | null;
  /** The model to use if the first is not available. */
  fallbackModel?: string | null;
  /** Hooks that the client answers, by event. */
  hooks?: Record<string, HookMatcherInput[]> | null;
  /** Whether text is streamed as the model writes it. On by default. */
  includePartialMessages?: boolean | null;
  /** Maximum number of tokens for the session. */
  maxBudgetTokens?: number | null;
  /** Maximum cost of the session, in US dollars. */
  maxBudgetUsd?: number | null;
  /** Maximum number of reasoning tokens per step. */
  maxThinkingTokens?: number | null;
  /** Maximum number of steps per turn. */
  maxTurns?: number | null;
  /** MCP servers by name. */
  mcpServers?: Record<string, McpServerInput> | null;
  /** The model. */
  model?: string | null;
  /** Further arguments for the agent's program, passed on unchanged. */
  nativeArgs?: string[] | null;
  /**
   * Further fields of Claude's `initialize`, in Claude's format. Other agents treat them as hints,
   * except fields that would change what the agent does, which are refused.
   */
  nativeOptions?: Record<string, unknown> | null;
  /** What to do when `maxTurns` or a budget is reached. */
  onLimit?: OnLimit | null;
  /** The required format of the answer. */
  outputFormat?: OutputFormat | null;
  /** The agent's own name for a permission mode; takes precedence over `approvalMode`. */
  permissionMode?: string | null;
  /** A project that the server knows. */
  projectId?: string | null;
  /** The agent's own sandbox settings. */
  sandbox?: SandboxSettingsInput | null;
  /** What commands may access. */
  sandboxMode?: SandboxMode | null;
  /** Which of the agent's settings files it reads: `user`, `project`, `local`. */
  settingSources?: string[] | null;
  /** The system prompt. */
  systemPrompt?: SystemPromptInput | null;
  /**
   * Whether the project's own files may make the agent run something: `true` trusts them as they are,
   * `false` starts the agent without them. If omitted, agentwire asks.
   */
  trust?: boolean | null;
  /** The working directory of the agent. */
  workingDirectory?: string | null;
}

/** A session and its config. */
export interface SessionDetails {
  /** The agent. */
  agentType: AgentType;
  /** The agent's version, as it reports it. */
  agentVersion?: string;
  /** When the gateway asks for approval. */
  approvalMode?: ApprovalMode;
  /** The config, without secrets. */
  config: SessionConfig;
  /** Cost of all turns, if the agent reports it. */
  costUsd?: number;
  /** When it started, RFC 3339 in UTC. */
  createdAt: string;
  /** The driver of the agent. */
  driver?: string;
  /** What went wrong, if anything did. */
  error?: string;
  /** The version of agentwire that ran it last. */
  gatewayVersion?: string;
  /** A UUID. */
  id: SessionId;
  /** The number of its last event. */
  lastSeq: number;
  /** How the last finished turn ended. */
  lastTurn?: TurnEnd;
  /** The model in use. */
  model?: string;
  /** The agent's own session id, which it needs to resume. */
  nativeSessionId?: string;
  /** How many requests are waiting for an answer. */
  openRequests: number;
  /** Whether it is pinned. */
  pinned: boolean;
  /** Why it ended. */
  reason?: SessionEndReason;
  /** The current state. */
  state: SessionState;
  /** Its tags. */
  tags: string[];
  /** The title that a client gave it, else the agent's, else the first words of the first prompt. */
  title?: string;
  /** How many turns it has had. */
  turns: number;
  /** When its last event was received. */
  updatedAt: string;
  /** Tokens used by all turns. */
  usage: TokenUsage;
  /** The working directory. */
  workingDirectory?: string;
}

/** Why a session ended. */
export type SessionEndReason = "completed" | "failed" | "cancelled" | "timeout";

/** The session ended. */
export interface SessionEndedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** What went wrong, if anything did. */
  error?: string;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Why it ended. */
  reason: SessionEndReason;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "sessionEnded";
}

/** The id of a session in agentwire, a UUID. Not the agent's own session id, which may change. */
export type SessionId = string;

/** A page of sessions. */
export interface SessionList {
  /** The value of `after` for the next page, if there is one. */
  next?: string;
  /** In the order that was asked for. */
  sessions: SessionSummary[];
}

/** The specification's request for a session. */
export interface SessionRequest {
  /** The agent. */
  agentType: AgentType;
  /** The config. */
  config?: SessionConfigInput | null;
  /** Copy the conversation of `sessionId` into a new session. */
  fork?: boolean;
  /** The first prompt. Without it, or if it is empty, the session waits for one. */
  prompt?: string | null;
  /** The session to resume. */
  sessionId?: string | null;
}

/** The order of a list of sessions. */
export type SessionSort = "activity" | "created" | "pinned";

/** The session started. Always the first event. */
export interface SessionStartedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The agent. */
  agentType: AgentType;
  /** The requested config, and what is known of the actual one. */
  config: SessionConfig;
  /**
   * The session whose conversation was copied to start this one: its id in agentwire, or the agent's own
   * id if it has none.
   */
  forkedFrom?: string;
  /** Unique across all sessions. */
  id: string;
  /** What the agent reports about itself, if it did so before this event. */
  info?: AgentInfo;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "sessionStarted";
}

/** The current state of a session. */
export type SessionState = "starting" | "idle" | "working" | "waitingPermission" | "waitingQuestion" | "stalled" | "ended";

/** A session as it appears in a list. */
export interface SessionSummary {
  /** The agent. */
  agentType: AgentType;
  /** The agent's version, as it reports it. */
  agentVersion?: string;
  /** When the gateway asks for approval. */
  approvalMode?: ApprovalMode;
  /** Cost of all turns, if the agent reports it. */
  costUsd?: number;
  /** When it started, RFC 3339 in UTC. */
  createdAt: string;
  /** The driver of the agent. */
  driver?: string;
  /** What went wrong, if anything did. */
  error?: string;
  /** The version of agentwire that ran it last. */
  gatewayVersion?: string;
  /** A UUID. */
  id: SessionId;
  /** The number of its last event. */
  lastSeq: number;
  /** How the last finished turn ended. */
  lastTurn?: TurnEnd;
  /** The model in use. */
  model?: string;
  /** The agent's own session id, which it needs to resume. */
  nativeSessionId?: string;
  /** How many requests are waiting for an answer. */
  openRequests: number;
  /** Whether it is pinned. */
  pinned: boolean;
  /** Why it ended. */
  reason?: SessionEndReason;
  /** The current state. */
  state: SessionState;
  /** Its tags. */
  tags: string[];
  /** The title that a client gave it, else the agent's, else the first words of the first prompt. */
  title?: string;
  /** How many turns it has had. */
  turns: number;
  /** When its last event was received. */
  updatedAt: string;
  /** Tokens used by all turns. */
  usage: TokenUsage;
  /** The working directory. */
  workingDirectory?: string;
}

/** Answer a request. */
export interface SettleCommand {
  /** Answers to questions, keyed by question text or question id. */
  answers?: Record<string, unknown> | null;
  /** Allow or deny; may be omitted if `answers` or `hookOutput` is given. */
  behavior?: Behavior | null;
  command: "settle";
  /** The answering side failed: a hook is skipped, anything else is denied. */
  error?: string | null;
  /** The output of a hook, or any other answer in the agent's own format. */
  hookOutput?: unknown;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The digest of the input that was shown. If given, it must match, unless the answer is a denial. */
  inputDigest?: string | null;
  /** With a denial: also end the turn. */
  interrupt?: boolean | null;
  /** The message to the agent for a denial. */
  message?: string | null;
  /** Whether to allow the same from now on. */
  remember?: Remember | null;
  /** The request to answer. */
  requestId: RequestId;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
  /** The input to run with, instead of the input that was shown. */
  updatedInput?: unknown;
  /** Rules to add, from the request's suggestions. */
  updatedPermissions?: unknown;
}

/** Who settled a request. */
export type SettledBy = "client" | "policy" | "agent" | "gateway";

/** An answer to a request, in its wire format. */
export interface Settlement {
  /** Answers to questions, keyed by question text or question id. */
  answers?: Record<string, unknown> | null;
  /** Allow or deny; may be omitted if `answers` or `hookOutput` is given. */
  behavior?: Behavior | null;
  /** The answering side failed: a hook is skipped, anything else is denied. */
  error?: string | null;
  /** The output of a hook, or any other answer in the agent's own format. */
  hookOutput?: unknown;
  /** The digest of the input that was shown. If given, it must match, unless the answer is a denial. */
  inputDigest?: string | null;
  /** With a denial: also end the turn. */
  interrupt?: boolean | null;
  /** The message to the agent for a denial. */
  message?: string | null;
  /** Whether to allow the same from now on. */
  remember?: Remember | null;
  /** The request to answer. */
  requestId?: RequestId;
  /** The input to run with, instead of the input that was shown. */
  updatedInput?: unknown;
  /** Rules to add, from the request's suggestions. */
  updatedPermissions?: unknown;
}

/** Show a session and its config. */
export interface ShowCommand {
  command: "show";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session. */
  sessionId: SessionId;
}

/** A browser's request to sign in. */
export interface SignIn {
  /** The ticket from the address that `agentwire serve --open` opened; valid once, for 30 s. */
  ticket: string;
}

/** The result of signing in. */
export interface SignedIn {
  /** The operator's own token. */
  token: string;
}

/** Start a session, or resume one. */
export interface StartCommand {
  /** The agent. */
  agentType: AgentType;
  command: "start";
  /** The config. */
  config?: SessionConfigInput | null;
  /** Copy the conversation of `sessionId` into a new session. */
  fork?: boolean;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** A start with a key that was sent before counts once. */
  idempotencyKey?: string | null;
  /** Which events to show. */
  profile?: Profile;
  /** The first prompt. Without it, or if it is empty, the session waits for one. */
  prompt?: string | null;
  /** The session to resume. */
  sessionId?: string | null;
}

/** What changed. */
export type Status = "ready" | "working" | "idle" | "waiting" | "prompted" | "queue" | "compacting" | "compacted" | "retrying" | "rateLimit" | "model" | "mode" | "session" | "title" | "commands" | "mcpServer" | "hook" | "task" | "diff" | "account" | "suggestion" | "notice" | "warning";

/** Any other change of state. */
export interface StatusChangedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The agent's own data for the change. */
  details?: unknown;
  /** Unique across all sessions. */
  id: string;
  /** What the agent reports about itself. */
  info?: AgentInfo;
  /** A text for people: a message, the new value, or the name of what changed. */
  message?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** What changed. */
  status: Status;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "statusChanged";
}

/** End the session. */
export interface StopCommand {
  command: "stop";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** The session; may be omitted if the connection has one. */
  sessionId?: string | null;
}

/** The stream that a line was sent on. */
export type Stream = "stdout" | "stderr" | "stdin";

/** The system prompt. */
export type SystemPrompt = string | SystemPromptPreset;

/** The system prompt. */
export type SystemPromptInput = string | SystemPromptPresetInput;

/** The agent's own system prompt, with text appended. */
export interface SystemPromptPreset {
  /** The text to append. */
  append?: string;
  /** The preset, such as `claude_code`. */
  preset: string;
  /** Always `preset`. */
  type: string;
}

/** The agent's own system prompt, with text appended. */
export interface SystemPromptPresetInput {
  /** The text to append. */
  append?: string | null;
  /** The preset, such as `claude_code`. */
  preset: string;
  /** Always `preset`. */
  type: string;
}

/** Text of the agent's answer. */
export interface TextChunkEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Which block, if the agent may have several open. */
  blockId?: string;
  /** The next piece of text. */
  content: string;
  /** Unique across all sessions. */
  id: string;
  /** Whether the block ends here. */
  isComplete: boolean;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "textChunk";
}

/** Text of the agent's reasoning. */
export interface ThinkingChunkEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Which block, if the agent may have several open. */
  blockId?: string;
  /** The next piece of text. */
  content: string;
  /** Unique across all sessions. */
  id: string;
  /** Whether the block ends here. */
  isComplete: boolean;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** A signature with which the model's service can verify the block, if the agent passes it on. */
  signature?: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  type: "thinkingChunk";
}

/** A ticket, sent as the WebSocket subprotocol `ticket.T` next to `agentwire`. */
export interface Ticket {
  /** How many seconds it is valid. */
  expiresIn: number;
  /** Valid once. */
  ticket: string;
}

/**
 * Tokens, as counted by the agent. Claude counts cached input separately from `inputTokens`; Codex and
 * Gemini include it. `totalTokens` always includes everything.
 */
export interface TokenUsage {
  /** Input tokens written to a cache. */
  cacheCreationTokens?: number;
  /** Input tokens read from a cache. */
  cachedTokens?: number;
  /** Input tokens. */
  inputTokens: number;
  /** Output tokens. */
  outputTokens: number;
  /** Reasoning tokens. */
  reasoningTokens?: number;
  /** All tokens. */
  totalTokens: number;
}

/** The tool finished, with or without success. */
export interface ToolCompletedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** How long it took, as reported by the agent. */
  durationMs?: number;
  /** What went wrong, if anything did. */
  error?: string;
  /** The exit code of a command. */
  exitCode?: number;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The result as the agent has it: a string, content blocks or an object, including images. */
  result?: unknown;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** The result in the agent's structured form, if it has both forms. */
  structured?: unknown;
  /** Whether the tool succeeded. */
  success: boolean;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The id of the call. */
  toolId: string;
  type: "toolCompleted";
}

/** The tool did not run, or was interrupted. */
export interface ToolFailedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Why, as text. */
  error: string;
  /** Unique across all sessions. */
  id: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The kind of failure. */
  reason: ToolFailure;
  /** What was reported to the agent, if that is more than the error. */
  result?: unknown;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The id of the call. */
  toolId: string;
  type: "toolFailed";
}

/** Why a tool did not finish. */
export type ToolFailure = "denied" | "interrupted" | "invalid";

/** The kind of a tool, the same for all agents. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "fetch" | "think" | "agent" | "question" | "mcp" | "switchMode" | "other";

/** Output or progress of a running tool. */
export interface ToolProgressEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** How long it has been running. */
  elapsedMs?: number;
  /** Unique across all sessions. */
  id: string;
  /** What the tool is doing. */
  message?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** The next piece of output. */
  output?: string;
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Progress from 0 to 1. */
  progress?: number;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The id of the call. */
  toolId: string;
  type: "toolProgress";
}

/** A tool was called. */
export interface ToolStartedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The arguments, an object. */
  arguments?: unknown;
  /** Unique across all sessions. */
  id: string;
  /** The kind of tool. */
  kind: ToolKind;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The MCP server that provides the tool. */
  server?: string;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** A title to show, if the agent has one. */
  title?: string;
  /** The call's id, unique within the session. */
  toolId: string;
  /** The agent's name for the tool; for an MCP tool, the tool's own name. */
  toolName: string;
  type: "toolStarted";
}

/** The agent finished a turn. */
export interface TurnCompletedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The cost of this turn, if the agent reports it. */
  costUsd?: number;
  /** Tool calls that were refused, as the agent lists them. */
  denials?: unknown;
  /** How long it took, as reported by the agent. */
  durationMs?: number;
  /** Unique across all sessions. */
  id: string;
  /** Usage by model, if the agent reports it. */
  models?: ModelUsage[];
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The final answer, if the agent repeats it. */
  result?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** Why the model stopped, in the agent's words. */
  stopReason?: string;
  /** The answer that follows the requested schema. */
  structuredOutput?: unknown;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The number of the turn that ended. */
  turnNumber: number;
  type: "turnCompleted";
  /** The tokens that this turn used; running totals are converted to differences. */
  usage: TokenUsage;
}

/** How a turn ended. */
export type TurnEnd = "completed" | "failed" | "interrupted";

/** The turn ended in any other way; the session may continue. */
export interface TurnFailedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The cost of this turn, if the agent reports it. */
  costUsd?: number;
  /** Tool calls that were refused, as the agent lists them. */
  denials?: unknown;
  /** How long it took, as reported by the agent. */
  durationMs?: number;
  /** What went wrong. */
  error: string;
  /** The agent's own name for the error. */
  errorType?: string;
  /** Unique across all sessions. */
  id: string;
  /** Usage by model, if the agent reports it. */
  models?: ModelUsage[];
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The kind of failure. */
  reason: TurnFailure;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** The number of the turn that ended. */
  turnNumber: number;
  type: "turnFailed";
  /** The tokens that this turn used, if known. */
  usage?: TokenUsage;
}

/** Why a turn failed. */
export type TurnFailure = "error" | "interrupted" | "maxTurns" | "budget" | "refused" | "died";

/** What started a turn. */
export type TurnOrigin = "prompt" | "agent";

/** The agent started to work, on a prompt or on its own. */
export interface TurnStartedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** Unique across all sessions. */
  id: string;
  /** The `messageId`s of the accepted prompts that it works on. */
  messageIds?: string[];
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** What started the turn. */
  origin?: TurnOrigin;
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** The prompt, if it is known. */
  prompt?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** Starts at 1. */
  turnNumber: number;
  type: "turnStarted";
}

/** Show no more changes. */
export interface UnwatchCommand {
  command: "unwatch";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
}

/** The length of a row in time, in UTC. */
export type UsageBin = "hour" | "day";

/** What rows of usage tell apart. */
export type UsageBy = "agent" | "model" | "session" | "directory";

/** Report the usage of turns that have ended. */
export interface UsageCommand {
  /** The length of a row in time; one row for the whole time if omitted. */
  bin?: UsageBin | null;
  /** What to tell apart; everything together if omitted. */
  by?: UsageBy | null;
  command: "usage";
  /** Only turns that ended at this time or later, RFC 3339. */
  from?: string | null;
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
  /** Only turns that ended before this time, RFC 3339. */
  to?: string | null;
}

/** The usage of turns that have ended. */
export interface UsageReport {
  /**
   * Whether every event in the store is counted. `false` while old sessions are still being read, or if
   * there are more rows.
   */
  complete: boolean;
  /** The rows, the oldest first; within the same time, the most tokens first. At most 10,000. */
  rows: UsageRow[];
}

/** Tokens or money spent so far, for display. Totals are computed from the turns. */
export interface UsageReportedEvent {
  /** `main`, or for a subagent the id of the tool call that spawned it. */
  agentId: string;
  /** The size of the context window, in tokens. */
  contextSize?: number;
  /** Tokens currently in the context. */
  contextUsed?: number;
  /** Unique across all sessions. */
  id: string;
  /** The agent's id of the message that used the tokens. Each message is counted once. */
  messageId?: string;
  /** The model. */
  model?: string;
  /**
   * The agent's own lines that this event carries, in order; absent if an earlier event carries the
   * line.
   */
  native?: Native[];
  /** For subagents, the agent that spawned this one. */
  parentAgentId?: string;
  /** Starts at 1 in each session and has no gaps. */
  seq: number;
  /** The session it belongs to. */
  sessionId: string;
  /** When the gateway received it, RFC 3339 in UTC. */
  timestamp: string;
  /** Tokens used by the session so far, as counted by the agent. */
  total?: TokenUsage;
  /** Cost of the session so far, as counted by the agent. */
  totalCostUsd?: number;
  type: "usageReported";
  /** Tokens used by the last call to the model. */
  usage?: TokenUsage;
}

/** The usage of some turns. Tokens that an agent does not report are 0. */
export interface UsageRow {
  /** The agent, by agent. */
  agent?: AgentType;
  /** When the row begins, with `bin`. */
  bin?: string;
  /** Input tokens written to a cache. */
  cacheCreationTokens: number;
  /** Input tokens read from a cache. */
  cachedTokens: number;
  /** The cost by the operator's prices of the turns whose model has one; absent if none has. */
  computedCostUsd?: number;
  /** The cost that the agents report; absent if none of them does. */
  costUsd?: number;
  /** The working directory, by directory. */
  directory?: string;
  /** New input tokens: neither read from a cache nor written to it. */
  inputTokens: number;
  /** The model, by model; absent if the agent did not report it. */
  model?: string;
  /** Output tokens. */
  outputTokens: number;
  /** Reasoning tokens. */
  reasoningTokens: number;
  /** The session, by session. */
  sessionId?: SessionId;
  /** Tool calls of these turns. */
  toolCalls: number;
  /** Turns that ended, in whatever way. */
  turns: number;
  /** How long these turns waited for an answer to a permission or a question, in milliseconds. */
  waitedMs: number;
}

/**
 * Sessions and open requests that are new or have changed. The state is sent, not the difference: a change
 * that arrives twice changes nothing.
 */
export interface WatchChange {
  /** Where to resume. Its content means nothing to clients. */
  cursor: string;
  /** Sessions that were deleted. */
  forgotten?: SessionId[];
  /** The client now knows everything; changes follow. Sent once. */
  ready?: boolean;
  /** The watch starts over with everything: what the client knows is out of date. */
  reset?: boolean;
  /** Sessions that are new or have changed. */
  sessions: ChangedSession[];
}

/** Show all sessions and open requests, and then changes. */
export interface WatchCommand {
  /** The `cursor` of the last change that the client has; without it, everything is shown. */
  after?: string | null;
  command: "watch";
  /** The client's id for the call, returned in the reply. */
  id?: unknown;
}

/** The line that carries a change. */
export interface WatchFrame {
  /** The change. */
  watch: WatchChange;
}

export interface ListAgentsResponse {
  agents: ({
    /** whether the settings name it */
    configured: boolean;
    /** the available drivers; the first is the default */
    drivers: string[];
    /** why the program was not found */
    error?: string;
    /** how to install it */
    install: string;
    /** the environment variable that has a key, if the program does not report its login */
    keyVariable?: string;
    /** whether it is signed in, as far as it reports that */
    login?: "signedIn" | "notSignedIn" | "notTold";
    /** how it is signed in: apiKey, token, account or cloud */
    loginMethod?: string;
    name: string;
    /** path of the program */
    path?: string;
    /** known problems of that version */
    problems?: ({
      /** whether it makes sessions impossible */
      fatal: boolean;
      /** what to do */
      remedy: string;
      what: string;
    })[];
    /** how its version compares to the tested ones */
    standing: string;
    /** the environment variable that names another program */
    variable?: string;
    version?: string;
  })[];
}

/** The name of a command frame. */
export type CommandName = CommandFrame["command"];
