// Connects to a server over fetch: in browsers, Node, Deno and Bun.
import { Client, greet, type ClientOptions } from "./client.js";
import { AgentwireError } from "./errors.js";
import { HttpTransport, type HttpOptions } from "./http.js";
import type { Transport } from "./transport.js";

export { Client, Sessions, type ClientOptions, type ListOptions, type RunOptions, type UsageOptions, type SearchOptions, type RunResult } from "./client.js";
export { AgentwireError, GapError, type ClientErrorCode } from "./errors.js";
export { Stream } from "./follow.js";
export { HttpTransport, type HttpOptions, type Server } from "./http.js";
export { Request, type Decision, type OnRequest } from "./request.js";
export { endsTurn, Session, type EventsOptions, type PromptInput, type SignalOption, type TurnOptions } from "./session.js";
export { scripted, ScriptedTransport } from "./scripted.js";
export { Watched } from "./watched.js";
export type { Call, CallName } from "./calls.js";
export type { Transport, WatchUpdate } from "./transport.js";
export type * from "./types.js";
export { VERSION } from "./types.js";

export interface ConnectOptions extends ClientOptions, HttpOptions {
  /** The server's address. */
  readonly url?: string;
  readonly token?: string;
  /** Cancels the attempt to connect. */
  readonly signal?: AbortSignal;
  /** Connects in another way; the address and the token are not used. */
  readonly transport?: Transport;
}

/**
 * Connects to a server: to `url`, else to the address in `AGENTWIRE_URL`, else on a page to the server of the page.
 * `@agentwire/client/node` also finds the server of this machine.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const transport = options.transport ?? named(options);
  if (!transport) {
    const tried = "no url was given, AGENTWIRE_URL is not set, and this is not a page of a server";
    throw new AgentwireError("connectionFailed", `no server found: ${tried}; import from "@agentwire/client/node" to find the one of this machine`);
  }
  const client = new Client(transport, options);
  if (!options.transport) await greet(client, options.signal);
  return client;
}

/** @internal The server that the options or the environment name. */
export function named(options: ConnectOptions): HttpTransport | undefined {
  const url = options.url ?? variable("AGENTWIRE_URL");
  // The token of the environment is for the server of the environment.
  const token = options.token ?? (options.url === undefined ? variable("AGENTWIRE_TOKEN") : undefined);
  if (url !== undefined) return new HttpTransport({ url, token }, options);
  const { location } = globalThis as { location?: { origin?: string } };
  if (!location?.origin?.startsWith("http")) return undefined;
  return new HttpTransport({ url: location.origin, token }, options);
}

/** @internal */
export function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  try {
    return process?.env?.[name] || undefined;
  } catch {
    // Deno asks for permission to read a variable.
    return undefined;
  }
}
