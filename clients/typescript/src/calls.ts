// Every call that the client makes: its route, and whether it may be repeated.
import type { CommandName } from "./types.js";

export interface CallSpec {
  /** The method and the path. A field in braces is put into the path; the other fields are query or body. */
  readonly route: `${"GET" | "POST" | "PATCH" | "DELETE"} /${string}`;
  /** It counts once, however often it is sent. */
  readonly repeat?: true;
  /** An agent must start or answer. */
  readonly slow?: true;
  /** A command of the unified protocol: a child accepts it too. */
  readonly frame?: true;
  /** The field of the answer that is the result. */
  readonly field?: string;
}

/** Commands that the transports send by themselves, when events are read. */
type Streaming = "attach" | "detach" | "watch" | "unwatch";

const SESSION = "/v1/sessions/{sessionId}";

/** One entry for each command of the protocol: a new command without an entry does not compile. */
const COMMANDS = {
  start: { route: "POST /v1/sessions", repeat: true, slow: true, frame: true },
  list: { route: "GET /v1/sessions", repeat: true, frame: true },
  show: { route: `GET ${SESSION}`, repeat: true, frame: true },
  requests: { route: "GET /v1/requests", repeat: true, frame: true },
  // It always has a messageId.
  prompt: { route: `POST ${SESSION}/prompt`, repeat: true, slow: true, frame: true },
  interrupt: { route: `POST ${SESSION}/interrupt`, slow: true, frame: true },
  stop: { route: `POST ${SESSION}/stop`, repeat: true, slow: true, frame: true },
  finish: { route: `POST ${SESSION}/finish`, slow: true, frame: true },
  settle: { route: `POST ${SESSION}/requests/{requestId}`, slow: true, frame: true },
  configure: { route: `PATCH ${SESSION}`, slow: true, frame: true },
  query: { route: `POST ${SESSION}/query`, slow: true, frame: true, field: "result" },
  rewind: { route: `POST ${SESSION}/rewind`, slow: true, frame: true },
  label: { route: `PATCH ${SESSION}`, frame: true },
  search: { route: "GET /v1/search", repeat: true, frame: true },
  usage: { route: "GET /v1/usage", repeat: true, frame: true },
  queue: { route: `GET ${SESSION}/queue`, repeat: true, frame: true },
  cancel: { route: `DELETE ${SESSION}/queue/{messageId}`, frame: true },
  edit: { route: `PATCH ${SESSION}/queue/{messageId}`, frame: true },
} as const satisfies Record<Exclude<CommandName, Streaming>, CallSpec>;

/** Calls that only a server has. */
const ROUTES = {
  forget: { route: `DELETE ${SESSION}` },
  page: { route: `GET ${SESSION}/events`, repeat: true },
  event: { route: `GET ${SESSION}/events/{seq}`, repeat: true },
  request: { route: `GET ${SESSION}/requests/{requestId}`, repeat: true },
  agents: { route: "GET /v1/agents", repeat: true, slow: true },
  status: { route: "GET /v1/status", repeat: true },
} as const satisfies Record<string, CallSpec>;

export const CALLS = { ...COMMANDS, ...ROUTES };

export type CallName = keyof typeof CALLS;

/** A call with its fields. */
export interface Call {
  readonly name: CallName;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Makes a start count once. */
  readonly key?: string;
}

/** The method, path and body of a call. */
export function request({ name, fields }: Call): { method: string; path: string; body?: string } {
  const spec: CallSpec = CALLS[name];
  const [method = "", template = ""] = spec.route.split(" ");
  const rest = { ...fields };
  const path = template.replace(/\{(\w+)\}/g, (_, field: string) => {
    const value = rest[field];
    delete rest[field];
    return encodeURIComponent(String(value));
  });
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  if (method === "GET" || method === "DELETE") {
    const query = new URLSearchParams(given.map(([field, value]) => [field, String(value)])).toString();
    return { method, path: query ? `${path}?${query}` : path };
  }
  return given.length > 0 ? { method, path, body: JSON.stringify(Object.fromEntries(given)) } : { method, path };
}
