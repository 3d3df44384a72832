// The transport to a server, with answers from this file instead of a network.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, HttpTransport, Watched } from "../dist/index.js";
import { SseParser } from "../dist/sse.js";

const json = (body, status = 200, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
const URL_HERE = "http://127.0.0.1:1";

/** A client whose server answers with these, in order; the last one again and again. */
function server(...answers) {
  const asked = [];
  const fetch = async (url, init) => {
    asked.push({ url: url.slice(URL_HERE.length), ...init });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    return typeof answer === "function" ? answer(url, init) : answer.clone();
  };
  return { asked, fetch };
}

test("chunks may be split anywhere", () => {
  const text = 'retry: 1000\n\n:\n\nid: 7\ndata: {"a":1}\n\nid: 8\r\ndata: {"b":\r\ndata:2}\r\n\r\nevent: end\ndata: {}\n\n';
  for (let size = 1; size < text.length; size++) {
    const parser = new SseParser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.feed(text.slice(at, at + size)));
    assert.deepEqual(found, [
      { id: "7", event: "message", data: '{"a":1}' },
      { id: "8", event: "message", data: '{"b":\n2}' },
      { id: "", event: "end", data: "{}" },
    ], `${size}`);
  }
});

test("connect checks the server, and warns once if it is another version", async (context) => {
  const warned = context.mock.method(console, "warn", () => {});
  const { asked, fetch } = server(json({ version: "99.1.0" }));
  await connect({ url: `${URL_HERE}/below/`, token: "secret", fetch });
  assert.deepEqual([asked[0].url, asked[0].headers.authorization, asked[0].redirect], ["/below/v1/status", "Bearer secret", "manual"]);
  assert.equal(warned.mock.callCount(), 1);
  assert.match(warned.mock.calls[0].arguments[0], /99\.1\.0/);
});

test("refusals have a code, a status and details", async () => {
  const problem = { type: "about:blank", title: "Conflict", status: 409, code: "conflict", detail: "not now", details: { a: 1 } };
  const { fetch } = server(json({ version: "0.1.0" }), json(problem, 409));
  const client = await connect({ url: URL_HERE, fetch });
  await assert.rejects(client.status(), { code: "conflict", status: 409, message: "not now", details: { a: 1 }, retryable: false });
});

test("a token is not sent on, and other programs are no server", async () => {
  for (const [answer, why] of [
    [new Response("", { status: 302, headers: { location: "https://else.example/" } }), /redirects to https:\/\/else\.example/],
    [new Response("no", { status: 404 }), /answered 404; is it an agentwire server/],
    [json({ code: "conflict", status: 200, detail: "x" }, 404), /answered 404; is it an agentwire server/],
    [new Response("<html>"), /cannot be read/],
    [() => Promise.reject(Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) })), /refused/],
  ]) {
    const { asked, fetch } = server(answer);
    await assert.rejects(connect({ url: URL_HERE, fetch }), (error) => why.test(error.message) && error.retryable);
    // A server that has never answered is an error at once.
    assert.equal(asked.length, 1);
  }
  const { fetch } = server(json({ status: 401, code: "unauthorized", detail: "who?" }, 401));
  await assert.rejects(connect({ url: URL_HERE, fetch }), { code: "unauthorized", message: /requires a token/ });
  await assert.rejects(connect({ url: URL_HERE, token: "t", fetch }), { code: "unauthorized", message: /does not accept this token/ });
});

test("reads are repeated after a server has answered, commands are not", async () => {
  const busy = json({ status: 503, code: "overloaded", detail: "later" }, 503);
  const { asked, fetch } = server(json({ version: "0.1.0" }), busy, json({ sessions: [{ id: "a" }], next: "a" }), json({ sessions: [{ id: "b" }] }), busy);
  const client = await connect({ url: URL_HERE, fetch });
  assert.deepEqual((await client.sessions.list({ live: true })).map(({ id }) => id), ["a", "b"]);
  assert.deepEqual(asked.slice(1).map(({ url }) => url), [
    "/v1/sessions?live=true&limit=500", "/v1/sessions?live=true&limit=500", "/v1/sessions?live=true&after=a&limit=500",
  ]);
  await assert.rejects(client.call("finish", { sessionId: "a/b" }), { code: "overloaded" });
  const last = asked.at(-1);
  assert.deepEqual([asked.length, last.method, last.url, last.body, "content-type" in last.headers], [5, "POST", "/v1/sessions/a%2Fb/finish", null, false]);
});

test("a time limit ends a call, and a signal too", async () => {
  const transport = new HttpTransport({ url: URL_HERE }, {
    fetch: (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  const controller = new AbortController();
  const called = transport.call({ name: "status", fields: {} }, controller.signal);
  controller.abort(new RangeError("enough"));
  await assert.rejects(called, RangeError);
});

test("a token is sent only to this machine without TLS", () => {
  for (const url of ["http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1", "http://LocalHost", "https://agents.example"]) {
    new HttpTransport({ url, token: "t" });
  }
  for (const url of ["http://10.0.0.1", "http://agents.example", "http://localhost.agents.example", "http://0.0.0.0", "http://[::2]", "http://127.0.0.1.nip.io"]) {
    assert.throws(() => new HttpTransport({ url, token: "secret" }), (error) => /https/.test(error.message) && !error.message.includes("secret"), url);
    new HttpTransport({ url });
  }
});

const stream = (...parts) =>
  new Response(new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  }), { headers: { "content-type": "text/event-stream" } });
const change = (cursor, rest) => `id: ${cursor}\ndata: ${JSON.stringify({ cursor, ...rest })}\n\n`;

test("a watch resumes by its cursor, and reports what it missed", async () => {
  const session = (id, state) => ({ session: { id, state } });
  const request = { sessionId: "a", requestId: "r1" };
  const { asked, fetch } = server(
    json({ version: "0.1.0" }),
    stream("retry: 1000\n\n", change("c1", { reset: true, sessions: [{ ...session("a", "idle"), requests: [request] }, session("b", "idle")], ready: true })),
    stream("retry: 1000\n\n", change("c2", { sessions: [{ ...session("a", "working"), requests: [] }], forgotten: ["b"], ready: true })),
    stream("retry: 1000\n\n", change("c9", { reset: true, sessions: [session("d", "ended")], ready: true })),
  );
  const client = await connect({ url: URL_HERE, fetch });
  const watched = new Watched();
  const states = [];
  for await (const update of client.watch()) {
    watched.apply(update);
    states.push([...watched.sessions.values()].map(({ id, state }) => `${id} ${state} ${watched.requests.get(id)?.length ?? 0}`).join(", "));
    if (states.length === 3) break;
  }
  assert.deepEqual(states, ["a idle 1, b idle 0", "a working 0", "d ended 0"]);
  assert.deepEqual(asked.slice(1).map(({ url }) => url), ["/v1/watch", "/v1/watch?after=c1", "/v1/watch?after=c2"]);
});

test("where streams are refused, a watch looks again and again, and events are polled", async () => {
  const blocked = new Response("no", { status: 403 });
  const { asked, fetch } = server(
    json({ version: "0.1.0" }), blocked, json({ version: "0.1.0" }),
    json({ sessions: [{ id: "a", state: "idle" }] }), json({ requests: [{ sessionId: "a", requestId: "r1" }] }),
  );
  const client = await connect({ url: URL_HERE, fetch });
  for await (const { reset, ready, sessions } of client.watch()) {
    assert.deepEqual([reset, ready, sessions], [true, true, [{ session: { id: "a", state: "idle" }, requests: [{ sessionId: "a", requestId: "r1" }] }]]);
    break;
  }
  assert.equal(client.transport.streaming, "polling");
  assert.match(asked.at(-1).url, /^\/v1\/requests\?state=open/);
});
