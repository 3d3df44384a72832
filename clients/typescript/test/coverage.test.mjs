// Every command and every route of the server is in the client, or is left out here with a reason.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CALLS } from "../dist/calls.js";

const { AGENTWIRE_SCHEMA: schema = new URL("../../../schema", import.meta.url).pathname } = process.env;
const read = (name) => JSON.parse(readFileSync(`${schema}/${name}`, "utf8"));

/** What the transports send by themselves, when events or changes are read. */
const STREAMED = ["attach", "detach", "watch", "unwatch"];

const LEFT_OUT = {
  "GET /v1/sessions/{id}/ws": "events come as server-sent events or by long polls",
  "GET /v1/ws": "the same",
  "POST /v1/tickets": "for WebSockets of a page",
  "POST /v1/sign-in": "for the server's own page",
};

/** Streams, which the transport reads. */
const FOLLOWED = ["GET /v1/watch"];

test("every command has a call", () => {
  const commands = read("command.json").oneOf.map(({ $ref }) => {
    const frame = read("command.json").$defs[$ref.split("/").at(-1)];
    return frame.properties.command.const;
  });
  assert.ok(commands.length >= 14, `only ${commands}`);
  for (const command of commands) {
    if (STREAMED.includes(command)) continue;
    assert.ok(CALLS[command]?.frame, `the client has no call for the command ${command}`);
  }
  const frames = Object.keys(CALLS).filter((name) => CALLS[name].frame);
  assert.deepEqual(frames.filter((name) => !commands.includes(name)), [], "calls that are not commands");
});

test("every route has a call", () => {
  const { paths } = read("openapi.json");
  const plain = (path) => path.replace(/\{\w+\}/g, "{}");
  const called = new Set([...Object.values(CALLS).map(({ route }) => plain(route)), ...FOLLOWED]);
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).filter((method) => method !== "parameters").map((method) => `${method.toUpperCase()} ${path}`),
  );
  const own = routes.filter((route) => / \/v1\//.test(route));
  assert.ok(own.length >= 18, `only ${own}`);
  for (const route of own) assert.ok(route in LEFT_OUT || called.has(plain(route)), `the client has no call for ${route}`);
  const offered = new Set(routes.map(plain));
  const wrong = [...called].filter((route) => !offered.has(route));
  assert.deepEqual(wrong, [], "calls of routes that do not exist");
});
