// The law of a stream, over a script: each event once and in order, gaps reported, nothing allowed by silence.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentwireError, Client, connect, GapError, scripted, Watched } from "../dist/index.js";

const ID = "11111111-1111-4111-8111-111111111111";
const event = (seq, type, rest = {}) => ({
  id: `e${seq}`, sessionId: ID, seq, timestamp: "2026-01-02T03:04:05Z", agentId: "main", type, ...rest,
});
const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
const asked = (seq, requestId = "r1", rest = {}) =>
  event(seq, "requestRaised", { requestId, kind: "permission", inputDigest: "d1", toolName: "Bash", input: { command: "ls" }, ...rest });
const turn = [
  event(1, "sessionStarted", { agentType: "demo", config: {} }),
  event(2, "turnStarted", { turnNumber: 1 }),
  event(3, "textChunk", { content: "Hello, ", isComplete: false }),
  event(4, "textChunk", { content: "world.", isComplete: true }),
  event(5, "somethingNew", { much: [1] }),
  event(6, "textChunk", { content: "Bye.", isComplete: true }),
  event(7, "turnCompleted", { turnNumber: 1, usage, costUsd: 0.5 }),
];
const over = (script, options) => new Client(script, options);
const numbers = async (stream) => {
  const all = [];
  for await (const { seq } of stream) all.push(seq);
  return all;
};

test("cut connections, repeats and refusals are not seen", async () => {
  const script = scripted(turn).cutAfter(2).cutAfter(3).cutAfter(6).repeating(2).refusingConnections(1);
  const states = [];
  const session = await over(script).sessions.attach(ID);
  assert.deepEqual(await numbers(session.events({ onConnection: (state) => states.push(state) })), [1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(states, ["lost", "back", "lost", "back", "lost", "back", "lost", "back"]);
});

test("a gap is reported, and the iteration continues after it", async () => {
  const session = await over(scripted(turn).without(3).without(4)).sessions.attach(ID);
  const events = session.events();
  const seen = [];
  for (;;) {
    try {
      const { done, value } = await events.next();
      if (done) break;
      seen.push(value.seq);
    } catch (gap) {
      assert.ok(gap instanceof GapError && gap instanceof AgentwireError);
      seen.push([gap.kind, gap.from, gap.to]);
    }
  }
  assert.deepEqual(seen, [1, 2, ["skipped", 3, 4], 5, 6, 7]);
});

test("a log that became shorter is reported", async () => {
  const session = await over(scripted(turn)).sessions.attach(ID);
  const events = session.events({ after: 9 });
  await assert.rejects(events.next(), (gap) => gap.kind === "forgotten" && gap.from === 8 && gap.to === 9);
  assert.deepEqual(await events.next(), { done: true, value: undefined });
});

test("for await continues after a gap", async () => {
  const session = await over(scripted(turn).without(2)).sessions.attach(ID);
  const events = session.events();
  const seen = [];
  for (let isOver = false; !isOver; ) {
    try {
      for await (const { seq } of events) seen.push(seq);
      isOver = true;
    } catch (error) {
      if (!(error instanceof GapError)) throw error;
      seen.push("gap");
    }
  }
  assert.deepEqual(seen, [1, "gap", 3, 4, 5, 6, 7]);
});

test("kinds that are not known survive", async () => {
  const session = await over(scripted(turn)).sessions.attach(ID);
  for await (const found of session.events()) if (found.seq === 5) assert.deepEqual(found.much, [1]);
});

test("patience ends", async () => {
  const script = scripted(turn).refusingConnections(1000);
  const session = await over(script, { patience: 300 }).sessions.attach(ID);
  await assert.rejects(numbers(session.events()), { code: "connectionFailed", retryable: true });
});

test("the state is known from the events that were read", async () => {
  const session = await over(scripted(turn).live()).sessions.create({ agentType: "demo", prompt: "Hi" });
  assert.equal(session.state, "starting");
  for await (const { type } of session.turn()) if (type === "turnStarted") assert.equal(session.state, "working");
  assert.deepEqual([session.state, session.usage.totalTokens, session.costUsd], ["idle", 7, 0.5]);
});

test("run returns the answer and ends the session", async () => {
  const script = scripted(turn);
  const answer = await over(script).run("demo", "Hi");
  assert.deepEqual([answer.text, answer.usage, answer.costUsd, answer.turn.seq], ["Hello, world.\n\nBye.", usage, 0.5, 7]);
  assert.deepEqual(script.calls.map(({ name }) => name).filter((name) => name !== "show"), ["start", "stop"]);
  assert.match(script.calls[0].key, /^[0-9a-f-]{36}$/);
});

test("run fails as its turn fails", async () => {
  const failed = [...turn.slice(0, 2), event(3, "turnFailed", { turnNumber: 1, error: "no key", reason: "error" })];
  const script = scripted(failed);
  await assert.rejects(over(script).run("demo", "Hi"), { code: "agentFailed", message: "no key", details: { reason: "error" } });
  assert.equal(script.calls.at(-1).name, "stop");
});

const waiting = [...turn.slice(0, 2), asked(3), ...turn.slice(4).map((one) => ({ ...one, seq: one.seq + 0 }))];
waiting.splice(3, 0, event(4, "requestSettled", { requestId: "r1", outcome: "denied", by: "client" }));
const answers = (script) => script.calls.filter(({ name }) => name === "settle").map(({ fields }) => fields);

for (const [what, onRequest, expected] of [
  ["no callback", undefined, { behavior: "deny", message: "nobody is there to answer" }],
  ["silence", () => undefined, { behavior: "deny", message: "the program did not allow it" }],
  ["truth", () => true, { behavior: "deny", message: "the program did not allow it" }],
  ["a string", () => "yes", { behavior: "deny", message: "the program did not allow it" }],
  ["an allow", () => "allow", { behavior: "allow" }],
  ["a denial", async () => "deny", { behavior: "deny", message: "the program did not allow it" }],
  ["a settlement", () => ({ behavior: "allow", remember: "session" }), { behavior: "allow", remember: "session" }],
  ["its own answer", async (request) => void (await request.allow({ input: { command: "pwd" } })), { behavior: "allow", updatedInput: { command: "pwd" } }],
]) {
  test(`${what} answers a request`, async () => {
    const script = scripted(waiting).holdAfter(3);
    await over(script).run("demo", "Hi", { ...(onRequest && { onRequest }) });
    assert.deepEqual(answers(script), [{ inputDigest: "d1", requestId: "r1", sessionId: ID, ...expected }]);
  });
}

test("a callback that fails denies and fails the run", async () => {
  const script = scripted(waiting).holdAfter(3);
  const onRequest = () => Promise.reject(new RangeError("oops"));
  await assert.rejects(over(script).run("demo", "Hi", { onRequest }), RangeError);
  assert.equal(answers(script)[0].behavior, "deny");
});

test("a callback learns that somebody else was faster", async () => {
  const script = scripted(waiting).holdAfter(3);
  const client = over(script);
  let isAborted = false;
  const onRequest = (request, { signal }) => {
    signal.addEventListener("abort", () => (isAborted = true));
    // Another client answers, and this one never decides.
    void client.call("settle", { sessionId: ID, requestId: "r1", behavior: "deny" });
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  await client.run("demo", "Hi", { onRequest });
  assert.ok(isAborted);
  assert.equal(answers(script).length, 1);
});

test("a callback that never returns holds nobody up", async () => {
  const settled = [...turn.slice(0, 2), asked(3), event(4, "requestSettled", { requestId: "r1", outcome: "denied", by: "policy" }), ...turn.slice(4)];
  const script = scripted(settled);
  await over(script).run("demo", "Hi", { onRequest: () => new Promise(() => {}) });
  assert.deepEqual(answers(script), []);
});

test("each answer says whether it was first", async () => {
  const script = scripted([...turn.slice(0, 2), asked(3)]).live();
  const session = await over(script).sessions.attach(ID);
  const [request] = await session.requests();
  assert.deepEqual([request.id, request.toolName, request.kind], ["r1", "Bash", "permission"]);
  assert.equal(await request.allow(), true);
  script.fail("settle", "requestSettled").fail("settle", "requestNotFound").fail("settle", "forbidden");
  assert.equal(await request.deny("no"), false);
  assert.equal(await request.allow({ remember: "session" }), false);
  await assert.rejects(request.allow(), { code: "forbidden" });
  await assert.rejects(request.allow({ input: undefined }), { code: "invalidMessage" });
});

test("answers are by order, or by name", async () => {
  const questions = [{ question: "Which?", id: "q1" }, { question: "How many?", multiSelect: true }];
  const script = scripted([...turn.slice(0, 2), asked(3, "r1", { kind: "question", questions })]).live();
  const [request] = await (await over(script).sessions.attach(ID)).requests();
  await request.answer(["red", "two"]);
  await request.answer({ q1: "blue" });
  await assert.rejects(request.answer(["red"]), { code: "invalidMessage" });
  assert.deepEqual(answers(script).map(({ answers }) => answers), [{ q1: "red", "How many?": ["two"] }, { q1: "blue" }]);
});

test("starts and prompts are repeated with the same key, other commands are not", async () => {
  const script = scripted(turn).live().fail("start", "overloaded").fail("prompt", "timeout").fail("interrupt", "overloaded");
  const session = await over(script).sessions.create({ agentType: "demo", prompt: "Hi" });
  await session.prompt("More");
  await assert.rejects(session.interrupt(), { code: "overloaded", retryable: true });
  const made = (name) => script.calls.filter((call) => call.name === name);
  assert.deepEqual([made("start").length, made("prompt").length, made("interrupt").length], [2, 2, 1]);
  assert.equal(made("start")[0].key, made("start")[1].key);
  assert.equal(made("prompt")[0].fields.messageId, made("prompt")[1].fields.messageId);
});

test("a session that has ended is stopped", async () => {
  const script = scripted(turn).fail("stop", "conflict");
  await (await over(script).sessions.attach(ID)).stop();
});

test("signals end what they are given to", async () => {
  const session = await over(scripted(turn).live()).sessions.attach(ID);
  const controller = new AbortController();
  const reason = new Error("enough");
  const seen = [];
  await assert.rejects(async () => {
    for await (const { seq } of session.events({ signal: controller.signal })) {
      seen.push(seq);
      if (seq === 7) setTimeout(() => controller.abort(reason));
    }
  }, reason);
  assert.equal(seen.length, 7);
  await assert.rejects(session.refresh({ signal: controller.signal }), reason);
  // One that is closed while it waits ends.
  const events = session.events({ after: 7 });
  const next = events.next();
  await events.return();
  assert.deepEqual(await next, { done: true, value: undefined });
});

test("open requests are shown once, then those that come", async () => {
  const script = scripted([...turn.slice(0, 2), asked(3)]).live();
  const client = over(script);
  const seen = [];
  for await (const request of client.requests()) {
    seen.push(request.id);
    if (request.id === "r1") script.push(asked(4, "r2"));
    if (request.id === "r2") script.push(event(5, "requestSettled", { requestId: "r1", outcome: "allowed", by: "client" }));
    if (request.id === "r2") script.push(asked(6, "r3"));
    if (request.id === "r3") break;
  }
  assert.deepEqual(seen, ["r1", "r2", "r3"]);
  const watched = new Watched();
  for await (const update of client.watch()) {
    watched.apply(update);
    if (watched.isReady) break;
  }
  assert.deepEqual(watched.requests.get(ID).map(({ requestId }) => requestId), ["r2", "r3"]);
});

test("without a server, the error names what was tried", async () => {
  const { AGENTWIRE_URL: url } = process.env;
  delete process.env.AGENTWIRE_URL;
  await assert.rejects(connect(), { code: "connectionFailed", message: /no url was given, AGENTWIRE_URL is not set/ });
  if (url !== undefined) process.env.AGENTWIRE_URL = url;
  for (const wrong of ["here", "ftp://host", "http://user:secret@host", "http://host?token=secret", "http://agents.example"]) {
    await assert.rejects(connect({ url: wrong, token: "secret" }), (error) => error.code === "invalidMessage" && !error.message.includes("secret"));
  }
});
