// Finds the server of this machine, and trusts no file of others.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect, findServer } from "../dist/node.js";

const root = mkdtempSync(join(tmpdir(), "agentwire-"));
after(() => rmSync(root, { recursive: true }));
const place = (name) => join(root, name);
const write = (name, value, mode = 0o600) => {
  writeFileSync(place(name), typeof value === "string" ? value : JSON.stringify(value));
  chmodSync(place(name), mode);
};

test("a server that has exited is not found, and nobody gets its token", () => {
  assert.throws(() => findServer(root), { code: "connectionFailed", retryable: true, message: /agentwire serve/ });
  write("token", "secret");
  // Nobody holds the lock of this file. On other systems only the process id counts.
  write("server.json", { pid: 2 ** 22 + 1, http: "http://127.0.0.1:1", tokenFile: place("token") });
  assert.throws(() => findServer(root), { message: /has exited/, retryable: true });
  write("server.json", "{");
  assert.throws(() => findServer(root), { retryable: false, message: /server\.json/ });
});

test("files that others can write are refused", () => {
  write("server.json", { pid: process.pid, http: "http://127.0.0.1:1" }, 0o666);
  assert.throws(() => findServer(root), { message: /writable by others/, retryable: false });
  renameSync(place("server.json"), place("moved.json"));
  symlinkSync(place("moved.json"), place("server.json"));
  assert.throws(() => findServer(root), { message: /is a link/ });
  rmSync(place("server.json"));
  chmodSync(root, 0o777);
  assert.throws(() => findServer(root), { message: /writable by others/ });
  chmodSync(root, 0o700);
});

test("without a server and without a child, there is an error", async () => {
  await assert.rejects(connect({ dataDir: place("nothing"), child: false }), { code: "connectionFailed", message: /no server is running/ });
});

test("a program that cannot be started is an error", async () => {
  const client = await connect({ dataDir: place("nothing"), child: { program: place("no-program") } });
  await assert.rejects(client.sessions.list(), { code: "connectionFailed", message: /ENOENT/ });
  await client.close();
});
