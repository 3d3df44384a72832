// Makes a stream reliable over any transport: keeps the position, reconnects, and reads no faster than its
// reader.
import { Cursor } from "./cursor.js";
import { AgentwireError, broken, GapError } from "./errors.js";
import { Backoff, sleep } from "./timing.js";
import type { Transport, WatchUpdate } from "./transport.js";
import type { Event, Profile, SessionSummary } from "./types.js";

/** A connection that held this long has worked: patience starts over. */
const STEADY = 10_000;

/** An async iterator that can be closed while it waits. A `GapError` does not end it. */
export class Stream<T> implements AsyncIterableIterator<T> {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #source: AsyncGenerator<T | GapError, void>;
  #isClosed = false;

  /** @internal */
  constructor(outer: AbortSignal | undefined, source: (signal: AbortSignal) => AsyncGenerator<T | GapError, void>) {
    this.#outer = outer;
    this.#source = source(this.#controller.signal);
    if (outer?.aborted) this.#abort();
    else outer?.addEventListener("abort", this.#abort, { once: true });
  }

  readonly #abort = () => this.#controller.abort(this.#outer?.reason);

  async next(): Promise<IteratorResult<T, undefined>> {
    try {
      if (this.#outer?.aborted) throw this.#outer.reason;
      const { done, value } = await this.#source.next();
      if (done || value === undefined) return this.return();
      if (value instanceof GapError) throw value;
      return { done: false, value };
    } catch (error) {
      if (this.#isClosed) return { done: true, value: undefined };
      if (!(error instanceof GapError)) await this.return();
      throw error;
    }
  }

  /** Ends the stream and its connection. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.#isClosed = true;
    this.#outer?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
    await this.#source.return().catch(() => undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

export interface FollowPlan {
  readonly transport: Transport;
  readonly sessionId: string;
  readonly after: number;
  readonly profile: Profile;
  readonly patience: number;
  readonly status: (signal: AbortSignal) => Promise<SessionSummary>;
  readonly onConnection?: ((state: "lost" | "back", why?: AgentwireError) => void) | undefined;
}

/** Reconnects until `connection` returns true, or fails for good. */
async function* reconnecting<T>(
  { patience, onConnection }: Pick<FollowPlan, "patience" | "onConnection">,
  signal: AbortSignal,
  position: () => unknown,
  connection: (opened: () => void) => AsyncGenerator<T, boolean>,
): AsyncGenerator<T, void> {
  let backoff = new Backoff(patience);
  for (let isLost = false; ; ) {
    const before = position();
    let opened: number | undefined;
    try {
      const isOver = yield* connection(() => {
        opened = Date.now();
        if (isLost) onConnection?.("back");
        isLost = false;
      });
      if (isOver) return;
      backoff = new Backoff(patience);
      continue;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof AgentwireError) || !error.retryable) throw error;
      const hasWorked = position() !== before || (opened !== undefined && Date.now() - opened > STEADY);
      if (hasWorked) backoff = new Backoff(patience);
      else if (backoff.isOver) throw error;
      if (!isLost) onConnection?.("lost", error);
      isLost = true;
    }
    await sleep(backoff.next(), signal);
  }
}

/** The events of a session after a number: each once and in order. Gaps come as values. */
export function follow(plan: FollowPlan, signal: AbortSignal): AsyncGenerator<Event | GapError, void> {
  const { transport, sessionId, profile } = plan;
  const cursor = new Cursor(plan.after);
  const isDense = profile !== "core";

  async function* connection(opened: () => void): AsyncGenerator<Event | GapError, boolean> {
    const status = await plan.status(signal);
    if (cursor.position > status.lastSeq) {
      const gap = new GapError("forgotten", status.lastSeq + 1, cursor.position);
      cursor.goBack(status.lastSeq);
      yield gap;
    }
    if (status.state === "ended" && cursor.position >= status.lastSeq) return true;
    let isOpen = false;
    for await (const batch of transport.follow(sessionId, cursor.position, profile, signal)) {
      if (!isOpen) opened();
      isOpen = true;
      const { events, gap, jump } = cursor.advance(batch, isDense);
      yield* events;
      if (gap) {
        yield new GapError("skipped", gap.from, gap.to);
        return false;
      }
      if (jump) throw broken(transport.name, jump);
    }
    return true;
  }

  return reconnecting(plan, signal, () => cursor.position, connection);
}

/** Changes of all sessions, from a cursor on. */
export function followWatch(
  plan: Pick<FollowPlan, "transport" | "patience" | "onConnection">,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<WatchUpdate, void> {
  let cursor = after;
  let count = 0;

  async function* connection(opened: () => void): AsyncGenerator<WatchUpdate, boolean> {
    let isOpen = false;
    for await (const update of plan.transport.watch(cursor, signal)) {
      if (!isOpen) opened();
      isOpen = true;
      cursor = update.cursor ?? cursor;
      count += 1;
      yield update;
    }
    return true;
  }

  return reconnecting(plan, signal, () => count, connection);
}
