// A conversation with a real server, in any runtime: over fetch, found through server.json, and with a child.
import { AgentwireError, connect, Watched } from "@agentwire/client";
import * as local from "@agentwire/client/node";
import { converse } from "./converse.mjs";

const { env } = globalThis.process;
const { SMOKE_URL: url, SMOKE_TOKEN: token, SMOKE_DIRECTORY: workingDirectory, SMOKE_DATA: dataDir } = env;
const { SMOKE_PROGRAM: program, SMOKE_CHILD_DATA: childData } = env;
const config = { workingDirectory };

await converse({ AgentwireError, Watched }, await connect({ url, token }), config);

// The server of this machine, found through its data directory.
const found = await local.connect({ dataDir, child: false });
await converse(local, found, config);
await pages(found);
await found.close();

// No server: a child.
const child = await local.connect({ dataDir: childData, child: { program, directory: workingDirectory } });
if (!child.transport.name.endsWith(" unified")) throw new Error(child.transport.name);
await converse(local, child, config);
await slow(child);
await profiles(child);
const { pid } = child.transport;
await child.close();
if (!(pid > 0) || child.transport.pid !== undefined) throw new Error("the child is still there");

// A wrong token is an error at once.
const refused = await connect({ url, token: "wrong" }).catch((error) => error);
if (!(refused instanceof AgentwireError) || refused.code !== "unauthorized" || refused.status !== 401) throw refused;
console.log("smoke: done");

/** A slow reader loses nothing, and does not stop another reader of the same session. */
async function slow(client) {
  const prompt = Array(4).fill("/blob 1000000").join("\n");
  const session = await client.sessions.create({ agentType: "demo", prompt, config });
  const lost = [];
  const events = session.events({ profile: "full", onConnection: (state) => lost.push(state) });
  const numbers = [(await events.next()).value.seq];
  for await (const { type } of session.events({ profile: "full" })) {
    if (type === "turnCompleted") await session.stop();
  }
  for await (const { seq } of events) numbers.push(seq);
  const { lastSeq } = await session.refresh();
  if (numbers.length !== lastSeq || numbers.some((seq, at) => seq !== at + 1)) throw new Error(`slow: ${numbers}`);
  if (!lost.includes("back")) throw new Error(`slow: it was never let go: ${lost}`);
}

/** The end of a log costs a page; the rest is read backwards, and one event is whole. */
async function pages(client) {
  const session = await client.sessions.create({ agentType: "demo", config });
  if (session.state === "ended" || session.summary.turns !== 0) throw new Error(`without a prompt: ${session.state}`);
  for await (const { type } of session.turn("/say one")) if (type === "turnCompleted") await session.stop();
  const all = [];
  for await (const event of session.events()) all.push(event);
  let page = await session.page({ before: Number.MAX_SAFE_INTEGER, limit: 5 });
  const read = [...page.events];
  while (page.previous !== undefined) {
    page = await session.page({ before: page.previous, limit: 5 });
    read.unshift(...page.events);
  }
  if (JSON.stringify(read) !== JSON.stringify(all)) throw new Error(`pages: ${read.length} of ${all.length}`);
  if (all.some(({ native }) => native)) throw new Error("lean events have no native");
  const whole = await Promise.all(all.map(({ seq }) => session.event(seq)));
  if (!whole.some(({ native }) => native) || whole.some(({ seq }, at) => seq !== at + 1)) throw new Error("events");
}

/** Each reader gets its own profile. */
async function profiles(client) {
  const session = await client.sessions.create({ agentType: "demo", prompt: "/think hm\n/say one", config });
  for await (const { type } of session.turn()) if (type === "turnCompleted") await session.stop();
  const types = async (profile) => {
    const all = new Set();
    for await (const { type } of session.events({ profile })) all.add(type);
    return all;
  };
  const [core, full] = await Promise.all([types("core"), types("full")]);
  if (core.has("thinkingChunk") || !core.has("textChunk") || !full.has("thinkingChunk")) throw new Error("profiles");
}
