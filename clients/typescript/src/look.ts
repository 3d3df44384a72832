// Watches sessions by looking at them again and again, where nothing reports changes.
import type { Call } from "./calls.js";
import { sleep } from "./timing.js";
import type { WatchUpdate } from "./transport.js";
import type { OpenRequest, RequestList, SessionList, SessionSummary } from "./types.js";

const PAUSE = 2_000;
const PAGE = 500;

type Found = { session: SessionSummary; requests: OpenRequest[] };

export async function* look(call: (call: Call) => Promise<unknown>, signal: AbortSignal): AsyncGenerator<WatchUpdate> {
  let known = new Map<string, string>();
  for (let isFirst = true; ; isFirst = false) {
    const all = await lookOnce(call);
    const found = new Map(all.map((one) => [one.session.id, JSON.stringify(one)]));
    const sessions = all.filter(({ session }) => known.get(session.id) !== found.get(session.id));
    const forgotten = [...known.keys()].filter((id) => !found.has(id));
    known = found;
    if (isFirst) yield { reset: true, sessions, ready: true };
    else if (sessions.length + forgotten.length > 0) yield { sessions, forgotten };
    await sleep(PAUSE, signal);
  }
}

async function lookOnce(call: (call: Call) => Promise<unknown>): Promise<Found[]> {
  const all = new Map<string, Found>();
  let after: string | undefined;
  do {
    const page = (await call({ name: "list", fields: { after, limit: PAGE } })) as SessionList;
    for (const session of page.sessions) all.set(session.id, { session, requests: [] });
    after = page.next;
  } while (after !== undefined);
  const open = (await call({ name: "requests", fields: { state: "open" } })) as RequestList;
  for (const request of open.requests) all.get(request.sessionId)?.requests.push(request);
  return [...all.values()];
}
