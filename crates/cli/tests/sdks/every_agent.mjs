// The official TypeScript SDK over every agent: `every_agent.mjs ROWS PATH_OF_CLI`.
//
// Each row of the matrix is a function. Its outcome is a line of JSON on stdout: `yes`, `no` with the words
// by which the client was refused, or `fails`. Rows that need the same options share a session.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { AbortError, createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [, , names, cli] = process.argv;
const WORDS = JSON.parse(process.env.AGENT_WORDS);
// Gemini cannot resume a session in the minute in which the session started.
const PATIENCE = 150_000;
// What agentwire says of what an agent cannot do.
const REFUSAL = /[^\n]*(?:is not supported with \w+|\w+ does not support |is not supported here)[^\n]*/;
const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SEPARATORS = "a\u2028b\u2029c";
const UNKNOWN = "00000000-0000-4000-8000-000000000000";

const errors = [];

/** The client was refused, in these words. */
class Refused extends Error {}

const say = (words) => WORDS.say.replace("$", () => words);
const shell = (command) => WORDS.shell.replace("$", () => command);
const script = (...steps) => steps.join("\n");

function directory() {
  const path = `${process.cwd()}/${randomUUID()}`;
  mkdirSync(path);
  return path;
}

const options = (more = {}) => ({
  pathToClaudeCodeExecutable: cli,
  cwd: directory(),
  model: WORDS.model,
  stderr: (line) => errors.push(line),
  ...more,
});

async function all(messages) {
  const list = [];
  for await (const message of messages) list.push(message);
  return list;
}

const one = (prompt, more) => all(query({ prompt, options: options(more) }));
const content = (messages, type) =>
  messages.filter((m) => m.type === type && Array.isArray(m.message.content)).flatMap((m) => m.message.content);
const text = (messages) =>
  content(messages, "assistant").filter((b) => b.type === "text").map((b) => b.text).join("").trim();
const results = (messages) => content(messages, "user").filter((b) => b.type === "tool_result");
const calls = (messages) => content(messages, "assistant").filter((b) => b.type === "tool_use");
const init = (messages) => messages.find((m) => m.type === "system" && m.subtype === "init");

function last(messages) {
  const result = messages.at(-1);
  assert.equal(result?.type, "result");
  return result;
}

/** The turn's result, which must be a good one. */
function good(messages) {
  const result = last(messages);
  if (result.is_error) throw new Refused([...(result.errors ?? []), result.result ?? ""].join(" "));
  return result;
}

/** A conversation that several rows share. */
function talk(kind, own = {}) {
  const work = directory();
  const talk = { work, asked: [], seen: [], called: [], decide: null };
  const more = { cwd: work, ...own };
  if (kind === "asking") {
    more.canUseTool = async (name, input, context) => {
      talk.asked.push([name, input, context.toolUseID]);
      return talk.decide ? talk.decide(name, input, context) : { behavior: "allow", updatedInput: input };
    };
  } else if (kind === "hooked") {
    more.allowedTools = ["Bash", "Read"];
    const hook = async (given) => {
      talk.seen.push(given);
      const isBlocked = given.tool_input?.command?.includes("blocked");
      if (given.hook_event_name !== "PreToolUse" || !isBlocked) return {};
      return {
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "deny",
          permissionDecisionReason: "policy X",
        },
      };
    };
    const events = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"];
    more.hooks = Object.fromEntries(events.map((event) => [event, [{ hooks: [hook] }]]));
  } else if (kind === "served") {
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async (given) => {
      talk.called.push(given);
      return { content: [{ type: "text", text: `sum ${given.a + given.b}` }] };
    });
    more.mcpServers = { calc: createSdkMcpServer({ name: "calc", tools: [add] }) };
    more.allowedTools = ["mcp__calc__add"];
    more.includePartialMessages = true;
  }
  let give;
  const queue = [];
  let closed = false;
  const prompts = async function* () {
    while (true) {
      while (queue.length) yield queue.shift();
      if (closed) return;
      await new Promise((resolve) => (give = resolve));
    }
  };
  const session = query({ prompt: prompts(), options: options(more) });
  talk.session = session;
  talk.say = (content) => {
    const message = { role: "user", content };
    queue.push({ type: "user", message, parent_tool_use_id: null, session_id: "" });
    give?.();
  };
  talk.hear = async (each = () => {}) => {
    const messages = [];
    while (true) {
      const { value, done } = await session.next();
      if (done) return messages;
      messages.push(value);
      await each(value);
      if (value.type === "result") return messages;
    }
  };
  talk.turn = async (content, each) => {
    talk.asked.length = 0;
    talk.seen.length = 0;
    talk.say(content);
    return talk.hear(each);
  };
  talk.close = async () => {
    closed = true;
    give?.();
    await limited(all(session)).catch(() => session.close());
  };
  talk.has = (name) => existsSync(`${work}/${name}`);
  talk.events = () => talk.seen.map((given) => given.hook_event_name);
  return talk;
}

async function limited(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: "nothing came in time" })), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const asking = {
  async "models in `initialize`"({ session }) {
    const models = await session.supportedModels();
    assert.ok(models.length && models.every((m) => m.value && m.displayName), JSON.stringify(models));
    assert.ok(Array.isArray(await session.supportedCommands()));
    assert.ok(await session.accountInfo());
  },

  async conversation({ turn }) {
    for (const words of ["first", "second"]) {
      const messages = await turn(say(words));
      assert.equal(good(messages).session_id, init(messages).session_id);
      assert.equal(text(messages), words);
    }
  },

  async "`canUseTool`: allow"(talk) {
    const messages = await talk.turn(script(shell("touch allowed.txt"), say("done")));
    good(messages);
    const [[name, , id]] = talk.asked;
    assert.deepEqual([name, id], ["Bash", calls(messages)[0].id]);
    assert.ok(!results(messages)[0].is_error && talk.has("allowed.txt"));
  },

  async "`canUseTool`: deny"(talk) {
    talk.decide = async () => ({ behavior: "deny", message: "not that one" });
    const messages = await talk.turn(script(shell("touch denied.txt"), say("done")));
    assert.ok(results(messages)[0].is_error && !talk.has("denied.txt"));
    assert.equal(last(messages).permission_denials.length, 1);
  },

  async "`canUseTool`: it throws"(talk) {
    talk.decide = async () => {
      throw new Error("boom");
    };
    const messages = await talk.turn(script(shell("touch thrown.txt"), say("done")));
    assert.ok(results(messages)[0].is_error && !talk.has("thrown.txt"));
  },

  async "`canUseTool`: changed input"(talk) {
    talk.decide = async () => ({ behavior: "allow", updatedInput: { command: "touch changed.txt" } });
    const messages = await talk.turn(script(shell("touch original.txt"), say("done")));
    assert.ok(!talk.has("original.txt"));
    const [result] = results(messages);
    if (result.is_error) throw new Refused([result.content].flat().map((c) => c.text ?? c).join("\n"));
    assert.ok(talk.has("changed.txt"));
  },

  async "`canUseTool`: suggestions given back"(talk) {
    talk.decide = async (name, input, { suggestions }) => {
      assert.ok(suggestions.length);
      return { behavior: "allow", updatedInput: input, updatedPermissions: suggestions };
    };
    const asked = [];
    for (let time = 0; time < 2; time++) {
      good(await talk.turn(script(shell("touch kept.txt"), say("done"))));
      asked.push(talk.asked.length);
    }
    assert.deepEqual(asked, [1, 0]);
  },

  async interrupt({ session, turn }) {
    let isInterrupted = false;
    const stop = async () => {
      if (isInterrupted) return;
      isInterrupted = true;
      await session.interrupt();
    };
    // Some agents say their text only when the model has said it all.
    const timer = setTimeout(stop, 3000);
    const messages = await turn(script(say("before"), WORDS.hang), (m) => m.type === "assistant" && stop());
    clearTimeout(timer);
    assert.equal(last(messages).subtype, "error_during_execution");
    assert.equal(text(await turn(say("after"))), "after");
  },

  async "queued prompts"({ say: put, hear }) {
    put(say("one"));
    put(say("two"));
    assert.deepEqual([text(await hear()), text(await hear())], ["one", "two"]);
  },

  async "`setModel`"({ session, turn }) {
    const before = text(await turn(WORDS.sayModel));
    await session.setModel(WORDS.otherModel);
    const after = text(await turn(WORDS.sayModel));
    assert.ok(after && after !== before, `${before} ${after}`);
    await session.setModel(WORDS.model);
  },

  async "`setPermissionMode`"({ session, turn }) {
    await session.setPermissionMode("acceptEdits");
    const messages = await turn(say("on"));
    assert.equal(init(messages).permissionMode, "acceptEdits");
    const told = messages.filter((m) => m.type === "system" && m.subtype === "status");
    assert.ok(told.some((m) => m.permissionMode === "acceptEdits"), JSON.stringify(told));
    await session.setPermissionMode("default");
  },

  async image({ turn }) {
    const source = { type: "base64", media_type: "image/png", data: IMAGE };
    const messages = await turn([{ type: "text", text: say("seen") }, { type: "image", source }]);
    good(messages);
    assert.equal(text(messages), "seen");
  },

  async "U+2028 and U+2029"({ turn }) {
    assert.equal(text(await turn(say(SEPARATORS))), SEPARATORS);
  },

  async "refused control request"({ session, turn }) {
    await assert.rejects(session.toggleMcpServer("none", true));
    await assert.rejects(session.reconnectMcpServer("none"));
    assert.equal(text(await turn(say("on"))), "on");
  },

  async "API error"({ turn }) {
    const result = last(await turn(WORDS.fail.replace("$", "out of luck")));
    assert.ok(result.is_error && JSON.stringify([result.errors, result.result]).includes("out of luck"));
    assert.equal(text(await turn(say("after"))), "after");
  },
};

const hooked = {
  async "`PreToolUse` denies"(talk) {
    const messages = await talk.turn(script(shell("touch blocked.txt"), say("done")));
    assert.ok(talk.events().includes("PreToolUse") && !talk.has("blocked.txt"));
    assert.ok(results(messages)[0].is_error);
  },

  async "`PostToolUse`"(talk) {
    good(await talk.turn(script(shell("echo fine"), say("done"))));
    const after = talk.seen.filter((given) => given.hook_event_name === "PostToolUse");
    assert.equal(after.length, 1, talk.events().join());
    assert.equal(after[0].tool_name, "Bash");
    assert.match(JSON.stringify(after[0].tool_response), /fine/);
  },

  async "`PostToolUseFailure`"(talk) {
    await talk.turn(script(WORDS.failing, say("done")));
    assert.ok(talk.events().includes("PostToolUseFailure"), talk.events().join());
  },

  async "`UserPromptSubmit`, `Stop`"(talk) {
    await talk.turn(say("hello"));
    assert.deepEqual(talk.events(), ["UserPromptSubmit", "Stop"]);
  },
};

const served = {
  async "tools of in-process MCP servers in `init`"({ session, turn }) {
    const { tools } = init(await turn(say("hello")));
    assert.ok(tools.includes("mcp__calc__add"), tools.join());
    assert.deepEqual((await session.mcpServerStatus()).map((server) => server.name), ["calc"]);
  },

  async "in-process MCP tool called"(talk) {
    const messages = await talk.turn(script(WORDS.add, WORDS.result));
    assert.equal(talk.called.length, 1);
    assert.match(text(messages), /sum 3/);
    assert.deepEqual(calls(messages).map((call) => call.name), ["mcp__calc__add"]);
  },

  async "partial messages"({ turn }) {
    const messages = await turn(say("one two three"));
    const events = messages.filter((m) => m.type === "stream_event").map((m) => m.event);
    const pieces = events.filter((e) => e.type === "content_block_delta").map((e) => e.delta.text ?? "");
    assert.deepEqual([pieces.join("").trim(), text(messages)], ["one two three", "one two three"]);
  },
};

const alone = {
  async "`query()`"() {
    const messages = await one(say("hello there"));
    const result = good(messages);
    assert.equal(text(messages), "hello there");
    assert.equal(result.session_id, init(messages).session_id);
    assert.ok(messages.every((m) => m.type !== "assistant" || m.parent_tool_use_id === null));
  },

  async "nobody to ask"() {
    const cwd = directory();
    const messages = await one(script(shell("touch never.txt"), say("done")), { cwd });
    assert.deepEqual(readdirSync(cwd), []);
    assert.ok(results(messages)[0].is_error && last(messages).permission_denials.length);
  },

  async "`allowedTools`"() {
    const cwd = directory();
    good(await one(script(shell("touch a.txt"), say("done")), { cwd, allowedTools: ["Bash"] }));
    assert.deepEqual(readdirSync(cwd), ["a.txt"]);
  },

  async "`maxTurns`"() {
    const cwd = directory();
    const prompt = script(shell("touch one.txt"), shell("touch two.txt"), say("done"));
    const session = query({ prompt, options: options({ cwd, maxTurns: 1, allowedTools: ["Bash"] }) });
    let result;
    const error = await (async () => {
      for await (const message of session) if (message.type === "result") result = message;
    })().then(() => null, (error) => error);
    if (result?.subtype !== "error_max_turns") throw error ?? new assert.AssertionError({ message: "no limit" });
    assert.ok(!readdirSync(cwd).includes("two.txt"), readdirSync(cwd).join(" "));
  },

  async "`abortController`"() {
    const abortController = new AbortController();
    setTimeout(() => abortController.abort(), 3000);
    const prompt = script(say("running"), WORDS.hang);
    await assert.rejects(all(query({ prompt, options: options({ abortController }) })), AbortError);
    errors.length = 0;
  },

  async "`resume`"() {
    const cwd = directory();
    const first = good(await one(say("one"), { cwd }));
    const again = await one(say("two"), { cwd, resume: first.session_id });
    assert.deepEqual([good(again).session_id, text(again)], [first.session_id, "two"]);
  },

  async "`forkSession`"() {
    const cwd = directory();
    const first = good(await one(say("one"), { cwd }));
    const more = { cwd, resume: first.session_id, forkSession: true };
    const forked = await one(say("two"), more);
    assert.notEqual(good(forked).session_id, first.session_id);
  },

  async "`resume` of what is not there"() {
    const error = await one(say("never"), { resume: UNKNOWN }).then(() => null, (error) => error);
    assert.ok(error?.message.includes(`No conversation found with session ID: ${UNKNOWN}`), `${error}`);
    errors.length = 0;
  },

  async "structured output"() {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    };
    const result = good(await one(WORDS.structured, { outputFormat: { type: "json_schema", schema } }));
    assert.deepEqual(result.structured_output, { n: 7 });
  },

  async "`systemPrompt`"() {
    const messages = await one(WORDS.saySystem, { systemPrompt: "be brief, said the client" });
    good(messages);
    assert.ok(text(messages).includes("be brief, said the client"), text(messages).slice(-2000));
  },
};

const ROWS = {};
for (const [session, rows] of Object.entries({ asking, hooked, served, alone }))
  for (const [name, play] of Object.entries(rows))
    ROWS[name] = { session: session === "alone" ? null : session, play };

/** Plays a row: its outcome, and why. */
async function play(name, talk) {
  try {
    await limited(ROWS[name].play(talk));
    return errors.length ? ["fails", `stderr: ${errors}`] : ["yes", null];
  } catch (error) {
    const said = [error.message, ...errors].join("\n");
    const found = error instanceof assert.AssertionError ? null : REFUSAL.exec(said);
    return found ? ["no", found[0].trim()] : ["fails", `${error.stack}\n${said}`];
  }
}

let open = null;
let kind = null;
for (const name of JSON.parse(names)) {
  errors.length = 0;
  const { session } = ROWS[name];
  if (open && session !== kind) {
    await open.close();
    open = null;
  }
  if (session && !open) [open, kind] = [talk(session), session];
  if (open) open.decide = null;
  const [outcome, why] = await play(name, open);
  if (open && outcome !== "yes") {
    await open.close();
    open = null;
  }
  console.log(JSON.stringify({ row: name, outcome, why }));
}
await open?.close();
process.exit(0);
