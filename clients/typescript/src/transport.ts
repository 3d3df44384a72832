// What carries calls and events: a server over HTTP, a child process, or a script.
import type { Call } from "./calls.js";
import type { Event, OpenRequest, Profile, SessionSummary } from "./types.js";

/** The profile of streams that name none. */
export const PROFILE: Profile = "lean";

/** A change of sessions and their requests. Apply it with `Watched`, or by hand. */
export interface WatchUpdate {
  /** Where this update is: `after` of a later watch. */
  readonly cursor?: string;
  /** The watch starts over: forget what you know. */
  readonly reset?: boolean;
  /** Each replaces what is known of its session. If `requests` is present, it replaces the open requests. */
  readonly sessions: readonly { readonly session: SessionSummary; readonly requests?: readonly OpenRequest[] }[];
  /** Sessions that were deleted. */
  readonly forgotten?: readonly string[];
  /** Everything that there is has been sent; changes follow. */
  readonly ready?: boolean;
}

/** Carries calls and events. Write your own to connect in another way. */
export interface Transport {
  /** Names the other end, for errors. */
  readonly name: string;
  /** Makes a call once. It rejects with an `AgentwireError`. */
  call(call: Call, signal?: AbortSignal): Promise<unknown>;
  /**
   * Opens one connection, which shows the events after a number in batches: an empty one as soon as it is open. It returns when the session has
   * ended and everything was shown, and throws if the connection breaks. Events may come twice.
   */
  follow(sessionId: string, after: number, profile: Profile, signal: AbortSignal): AsyncIterable<readonly Event[]>;
  /** Opens one connection that shows changes of all sessions. */
  watch(after: string | undefined, signal: AbortSignal): AsyncIterable<WatchUpdate>;
  /** Ends what the transport runs. */
  close(): Promise<void>;
}
