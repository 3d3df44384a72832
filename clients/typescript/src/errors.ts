// Errors: refusals of the server, failures of the connection, and events that are missing.
import type { ErrorCode, Problem } from "./types.js";

/** Codes of failures that no server reports. */
export type ClientErrorCode = "connectionFailed" | "protocolError" | "gap";

const RETRYABLE: readonly string[] = ["timeout", "overloaded", "storageFull", "internal"];

interface Details {
  status?: number | undefined;
  details?: unknown;
  retryable?: boolean;
  isUnreachable?: boolean;
  cause?: unknown;
}

/** A call that failed. `code` says why. */
export class AgentwireError extends Error {
  override readonly name: string = "AgentwireError";
  /** The server's code, or the client's own. A newer server may have codes that are not listed here. */
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status, if a server answered. */
  declare readonly status?: number;
  /** What the server adds to the code. */
  declare readonly details?: unknown;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly #isUnreachable: boolean;

  constructor(code: ErrorCode | ClientErrorCode, message: string, more: Details = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    if (more.status !== undefined) this.status = more.status;
    if (more.details !== undefined) this.details = more.details;
    this.retryable = more.retryable ?? RETRYABLE.includes(code);
    this.#isUnreachable = more.isUnreachable ?? false;
  }

  /** @internal The call did not reach a server. */
  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }
}

/** Events that cannot be read. The iteration continues after them: call `next` again. */
export class GapError extends AgentwireError {
  override readonly name = "GapError";
  /** The first missing event. */
  readonly from: number;
  /** The last missing event. */
  readonly to: number;
  /** `skipped`: the log does not have them. `forgotten`: they were read before, and the log was replaced. */
  readonly kind: "skipped" | "forgotten";

  constructor(kind: "skipped" | "forgotten", from: number, to: number) {
    super(
      "gap",
      kind === "skipped"
        ? `events ${from} to ${to} are missing`
        : `the log no longer has events ${from} to ${to}, which were read before: it was replaced or truncated`,
    );
    this.kind = kind;
    this.from = from;
    this.to = to;
  }
}

/** The connection broke, or never opened. */
export function broken(server: string, why: unknown, isUnreachable = false): AgentwireError {
  const message = `failed to communicate with ${server}: ${reason(why)}`;
  return new AgentwireError("connectionFailed", message, { retryable: true, isUnreachable, cause: why });
}

/** Something answered, but not as agentwire does. */
export function unexpected(server: string, why: string, status?: number, isUnreachable = false): AgentwireError {
  const message = `failed to communicate with ${server}: ${why}`;
  return new AgentwireError("protocolError", message, { status, retryable: true, isUnreachable });
}

export const invalid = (message: string) => new AgentwireError("invalidMessage", message);

/** What a response that is not a success says. */
export async function refusal(server: string, response: Response, hasToken: boolean): Promise<AgentwireError> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  const problem = parsed(text) as Partial<Problem> | undefined;
  if (typeof problem?.code === "string" && problem.status === status) {
    let message = problem.detail ?? problem.title ?? problem.code;
    if (problem.code === "unauthorized") {
      message = hasToken
        ? `${server} does not accept this token: ${message}; create one there with "agentwire token create"`
        : `${server} requires a token; pass one, or set AGENTWIRE_TOKEN`;
    }
    return new AgentwireError(problem.code, message, { status, details: problem.details });
  }
  const isRedirect = response.type === "opaqueredirect" || (status >= 300 && status < 400);
  if (isRedirect) {
    const to = response.headers.get("location") ?? "another address";
    return unexpected(server, `it redirects to ${to}, where the token is not sent; use that address instead`, status, true);
  }
  const why = `it answered ${status}; is it an agentwire server?`;
  const isBusy = status === 408 || status === 429 || status === 500 || status > 504;
  return unexpected(server, why, status, !isBusy);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

function reason(why: unknown): string {
  if (!(why instanceof Error)) return String(why);
  // fetch says only "fetch failed"; its cause says why.
  return why.cause instanceof Error ? why.cause.message || why.message : why.message;
}
