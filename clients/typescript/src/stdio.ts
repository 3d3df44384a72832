// A gateway as a child process: `agentwire unified`, over its stdin and stdout. All sessions of a client share it.
import { spawn, type ChildProcess } from "node:child_process";
import { CALLS, type Call, type CallSpec } from "./calls.js";
import { AgentwireError, broken } from "./errors.js";
import { look } from "./look.js";
import { sleep } from "./timing.js";
import { PROFILE, type Transport, type WatchUpdate } from "./transport.js";
import type { Event, Profile, SessionSummary } from "./types.js";

/** How much of a session may wait for its reader, in characters. Beyond it the child stops showing the session. */
const BUFFER = 1 << 20;
/** How long the child may take to end before it is killed. */
const GRACE = 12_000;

export interface ChildOptions {
  /** The program. Default: `AGENTWIRE_BIN`, or `agentwire` on the path. */
  readonly program?: string;
  /** Added to the environment. */
  readonly env?: Record<string, string>;
  /** Sessions without a working directory work here. */
  readonly directory?: string;
}

type Frame = { id?: unknown; reply?: unknown; error?: { code: never; message: string; details?: unknown }; watch?: WatchUpdate } & Partial<Event>;
type Pending = { resolve: (reply: unknown) => void; reject: (error: unknown) => void };

/** Reads one session, from the events that the child shows. */
class Reader {
  batch: Event[] = [];
  size = 0;
  isLetGo = false;
  wake: () => void = () => {};

  constructor(public position: number) {}
}

class Child {
  readonly process: ChildProcess;
  readonly #pending = new Map<string, Pending>();
  readonly readers = new Map<string, Set<Reader>>();
  failure: AgentwireError | undefined;
  #next = 0;
  #rest: string[] = [];
  readonly #name: string;

  constructor(program: string, options: ChildOptions, name: string) {
    this.#name = name;
    this.process = spawn(program, ["unified"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...options.env },
      ...(options.directory !== undefined && { cwd: options.directory }),
    });
    this.process.on("error", (error) => this.#end(broken(name, error, true)));
    this.process.on("close", (code, signal) => this.#end(broken(name, `it ended with ${signal ?? `code ${code}`}`)));
    this.process.stdin?.on("error", () => {});
    this.process.stdout?.setEncoding("utf8").on("data", (text: string) => this.#feed(text));
  }

  /** Writes a frame. `onReply` runs before the next line is read. */
  send(frame: Record<string, unknown>, onReply?: (reply: unknown) => void): Promise<unknown> {
    if (this.failure) return Promise.reject(this.failure);
    const id = `c${(this.#next += 1)}`;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, {
        resolve: (reply) => {
          onReply?.(reply);
          resolve(reply);
        },
        reject,
      });
      this.process.stdin?.write(`${JSON.stringify({ id, ...frame })}\n`);
    });
  }

  async end(): Promise<void> {
    if (this.failure) return;
    const ended = new Promise<void>((resolve) => this.process.once("close", () => resolve()));
    this.process.stdin?.end();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), GRACE);
    await ended;
    clearTimeout(timer);
  }

  #feed(text: string): void {
    const lines = text.split("\n");
    for (const [at, line] of lines.entries()) {
      this.#rest.push(line);
      if (at === lines.length - 1) break;
      const whole = this.#rest.join("");
      this.#rest = [];
      if (whole !== "") this.#line(whole);
    }
  }

  #line(line: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(line) as Frame;
    } catch (error) {
      this.#end(broken(this.#name, `it wrote a line that is not JSON: ${error}`));
      this.process.kill();
      return;
    }
    if (frame.type !== undefined) return this.#event(frame as Event, line.length);
    const pending = this.#pending.get(String(frame.id));
    if (!pending) return;
    this.#pending.delete(String(frame.id));
    const { error } = frame;
    if (error) pending.reject(new AgentwireError(error.code, error.message, { status: 0, details: error.details }));
    else pending.resolve(frame.reply);
  }

  #event(event: Event, size: number): void {
    const readers = this.readers.get(event.sessionId);
    for (const reader of readers ?? []) {
      if (event.seq <= reader.position) continue;
      reader.position = event.seq;
      reader.batch.push(event);
      reader.size += size;
      if (reader.size > BUFFER) {
        // It continues later, from its position in the log.
        reader.isLetGo = true;
        this.leave(event.sessionId, reader);
      }
      reader.wake();
    }
  }

  leave(sessionId: string, reader: Reader): void {
    const readers = this.readers.get(sessionId);
    if (!readers?.delete(reader) || readers.size > 0) return;
    this.readers.delete(sessionId);
    this.send({ command: "detach", sessionId }).catch(() => undefined);
  }

  #end(failure: AgentwireError): void {
    if (this.failure) return;
    this.failure = failure;
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
    for (const readers of this.readers.values()) for (const reader of readers) reader.wake();
  }
}

/**
 * Starts `agentwire unified` when it is first needed, and again if it dies. A child shows a session in one profile:
 * readers of another profile than the default have a child of their own.
 */
export class StdioTransport implements Transport {
  readonly #options: ChildOptions;
  readonly #program: string;
  readonly #children = new Map<Profile, Child>();
  #isClosed = false;

  constructor(options: ChildOptions = {}) {
    this.#options = options;
    this.#program = options.program ?? (process.env["AGENTWIRE_BIN"] || "agentwire");
  }

  get name(): string {
    return `${this.#program} unified`;
  }

  /** The child's process id, if it runs. */
  get pid(): number | undefined {
    const child = this.#children.get(PROFILE);
    return child && !child.failure ? child.process.pid : undefined;
  }

  async call(call: Call, signal?: AbortSignal): Promise<unknown> {
    const { name, fields, key } = call;
    const spec: CallSpec = CALLS[name];
    if (name === "status") return {};
    if (!spec.frame) {
      const message = `a child process does not support ${name}; connect to a server`;
      throw new AgentwireError("unsupported", message);
    }
    const child = this.#running(PROFILE);
    const { state: _, ...rest } = fields;
    // A start shows the session. Its events are read when someone wants them.
    const leave = (reply: unknown) => {
      const { id } = (reply ?? {}) as { id?: string };
      if (name === "start" && id !== undefined && !child.readers.has(id)) {
        child.send({ command: "detach", sessionId: id }).catch(() => undefined);
      }
    };
    const frame = { command: name, ...rest, ...(key !== undefined && { idempotencyKey: key }) };
    return abortable(child.send(frame, leave), signal);
  }

  async *follow(sessionId: string, after: number, profile: Profile, signal: AbortSignal): AsyncGenerator<readonly Event[]> {
    const child = this.#running(profile);
    const reader = new Reader(after);
    let end: number | undefined;
    const join = (reply: unknown) => {
      const { state, lastSeq } = (reply ?? {}) as Partial<SessionSummary>;
      if (state === "ended") end = lastSeq;
      const readers = child.readers.get(sessionId) ?? new Set();
      child.readers.set(sessionId, readers.add(reader));
    };
    // All readers of a session share what the child shows, so it starts where the first of them is.
    const positions = [...(child.readers.get(sessionId) ?? [])].map(({ position }) => position);
    const from = Math.min(after, ...positions);
    try {
      await abortable(child.send({ command: "attach", sessionId, after: from, profile }, join), signal);
      for (yield []; ; ) {
        const { batch } = reader;
        [reader.batch, reader.size] = [[], 0];
        if (batch.length > 0) yield batch;
        if (reader.batch.length > 0) continue;
        if (reader.isLetGo) throw broken(this.name, "the reader was slow");
        if (child.failure) throw child.failure;
        if (batch.some(({ type }) => type === "sessionEnded")) end = await this.#end(sessionId, reader, signal);
        if (end !== undefined && reader.position >= end) return;
        await abortable(new Promise<void>((resolve) => (reader.wake = resolve)), signal);
      }
    } finally {
      child.leave(sessionId, reader);
    }
  }

  async *watch(_after: string | undefined, signal: AbortSignal): AsyncGenerator<WatchUpdate> {
    yield* look((call) => this.call(call, signal), signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#children.values()].map((child) => child.end()));
  }

  #running(profile: Profile): Child {
    if (this.#isClosed) throw new AgentwireError("connectionFailed", `failed to communicate with ${this.name}: the client was closed`);
    let child = this.#children.get(profile);
    if (!child || child.failure) {
      child = new Child(this.#program, this.#options, this.name);
      this.#children.set(profile, child);
    }
    return child;
  }

  /** The last event of a session, if it has ended and is not resumed meanwhile. */
  async #end(sessionId: string, reader: Reader, signal: AbortSignal): Promise<number | undefined> {
    for (let pause = 20; reader.batch.length === 0; pause *= 2) {
      const { state, lastSeq } = (await this.call({ name: "show", fields: { sessionId } }, signal)) as SessionSummary;
      if (state === "ended") return lastSeq;
      if (pause > 5000) return undefined;
      await sleep(pause, signal);
    }
    return undefined;
  }
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
