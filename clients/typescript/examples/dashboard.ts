// Watches all sessions over one connection, and prints a line for each change.
import { connect, Watched } from "@agentwire/client/node";

const SESSIONS = 4;
const client = await connect();
const started = await Promise.all(
  Array.from({ length: SESSIONS }, (_, number) =>
    client.sessions.create({
      agentType: "demo",
      prompt: `/repeat 20 word \n/say I am number ${number}`,
      config: { workingDirectory: process.cwd() },
    }),
  ),
);

// The watch shows all sessions, no matter which client started them.
const watched = new Watched();
const states = new Map<string, string>();
for await (const update of client.watch()) {
  watched.apply(update);
  for (const { session } of update.sessions) {
    if (states.get(session.id) === session.state) continue;
    states.set(session.id, session.state);
    const asks = watched.requests.get(session.id)?.length ?? 0;
    console.log(`${session.id.slice(0, 8)}  ${session.state}  ${session.usage.totalTokens} tokens${asks ? `  ${asks} open requests` : ""}`);
  }
  if (started.every(({ id }) => (watched.sessions.get(id)?.turns ?? 0) > 0 && watched.sessions.get(id)?.state === "idle")) break;
}
console.log(`${SESSIONS} sessions are idle`);
await Promise.all(started.map((session) => session.stop()));
await client.close();
