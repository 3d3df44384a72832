// The sessions and requests that a watch has reported so far.
import type { WatchUpdate } from "./transport.js";
import type { OpenRequest, SessionSummary } from "./types.js";

/** Applies the updates of `client.watch()`. */
export class Watched {
  /** By id. */
  readonly sessions = new Map<string, SessionSummary>();
  /** Open requests by the id of their session. */
  readonly requests = new Map<string, readonly OpenRequest[]>();
  /** Everything that there was has arrived. */
  isReady = false;

  apply(update: WatchUpdate): void {
    if (update.reset) {
      this.sessions.clear();
      this.requests.clear();
      this.isReady = false;
    }
    for (const { session, requests } of update.sessions ?? []) {
      this.sessions.set(session.id, session);
      if (requests) this.requests.set(session.id, requests);
    }
    for (const id of update.forgotten ?? []) {
      this.sessions.delete(id);
      this.requests.delete(id);
    }
    this.isReady ||= update.ready ?? false;
  }
}
