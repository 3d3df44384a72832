// A scripted server, for tests of programs that use this client.
import type { Call, CallName } from "./calls.js";
import { AgentwireError, broken } from "./errors.js";
import { openRequest } from "./request.js";
import { Snapshot } from "./snapshot.js";
import type { Transport, WatchUpdate } from "./transport.js";
import type { ErrorCode, Event, OpenRequest, Profile, SessionSummary } from "./types.js";
import { VERSION } from "./types.js";

const BATCH = 16;
const CORE: readonly string[] = [
  "sessionStarted", "sessionEnded", "turnStarted", "turnCompleted", "turnFailed", "textChunk", "toolStarted",
  "toolProgress", "toolCompleted", "toolFailed", "fileChanged", "error",
];

interface Script {
  readonly events: Event[];
  /** Numbers after which the script waits for a command. */
  readonly holds: number[];
  readonly cuts: Set<number>;
}

/**
 * Plays recorded events (what `agentwire export` writes, or any events) and records the calls it receives. A session
 * ends with its recording, unless the script is `live`.
 */
export function scripted(recording: string | readonly object[] = []): ScriptedTransport {
  return new ScriptedTransport(recording);
}

export class ScriptedTransport implements Transport {
  readonly name = "the script";
  /** All calls so far, in order. */
  readonly calls: Call[] = [];
  readonly #sessions = new Map<string, Script>();
  readonly #answers = new Map<CallName, (() => unknown)[]>();
  readonly #waiting = new Set<() => void>();
  readonly #cuts: number[] = [];
  readonly #holds: number[] = [];
  readonly #missing = new Set<number>();
  #started = 0;
  #refused = 0;
  #repeated = 0;
  #isLive = false;
  #version = 0;

  constructor(recording: string | readonly object[]) {
    const lines = typeof recording === "string" ? recording.split("\n").filter((line) => line.trim() !== "") : recording;
    for (const line of lines) this.#add((typeof line === "string" ? JSON.parse(line) : line) as Event);
  }

  /** Sessions continue after the last event; `push` adds more, `finish` ends them. */
  live(): this {
    this.#isLive = true;
    return this;
  }

  /** Holds back what follows an event until a command arrives. Each hold needs a command of its own. */
  holdAfter(seq: number): this {
    this.#holds.push(seq);
    for (const script of this.#sessions.values()) script.holds.push(seq);
    return this;
  }

  /** Breaks the connection after an event, once. */
  cutAfter(seq: number): this {
    this.#cuts.push(seq);
    for (const script of this.#sessions.values()) script.cuts.add(seq);
    return this;
  }

  /** Removes an event from the log. */
  without(seq: number): this {
    this.#missing.add(seq);
    return this;
  }

  /** Every connection repeats this many events. */
  repeating(events: number): this {
    this.#repeated = events;
    return this;
  }

  /** The next connections fail. */
  refusingConnections(count: number): this {
    this.#refused = count;
    return this;
  }

  /** The next call of this name gets this answer. */
  reply(name: CallName, answer: unknown): this {
    return this.#script(name, () => answer);
  }

  /** The next call of this name fails. */
  fail(name: CallName, error: AgentwireError | ErrorCode, message: string = String(error)): this {
    return this.#script(name, () => {
      throw error instanceof AgentwireError ? error : new AgentwireError(error, message, { status: 400 });
    });
  }

  /** Adds an event to a live session. */
  push(event: object): void {
    this.#add(event as Event);
    this.#changed();
  }

  /** Ends live sessions. */
  finish(): void {
    this.#isLive = false;
    this.#changed();
  }

  async call(call: Call): Promise<unknown> {
    this.calls.push(call);
    const answer = this.#answers.get(call.name)?.shift();
    const result = answer ? answer() : this.#answer(call);
    this.#changed();
    return result;
  }

  async *follow(sessionId: string, after: number, profile: Profile, signal: AbortSignal): AsyncGenerator<readonly Event[]> {
    if (this.#refused > 0) {
      this.#refused -= 1;
      throw broken(this.name, "it refuses the connection");
    }
    const script = this.#session(sessionId);
    let position = Math.max(0, after - this.#repeated);
    for (yield []; ; ) {
      if (script.cuts.delete(position)) throw broken(this.name, "it cuts the connection");
      const limit = Math.min(...script.holds, ...[...script.cuts].filter((cut) => cut > position));
      const batch = script.events.filter(({ seq }) => seq > position && seq <= limit).slice(0, BATCH);
      const last = batch.at(-1);
      if (last) {
        position = last.seq;
        yield batch.filter((event) => !this.#missing.has(event.seq)).flatMap((event) => shown(event, profile));
      } else if (!this.#isLive && script.holds.length === 0) {
        return;
      } else {
        await this.#change(signal);
      }
    }
  }

  async *watch(_after: string | undefined, signal: AbortSignal): AsyncGenerator<WatchUpdate> {
    for (let isFirst = true; ; isFirst = false) {
      const seen = this.#version;
      const sessions = [...this.#sessions.keys()].map((id) => ({ session: this.#summary(id), requests: this.#open(id) }));
      yield { sessions, ...(isFirst && { reset: true, ready: true }) };
      if (seen === this.#version) await this.#change(signal);
    }
  }

  async close(): Promise<void> {}

  #script(name: CallName, answer: () => unknown): this {
    this.#answers.set(name, [...(this.#answers.get(name) ?? []), answer]);
    return this;
  }

  #add(event: Event): void {
    const { sessionId } = event;
    const known = this.#sessions.get(sessionId);
    if (known) known.events.push(event);
    else this.#sessions.set(sessionId, { events: [event], holds: [...this.#holds], cuts: new Set(this.#cuts) });
  }

  #session(id: unknown): Script {
    const found = this.#sessions.get(String(id));
    if (!found) throw new AgentwireError("sessionNotFound", `the script has no session ${id}`, { status: 404 });
    return found;
  }

  #answer({ name, fields }: Call): unknown {
    const { sessionId } = fields;
    const all = () => [...this.#sessions.keys()];
    const list = () => all().map((id) => this.#summary(id)).reverse();
    switch (name) {
      case "start": {
        if (sessionId !== undefined && fields["fork"] !== true) return this.#summary(String(sessionId));
        const ids = all();
        const id = ids[this.#started++] ?? ids.at(-1);
        if (id === undefined) throw new AgentwireError("startFailed", "the script has no session to start", { status: 502 });
        return this.#snapshot(id).summary;
      }
      case "list":
        return { sessions: list() };
      case "status":
        return { version: VERSION };
      case "requests":
        return { requests: (sessionId === undefined ? all() : [String(sessionId)]).flatMap((id) => this.#open(id)) };
      case "show":
        return { ...this.#summary(String(sessionId)), config: {} };
      case "page": {
        const { events } = this.#session(sessionId);
        const last = events.at(-1)?.seq ?? 0;
        return { events, next: last, last, ended: !this.#isLive, resume: "exact" };
      }
      default: {
        if (sessionId !== undefined) this.#session(sessionId).holds.shift();
        if (name === "prompt") return { messageId: fields["messageId"] };
        return name === "interrupt" ? { stillQueued: [] } : {};
      }
    }
  }

  #summary(id: string): SessionSummary {
    const snapshot = this.#snapshot(id);
    for (const event of this.#session(id).events) snapshot.apply(event);
    return this.#isLive || snapshot.summary.state === "ended" ? snapshot.summary : { ...snapshot.summary, state: "ended" };
  }

  /** The session before its first event. */
  #snapshot(id: string): Snapshot {
    const [first] = this.#session(id).events;
    const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    const agentType = first?.type === "sessionStarted" ? first.agentType : "demo";
    const at = first?.timestamp ?? "";
    const labels = { pinned: false, tags: [] };
    return new Snapshot({
      ...labels, id, agentType, usage, state: "starting", createdAt: at, updatedAt: at, lastSeq: 0, turns: 0, openRequests: 0,
    });
  }

  #open(id: string): OpenRequest[] {
    const open = new Map<string, OpenRequest>();
    for (const event of this.#session(id).events) {
      if (event.type === "requestRaised") open.set(event.requestId, openRequest(event));
      if (event.type === "requestSettled") open.delete(event.requestId);
    }
    return [...open.values()];
  }

  #changed(): void {
    this.#version += 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = () => reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.add(() => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
    });
  }
}

function shown(event: Event, profile: Profile): Event[] {
  if (profile === "full") return [event];
  if (profile === "core" && !CORE.includes(event.type)) return [];
  const { native: _, ...rest } = event;
  return [rest as Event];
}
