// The client: starts, finds and lists sessions, and repeats calls that are safe to repeat.
import { CALLS, type Call, type CallName, type CallSpec } from "./calls.js";
import { AgentwireError } from "./errors.js";
import { followWatch, Stream } from "./follow.js";
import { denyAll, Request, type OnRequest } from "./request.js";
import { failTurn, Session, settler, TurnText, type Gateway, type PromptInput, type SignalOption } from "./session.js";
import { randomId, sleep } from "./timing.js";
import type { Transport, WatchUpdate } from "./transport.js";
import type {
  AgentType, ListAgentsResponse, ListCommand, ServerStatus, SessionConfigInput, SessionDetails, SessionList, SessionRequest,
  LabelCommand, SearchCommand, SearchResult, SessionSummary, TokenUsage, TurnCompletedEvent, UsageCommand, UsageReport,
} from "./types.js";
import { VERSION } from "./types.js";

/** Pauses before a call is repeated, and for how long it is. */
const PAUSES = [200, 1000, 3000];
const WINDOW = 30_000;
const PAGE = 500;

export interface ClientOptions {
  /** For how many milliseconds a stream tries to reconnect. Default: two minutes. */
  readonly patience?: number;
}

export interface RunOptions extends SignalOption {
  /** Decides about requests. What it does not allow is denied; without it, everything is. */
  readonly onRequest?: OnRequest;
  readonly config?: SessionConfigInput;
  /** Leaves the session open. By default it ends after its turn, and can be resumed. */
  readonly keepOpen?: boolean;
}

export interface RunResult {
  readonly text: string;
  readonly usage: TokenUsage;
  readonly costUsd: number | undefined;
  readonly turn: TurnCompletedEvent;
  readonly session: Session;
}

/** Which sessions to list; `limit` is the number of all of them, not of a page. */
export interface ListOptions extends Omit<ListCommand, "command" | "id" | "after">, SignalOption {}

interface StartOptions extends SignalOption {
  /** Your own key: the same start counts once, also across restarts of your program. */
  readonly idempotencyKey?: string;
}

export interface SearchOptions extends Omit<SearchCommand, "command" | "id">, SignalOption {}

export interface UsageOptions extends Omit<UsageCommand, "command" | "id">, SignalOption {}

/** Starts, finds and lists the sessions of one server. */
export class Client implements Gateway {
  /** Starts and finds sessions. */
  readonly sessions: Sessions;
  /** @internal */
  readonly patience: number;
  #hasAnswered = false;

  constructor(
    readonly transport: Transport,
    options: ClientOptions = {},
  ) {
    this.patience = options.patience ?? 120_000;
    this.sessions = new Sessions(this);
  }

  /** Runs one prompt in a new session, and returns the answer. */
  async run(agentType: AgentType, prompt: string, options: RunOptions = {}): Promise<RunResult> {
    const { config, onRequest, signal, keepOpen } = options;
    const session = await this.sessions.create({ agentType, prompt, ...(config && { config }) }, { ...(signal && { signal }) });
    const text = new TurnText();
    let isKept = false;
    try {
      const answering = { onRequest: onRequest ?? denyAll, ...(signal && { signal }) };
      for await (const event of session.turn(undefined, answering)) {
        text.add(event);
        failTurn(event);
        if (event.type === "turnCompleted") {
          isKept = keepOpen ?? false;
          const { usage, costUsd } = event;
          return { text: text.text, usage, costUsd, turn: event, session };
        }
      }
      throw new AgentwireError("agentFailed", "the session ended before its turn");
    } finally {
      if (!isKept) await session.stop().catch(() => undefined);
    }
  }

  /** Open requests of all sessions, then those that come: each once. */
  requests(options: SignalOption = {}): Stream<Request> {
    const watch = (signal: AbortSignal) => this.watch({ signal });
    const settle = settler(this);
    return new Stream(options.signal, async function* (signal) {
      let open = new Set<string>();
      for await (const { sessions } of watch(signal)) {
        for (const { session, requests } of sessions) {
          if (!requests) continue;
          const ids = requests.map(({ requestId }) => `${session.id} ${requestId}`);
          for (const [at, request] of requests.entries()) {
            if (!open.has(ids[at]!)) yield new Request(request, settle);
          }
          open = new Set([...[...open].filter((id) => !id.startsWith(`${session.id} `)), ...ids]);
        }
      }
    });
  }

  /** All sessions and their open requests, then changes as they happen. `Watched` applies them. */
  watch(options: { after?: string } & SignalOption = {}): Stream<WatchUpdate> {
    return new Stream(options.signal, (signal) => followWatch(this, options.after, signal));
  }

  /** Finds text in all sessions: prompts, answers, thinking, tools. */
  async search(options: SearchOptions): Promise<SearchResult> {
    const { signal, ...fields } = options;
    return (await this.send({ name: "search", fields }, signal)) as SearchResult;
  }

  /** Tokens, cost and turns over time. */
  async usage(options: UsageOptions = {}): Promise<UsageReport> {
    const { signal, ...fields } = options;
    return (await this.send({ name: "usage", fields }, signal)) as UsageReport;
  }

  /** The agents of the server's machine. */
  async agents(options: SignalOption = {}): Promise<ListAgentsResponse> {
    return (await this.send({ name: "agents", fields: {} }, options.signal)) as ListAgentsResponse;
  }

  async status(options: SignalOption = {}): Promise<ServerStatus> {
    return (await this.send({ name: "status", fields: {} }, options.signal)) as ServerStatus;
  }

  /** Makes a call that has no method of its own. */
  call(name: CallName, fields: Record<string, unknown> = {}, options: SignalOption = {}): Promise<unknown> {
    return this.send({ name, fields }, options.signal);
  }

  /** Ends what the transport runs. Sessions of a server continue. */
  close(): Promise<void> {
    return this.transport.close();
  }

  /** @internal Makes a call once. */
  async once(call: Call, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    try {
      const answer = await this.transport.call(call, signal);
      this.#hasAnswered = true;
      return answer;
    } catch (error) {
      if (error instanceof AgentwireError && error.status !== undefined && !error.isUnreachable) this.#hasAnswered = true;
      throw error;
    }
  }

  /** @internal Makes a call, and repeats it if it is safe to. */
  async send(call: Call, signal?: AbortSignal): Promise<unknown> {
    try {
      return (await this.repeated(call, signal)).answer;
    } catch (error) {
      const code = error instanceof AgentwireError ? error.code : undefined;
      const { sessionId } = call.fields;
      const isRead = CALLS[call.name].route.startsWith("GET");
      if ((code !== "conflict" && code !== "sessionNotFound") || sessionId === undefined || isRead) throw error;
      const shown = this.once({ name: "show", fields: { sessionId } }, signal);
      const summary = (await shown.catch(() => undefined)) as SessionSummary | undefined;
      if (summary?.state !== "ended") throw error;
      // A session that has ended is stopped.
      if (call.name === "stop") return {};
      throw new AgentwireError("conflict", `session ${sessionId} has ended; resume it to continue`, { cause: error });
    }
  }

  /** @internal Also returns the failure before the answer. */
  async repeated(call: Call, signal?: AbortSignal): Promise<{ answer: unknown; before?: AgentwireError }> {
    const spec: CallSpec = CALLS[call.name];
    const since = Date.now();
    let before: AgentwireError | undefined;
    for (const pause of [...PAUSES, undefined]) {
      try {
        return { answer: await this.once(call, signal), ...(before && { before }) };
      } catch (error) {
        if (!(error instanceof AgentwireError) || !error.retryable || !spec.repeat) throw error;
        const mayComeBack = !error.isUnreachable || this.#hasAnswered;
        if (!mayComeBack || pause === undefined || Date.now() - since >= WINDOW) throw error;
        before = error;
        await sleep(pause, signal);
      }
    }
    throw before;
  }
}

/** Starts and finds sessions. */
export class Sessions {
  readonly #client: Client;

  /** @internal */
  constructor(client: Client) {
    this.#client = client;
  }

  /** Starts a session. It counts once, even if it is sent again. */
  async create(request: SessionRequest, options: StartOptions = {}): Promise<Session> {
    return new Session(this.#client, await this.#start(request, options), 0);
  }

  /** Continues a session, whether or not it has ended. */
  async resume(id: string, prompt: string, options: { config?: SessionConfigInput } & StartOptions = {}): Promise<Session> {
    const before = await this.get(id, options);
    const { config } = options;
    const request: SessionRequest = { agentType: before.agentType, sessionId: before.id, prompt, ...(config && { config }) };
    return new Session(this.#client, await this.#start(request, options), before.lastSeq);
  }

  /** Continues the conversation of a session in a new one. */
  async fork(id: string, prompt: string, options: { config?: SessionConfigInput } & StartOptions = {}): Promise<Session> {
    const { agentType } = await this.get(id, options);
    const { config } = options;
    return this.create({ agentType, sessionId: id, fork: true, prompt, ...(config && { config }) }, options);
  }

  /** A session that exists. Its events start with the first one. */
  async attach(id: string, options: SignalOption = {}): Promise<Session> {
    return new Session(this.#client, await this.get(id, options), 0);
  }

  /** A session's summary and config. */
  async get(id: string, options: SignalOption = {}): Promise<SessionDetails> {
    return (await this.#client.send({ name: "show", fields: { sessionId: id } }, options.signal)) as SessionDetails;
  }

  /** Sessions, newest first. */
  async list(options: ListOptions = {}): Promise<SessionSummary[]> {
    const { signal, ...filter } = options;
    const limit = options.limit ?? Infinity;
    const all: SessionSummary[] = [];
    for (let after: string | undefined; all.length < limit; ) {
      const fields = { ...filter, after, limit: Math.min(PAGE, limit - all.length) };
      const page = (await this.#client.send({ name: "list", fields }, signal)) as SessionList;
      all.push(...page.sessions);
      after = page.next;
      if (after === undefined) break;
    }
    return all;
  }

  /** Changes a session's title, pin or tags. */
  async update(id: string, change: Omit<LabelCommand, "command" | "id" | "sessionId">, options: SignalOption = {}): Promise<void> {
    await this.#client.send({ name: "label", fields: { ...change, sessionId: id } }, options.signal);
  }

  /** Stops a session if it runs, and deletes it. */
  async forget(id: string, options: SignalOption = {}): Promise<void> {
    await this.#client.send({ name: "forget", fields: { sessionId: id } }, options.signal);
  }

  async #start(request: SessionRequest, { signal, idempotencyKey }: StartOptions): Promise<SessionSummary> {
    const call: Call = { name: "start", fields: { ...request }, key: idempotencyKey ?? randomId() };
    const { answer, before } = await this.#client.repeated(call, signal);
    const summary = answer as SessionSummary;
    // The first attempt failed, and its key now leads to what became of it.
    if (before && summary.reason === "failed" && summary.turns === 0) {
      throw summary.error === undefined || before.status !== undefined ? before : new AgentwireError("startFailed", summary.error);
    }
    return summary;
  }
}

/** @internal Checks that a server answers and accepts the token. */
export async function greet(client: Client, signal?: AbortSignal): Promise<void> {
  const { version } = (await client.once({ name: "status", fields: {} }, signal)) as ServerStatus;
  const major = (of: string) => of.split(".")[0];
  if (version !== undefined && major(version) !== major(VERSION)) {
    console.warn(`@agentwire/client ${VERSION} connected to agentwire ${version}; versions with the same first number fit together`);
  }
}

export type { PromptInput };
