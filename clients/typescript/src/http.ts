// The transport to a server: calls over HTTP; events as server-sent events, or by long polls where a proxy
// refuses or collects streams.
import { CALLS, request, type Call, type CallSpec } from "./calls.js";
import { AgentwireError, broken, invalid, refusal, unexpected } from "./errors.js";
import { look } from "./look.js";
import { SseParser, type Message } from "./sse.js";
import { Deadline } from "./timing.js";
import type { Transport, WatchUpdate } from "./transport.js";
import type { Event, EventPage, Profile } from "./types.js";

/** Time limits of an answer, and of one for which an agent must start or work. */
const ANSWER = 30_000;
const AGENT = 120_000;
/** The server sends something at once; otherwise a proxy collects the stream. */
const FIRST = 5_000;
/** The server sends something at least three times in this time; otherwise the connection is dead. */
const SILENCE = 60_000;
/** How many seconds a long poll waits, and how many events a page has: at first, and at most. */
const WAIT = 25;
const PAGE = 64;
const LARGEST_PAGE = 500;
/** A page of this length is large: the next one has fewer events. */
const LARGE = 1 << 20;

/** Where a server is. */
export interface Server {
  readonly url: string;
  readonly token?: string | undefined;
  /** It was found on this machine, at whatever address. */
  readonly isLocal?: boolean;
}

export interface HttpOptions {
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** `polling` skips streams, for networks that are known to block them. */
  readonly streaming?: "events" | "polling" | undefined;
}

/** A stream that did not open. */
class Blocked extends Error {
  constructor(readonly why: AgentwireError, readonly isSure: boolean) {
    super(why.message);
  }
}

export class HttpTransport implements Transport {
  readonly #locate: () => Server;
  readonly #fetch: typeof globalThis.fetch;
  #isPolling: boolean;
  #page = PAGE;

  /** A server at an address, or a function that looks it up again for each connection. */
  constructor(server: Server | (() => Server), options: HttpOptions = {}) {
    this.#locate = typeof server === "function" ? () => checked(server()) : ((at) => () => at)(checked(server));
    const chosen = options.fetch;
    this.#fetch = chosen ?? ((input, init) => globalThis.fetch(input, init));
    this.#isPolling = options.streaming === "polling";
  }

  get name(): string {
    try {
      return `the server at ${this.#locate().url}`;
    } catch {
      return "the server on this machine";
    }
  }

  /** How events are received, as far as is known. */
  get streaming(): "events" | "polling" {
    return this.#isPolling ? "polling" : "events";
  }

  async call(call: Call, signal?: AbortSignal): Promise<unknown> {
    const spec: CallSpec = CALLS[call.name];
    const { method, path, body } = request(call);
    const headers: Record<string, string> = {};
    if (call.key !== undefined) headers["idempotency-key"] = call.key;
    const [answer] = await this.#answer(method, path, { headers, body, signal, within: spec.slow ? AGENT : ANSWER });
    return spec.field ? (answer as Record<string, unknown> | null)?.[spec.field] : answer;
  }

  async *follow(sessionId: string, after: number, profile: Profile, signal: AbortSignal): AsyncGenerator<readonly Event[]> {
    const path = `/v1/sessions/${encodeURIComponent(sessionId)}/events?profile=${profile}`;
    const probe = () => this.call({ name: "show", fields: { sessionId } }, signal);
    const stream = await this.#stream(`${path}&after=${after}`, signal, probe);
    if (!stream) return yield* this.#poll(path, after, signal);
    yield [];
    for await (const messages of stream) {
      // A gap is found when the session is looked up, before each connection.
      const shown = messages.filter(({ event }) => event === "message");
      if (shown.length > 0) yield shown.map(({ data }) => this.#parse(data) as Event);
      if (messages.some(({ event }) => event === "end")) return;
    }
    throw broken(this.name, "the stream ended");
  }

  async *watch(after: string | undefined, signal: AbortSignal): AsyncGenerator<WatchUpdate> {
    const query = after === undefined ? "" : `?after=${encodeURIComponent(after)}`;
    const probe = () => this.call({ name: "status", fields: {} }, signal);
    let stream: AsyncGenerator<Message[]> | undefined;
    try {
      stream = await this.#stream(`/v1/watch${query}`, signal, probe);
    } catch (error) {
      // An older server has no such route.
      if (!(error instanceof AgentwireError && error.status === 404)) throw error;
    }
    if (!stream) return yield* look((call) => this.call(call, signal), signal);
    for await (const messages of stream) {
      for (const { event, id, data } of messages) {
        if (event === "message") yield { cursor: id, ...(this.#parse(data) as WatchUpdate) };
      }
    }
    throw broken(this.name, "the stream ended");
  }

  async close(): Promise<void> {}

  /** Opens a stream. Nothing, if none gets through. */
  async #stream(path: string, signal: AbortSignal, probe: () => Promise<unknown>): Promise<AsyncGenerator<Message[]> | undefined> {
    for (let stalls = 0; !this.#isPolling; ) {
      try {
        return await this.#open(path, signal);
      } catch (error) {
        if (!(error instanceof Blocked)) throw error;
        // If the server does not answer either, the stream is not to blame.
        await probe().catch(() => {
          throw signal.aborted ? signal.reason : error.why;
        });
        if (error.isSure || ++stalls > 1) this.#isPolling = true;
      }
    }
    return undefined;
  }

  async #open(path: string, signal: AbortSignal): Promise<AsyncGenerator<Message[]>> {
    const deadline = new Deadline(signal);
    const fail = (error: unknown): never => {
      deadline.end();
      if (signal.aborted) throw signal.reason;
      throw error;
    };
    const stalled = (error: unknown) => new Blocked(broken(this.name, error), false);
    deadline.within(FIRST);
    const headers = { accept: "text/event-stream" };
    const response = await this.#send("GET", path, headers, undefined, deadline.signal).catch((error) => fail(stalled(error)));
    if (response.status === 204) {
      deadline.clear();
      return (async function* () {
        yield [{ id: "", event: "end", data: "" }];
      })();
    }
    const type = response.headers.get("content-type") ?? "";
    if (!response.ok || !type.startsWith("text/event-stream") || !response.body) {
      const why = await refusal(this.name, response, this.#locate().token !== undefined);
      return fail(why.code === "protocolError" ? new Blocked(why, true) : why);
    }
    const reader = response.body.getReader();
    const first = await reader.read().catch((error) => fail(stalled(error)));
    return this.#messages(reader, first, deadline, signal);
  }

  async *#messages(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    first: ReadableStreamReadResult<Uint8Array>,
    deadline: Deadline,
    signal: AbortSignal,
  ): AsyncGenerator<Message[]> {
    const decoder = new TextDecoder();
    const parser = new SseParser();
    try {
      for (let chunk = first; !chunk.done; chunk = await reader.read()) {
        // A reader may take its time; only the server's silence counts.
        deadline.clearTimer();
        const messages = parser.feed(decoder.decode(chunk.value, { stream: true }));
        if (messages.length > 0) yield messages;
        deadline.within(SILENCE);
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : broken(this.name, error);
    } finally {
      deadline.end();
    }
  }

  async *#poll(path: string, after: number, signal: AbortSignal): AsyncGenerator<readonly Event[]> {
    for (let position = after; ; ) {
      const limit = this.#page;
      // A page that does not arrive may have been too large.
      this.#page = Math.max(1, limit >> 1);
      const within = WAIT * 1000 + ANSWER;
      const query = `${path}&after=${position}&limit=${limit}&wait=${WAIT}`;
      const [answer, length] = await this.#answer("GET", query, { signal, within });
      if (length < LARGE) this.#page = Math.min(LARGEST_PAGE, limit * 2);
      const { events, next, ended } = answer as EventPage;
      if (events.length === 0 && ended) return;
      yield events;
      position = next;
    }
  }

  /** Sends a request, and reads its answer as JSON. Also returns the length of the answer. */
  async #answer(
    method: string,
    path: string,
    { headers = {}, body, signal, within }: Answering,
  ): Promise<[answer: unknown, length: number]> {
    const deadline = new Deadline(signal);
    deadline.within(within);
    try {
      const response = await this.#send(method, path, headers, body, deadline.signal);
      if (!response.ok) throw await refusal(this.name, response, this.#locate().token !== undefined);
      const text = await response.text();
      return [text === "" ? {} : this.#parse(text), text.length];
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (deadline.isOver) throw new AgentwireError("timeout", `${this.name} did not answer within ${within / 1000} s`, { cause: error });
      throw error instanceof AgentwireError ? error : broken(this.name, error);
    } finally {
      deadline.clear();
    }
  }

  async #send(method: string, path: string, headers: Record<string, string>, body: string | undefined, signal: AbortSignal): Promise<Response> {
    const { url, token } = this.#locate();
    const all: Record<string, string> = { ...headers };
    if (token !== undefined) all["authorization"] = `Bearer ${token}`;
    if (body !== undefined) all["content-type"] = "application/json";
    const init = { method, headers: all, body: body ?? null, signal, redirect: "manual", cache: "no-store" } as const;
    try {
      // A redirect could lead the token to another server.
      return await this.#fetch(url + path, init);
    } catch (error) {
      const cause = (error as { cause?: unknown }).cause ?? error;
      const { code } = cause as { code?: string };
      throw broken(this.name, error, !/RESET|PIPE|SOCKET|closed/i.test(code ?? ""));
    }
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw unexpected(this.name, `its answer cannot be read: ${error}`);
    }
  }
}

interface Answering {
  readonly headers?: Record<string, string> | undefined;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly within: number;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Refuses an address that is not a server's, or that would show the token to others. It is not repeated in the
 * error: a wrong address may contain a token. */
function checked(server: Server): Server {
  const wrong = (why: string) => invalid(`failed to read the server's address: ${why}`);
  let url: URL;
  try {
    url = new URL(server.url);
  } catch {
    throw wrong("it is not a URL");
  }
  if (!/^https?:$/.test(url.protocol)) throw wrong("it must start with http:// or https://");
  if (url.username || url.password) throw wrong("it must not contain a token or a password");
  if (url.search || url.hash) throw wrong("it must not have a query");
  const token = server.token?.trim();
  const isExposed = url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !server.isLocal;
  if (token !== undefined && isExposed) {
    throw invalid(`refusing to send a token to ${url.origin} without TLS, where others can read it; use an https address`);
  }
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw invalid("the token contains invalid characters");
  return { url: url.origin + url.pathname.replace(/\/+$/, ""), token };
}
