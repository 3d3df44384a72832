// A session: its events, its commands, and what is known of its state.
import type { Call } from "./calls.js";
import { AgentwireError } from "./errors.js";
import { follow, Stream, type FollowPlan } from "./follow.js";
import { decide, denyAll, openRequest, Request, type OnRequest } from "./request.js";
import { Snapshot } from "./snapshot.js";
import { Deadline, randomId } from "./timing.js";
import { PROFILE } from "./transport.js";
import type {
  ConfigureCommand, Event, EventPage, InterruptResult, Profile, Prompt, PromptResult, RequestList, RequestRaisedEvent,
  SessionDetails, SessionState, SessionSummary, Settlement, TokenUsage,
  LabelCommand,
  PromptQueue,
} from "./types.js";

/** What a session needs of its client. @internal */
export interface Gateway {
  readonly transport: FollowPlan["transport"];
  readonly patience: number;
  send(call: Call, signal?: AbortSignal): Promise<unknown>;
  once(call: Call, signal?: AbortSignal): Promise<unknown>;
}

export interface SignalOption {
  readonly signal?: AbortSignal;
}

export interface EventsOptions extends SignalOption {
  /** The last event that you know; by default, the one before this session object began. */
  readonly after?: number;
  /** `lean`, the default, leaves out the agent's own lines; `full` has them; `core` has the basic types only. */
  readonly profile?: Profile;
  /** Called when the connection is lost, and when it is back. */
  readonly onConnection?: (state: "lost" | "back", why?: AgentwireError) => void;
}

export interface TurnOptions extends SignalOption {
  readonly profile?: Profile;
  /** Decides about requests. What it does not allow is denied. */
  readonly onRequest?: OnRequest;
}

/** The fields of a command that this client fills in. */
type Frame = "command" | "id" | "sessionId";

/** A prompt, or its text. */
export type PromptInput = string | Prompt;

const ENDS: readonly string[] = ["turnCompleted", "turnFailed", "sessionEnded"];

/** Whether a turn ends with this event. */
export const endsTurn = (event: Event): boolean => ENDS.includes(event.type);

export class Session {
  readonly #gateway: Gateway;
  readonly #known: Snapshot;
  readonly #begin: number;

  /** @internal */
  constructor(gateway: Gateway, summary: SessionSummary, begin: number) {
    this.#gateway = gateway;
    this.#known = new Snapshot(summary);
    this.#begin = begin;
  }

  get id(): string {
    return this.summary.id;
  }

  /** What is known: from the last reply, and from the events read since. `refresh` asks the server. */
  get summary(): SessionSummary {
    return this.#known.summary;
  }

  get state(): SessionState {
    return this.summary.state;
  }

  /** The tokens of all turns so far. */
  get usage(): TokenUsage {
    return this.summary.usage;
  }

  get costUsd(): number | undefined {
    return this.summary.costUsd;
  }

  /** Reads the session's summary and its config. */
  async refresh(options: SignalOption = {}): Promise<SessionDetails> {
    const details = (await this.#send("show", {}, options)) as SessionDetails;
    this.#known.replace(details);
    return details;
  }

  /** The events, each once and in order, until the session has ended. A `GapError` does not end the iteration. */
  events(options: EventsOptions = {}): Stream<Event> {
    const { transport, patience } = this.#gateway;
    const plan: FollowPlan = {
      transport, patience,
      sessionId: this.id,
      after: options.after ?? this.#begin,
      profile: options.profile ?? PROFILE,
      onConnection: options.onConnection,
      status: async (signal) => {
        const fields = { sessionId: this.id };
        return (await this.#gateway.once({ name: "show", fields }, signal)) as SessionSummary;
      },
    };
    const known = this.#known;
    return new Stream(options.signal, async function* (signal) {
      for await (const item of follow(plan, signal)) {
        if (item instanceof AgentwireError) known.forget(item.from);
        else known.apply(item);
        yield item;
      }
    });
  }

  /**
   * A page of events: after or before a number. `{ before: Number.MAX_SAFE_INTEGER, limit: 50 }` is the end of the log;
   * `previous` of a page is the `before` of the one before it, and `next` the `after` of `events`.
   */
  async page(query: { after?: number; before?: number; limit?: number; profile?: Profile } & SignalOption = {}): Promise<EventPage> {
    const { signal, ...fields } = query;
    return (await this.#send("page", { profile: PROFILE, ...fields }, { ...(signal && { signal }) })) as EventPage;
  }

  /** One event, whole: with the agent's own lines. */
  async event(seq: number, options: { profile?: Profile } & SignalOption = {}): Promise<Event> {
    const { signal, ...fields } = options;
    return (await this.#send("event", { seq, ...fields }, { ...(signal && { signal }) })) as Event;
  }

  /**
   * The events of one turn, from its start to its end: the turn of this prompt, or without one the first turn after
   * this session object began. With `onRequest`, requests are answered; otherwise answer them with
   * `session.request(event)`.
   */
  turn(prompt?: PromptInput, options: TurnOptions = {}): Stream<Event> {
    return new Stream(options.signal, (signal) => this.#turn(prompt, options, signal));
  }

  /** The text of one turn, as it comes. Requests that `onRequest` does not allow are denied. */
  text(prompt?: PromptInput, options: TurnOptions = {}): Stream<string> {
    const answering = { ...options, onRequest: options.onRequest ?? denyAll };
    const turn = (signal: AbortSignal) => this.#turn(prompt, answering, signal);
    return new Stream(options.signal, async function* (signal) {
      const text = new TurnText();
      for await (const event of turn(signal)) {
        if (event instanceof AgentwireError) yield event;
        else {
          const content = text.add(event);
          if (content) yield content;
          failTurn(event);
        }
      }
    });
  }

  async *#turn(prompt: PromptInput | undefined, options: TurnOptions, signal: AbortSignal) {
    let after = this.#begin;
    let messageId: string | undefined;
    if (prompt !== undefined) {
      after = (await this.refresh({ signal })).lastSeq;
      messageId = await this.prompt(prompt, { signal });
    }
    const answers = new Answers(this, options.onRequest, signal);
    let turnNumber: number | undefined;
    try {
      for await (const event of retold(this.events({ ...options, after, signal }))) {
        if (event instanceof AgentwireError) {
          yield event;
          continue;
        }
        if (turnNumber === undefined) {
          const isOurs = messageId === undefined || (event.type === "turnStarted" && event.messageIds?.includes(messageId));
          if (isOurs && event.type === "turnStarted") turnNumber = event.turnNumber;
          if (!isOurs && event.type !== "sessionEnded") continue;
        }
        answers.take(event);
        yield event;
        if (event.type === "sessionEnded" || (endsTurn(event) && turnNumber !== undefined)) break;
      }
    } finally {
      answers.end();
    }
    await answers.settled();
  }

  /** The request that an event raises, with the means to answer it. */
  request(event: RequestRaisedEvent): Request {
    return new Request(openRequest(event), settler(this.#gateway));
  }

  /** The session's open requests. */
  async requests(options: SignalOption = {}): Promise<Request[]> {
    const list = (await this.#send("requests", { state: "open" }, options)) as RequestList;
    return list.requests.map((open) => new Request(open, settler(this.#gateway)));
  }

  /** Sends a prompt, and returns its id. It counts once, even if it is sent again. */
  async prompt(prompt: PromptInput, options: SignalOption = {}): Promise<string> {
    const given = typeof prompt === "string" ? { prompt } : prompt;
    const fields = { ...given, messageId: given.messageId ?? randomId() };
    return ((await this.#send("prompt", fields, options)) as PromptResult).messageId;
  }

  /** The prompts that wait for their turn. */
  async queue(options: SignalOption = {}): Promise<PromptQueue> {
    return (await this.#send("queue", {}, options)) as PromptQueue;
  }

  /** Cancels a prompt that waits for its turn. */
  async cancel(messageId: string, options: SignalOption = {}): Promise<void> {
    await this.#send("cancel", { messageId }, options);
  }

  /** Changes the text of a prompt that waits for its turn. */
  async edit(messageId: string, prompt: string, options: SignalOption = {}): Promise<void> {
    await this.#send("edit", { messageId, prompt }, options);
  }

  /** Stops the current turn. The session stays open. */
  async interrupt(options: { cancelQueued?: boolean } & SignalOption = {}): Promise<InterruptResult> {
    const { signal, ...fields } = options;
    return (await this.#send("interrupt", fields, { ...(signal && { signal }) })) as InterruptResult;
  }

  /** Ends the session now. */
  async stop(options: SignalOption = {}): Promise<void> {
    await this.#send("stop", {}, options);
  }

  /** Ends the session when its work is done. */
  async finish(options: SignalOption = {}): Promise<void> {
    await this.#send("finish", {}, options);
  }

  /** Changes the model or the mode. */
  configure(change: Omit<ConfigureCommand, Frame>, options: SignalOption = {}): Promise<unknown> {
    return this.#send("configure", { ...change }, options);
  }

  /** Changes the title, the pin or the tags. */
  async label(change: Omit<LabelCommand, Frame>, options: SignalOption = {}): Promise<void> {
    await this.#send("label", { ...change }, options);
  }

  /** Asks the agent something, or controls it. */
  query(method: string, args: readonly unknown[] = [], options: SignalOption = {}): Promise<unknown> {
    return this.#send("query", { method, args }, options);
  }

  /** Restores files to their state at a prompt. */
  rewind(messageId: string, options: { dryRun?: boolean } & SignalOption = {}): Promise<unknown> {
    const { signal, ...fields } = options;
    return this.#send("rewind", { messageId, ...fields }, { ...(signal && { signal }) });
  }

  /** Answers a request by its id. A late answer is an error here. */
  async settle(settlement: Settlement & { requestId: string }, options: SignalOption = {}): Promise<void> {
    await this.#send("settle", { ...settlement }, options);
  }

  #send(name: Call["name"], fields: Record<string, unknown>, { signal }: SignalOption): Promise<unknown> {
    return this.#gateway.send({ name, fields: { ...fields, sessionId: this.id } }, signal);
  }
}

/** The text of a turn: the main agent's blocks, with an empty line between them. */
export class TurnText {
  #isBetween = false;
  text = "";

  add(event: Event): string {
    if (event.type !== "textChunk" || event.agentId !== "main") return "";
    let content = event.content;
    if (content && this.#isBetween) {
      this.#isBetween = false;
      if (this.text) content = `\n\n${content}`;
    }
    this.#isBetween ||= event.isComplete;
    this.text += content;
    return content;
  }
}

/** Throws if the turn failed. */
export function failTurn(event: Event): void {
  if (event.type === "turnFailed") {
    throw new AgentwireError("agentFailed", event.error, {
      details: { reason: event.reason, ...(event.errorType !== undefined && { errorType: event.errorType }) },
    });
  }
  if (event.type === "sessionEnded") {
    throw new AgentwireError("agentFailed", event.error ?? `the session ended: ${event.reason}`, { details: { reason: event.reason } });
  }
}

/** @internal */
export const settler = (gateway: Gateway) => (sessionId: string, settlement: Settlement, signal?: AbortSignal) =>
  gateway.send({ name: "settle", fields: { ...settlement, sessionId } }, signal);

/** The stream with its gaps as values. */
async function* retold(stream: Stream<Event>) {
  try {
    for (;;) {
      let next: IteratorResult<Event, undefined>;
      try {
        next = await stream.next();
      } catch (error) {
        if (!(error instanceof AgentwireError && error.code === "gap")) throw error;
        yield error as import("./errors.js").GapError;
        continue;
      }
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await stream.return();
  }
}

/** Answers the requests of a turn while its events are read. */
class Answers {
  readonly #pending = new Map<string, Deadline>();
  readonly #all: Promise<void>[] = [];
  #failure: { error: unknown } | undefined;

  constructor(
    readonly session: Session,
    readonly callback: OnRequest | undefined,
    readonly signal: AbortSignal,
  ) {}

  take(event: Event): void {
    if (this.#failure) throw this.#failure.error;
    if (!this.callback) return;
    if (event.type === "requestSettled") this.#pending.get(event.requestId)?.end();
    if (event.type !== "requestRaised") return;
    const scope = new Deadline(this.signal);
    this.#pending.set(event.requestId, scope);
    const decided = decide(this.session.request(event), this.callback, scope.signal);
    // A callback need not return once its answer is not needed.
    const withdrawn = new Promise<void>((resolve) => scope.signal.addEventListener("abort", () => resolve()));
    const failed = (error: unknown) => void (this.#failure ??= { error });
    const done = Promise.race([decided.catch(failed), withdrawn]).finally(() => {
      scope.clear();
      this.#pending.delete(event.requestId);
    });
    this.#all.push(done);
  }

  /** The turn is over: what was not answered needs no answer. */
  end(): void {
    for (const scope of this.#pending.values()) scope.end();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#all);
    if (this.#failure) throw this.#failure.error;
  }
}
