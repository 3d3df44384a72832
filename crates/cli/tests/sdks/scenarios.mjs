// The official TypeScript SDK drives `agentwire claude`: `scenarios.mjs NAME PATH_OF_CLI`.

import assert from "node:assert/strict";
import { AbortError, createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [, , scenario, cli] = process.argv;
const SEPARATORS = "a\u2028b\u2029c";
// One transparent point.
const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function options(more = {}) {
  return {
    pathToClaudeCodeExecutable: cli,
    stderr: (line) => assert.fail(`stderr: ${line}`),
    ...more,
  };
}

async function all(messages) {
  const list = [];
  for await (const message of messages) list.push(message);
  return list;
}

const one = (prompt, more) => all(query({ prompt, options: options(more) }));
const content = (messages, type) =>
  messages.filter((m) => m.type === type).flatMap((m) => m.message.content);
const text = (messages) =>
  content(messages, "assistant").filter((b) => b.type === "text").map((b) => b.text).join("");
const results = (messages) =>
  content(messages, "user").filter((b) => b.type === "tool_result");
const calls = (messages) =>
  content(messages, "assistant").filter((b) => b.type === "tool_use");

function last(messages) {
  const result = messages.at(-1);
  assert.equal(result.type, "result");
  return result;
}

/** A conversation: prompts are given when the last turn is over. */
function talk(more) {
  let give;
  const queue = [];
  let closed = false;
  async function* prompts() {
    while (true) {
      while (queue.length) yield queue.shift();
      if (closed) return;
      await new Promise((resolve) => (give = resolve));
    }
  }
  const session = query({ prompt: prompts(), options: options(more) });
  const say = (content) => {
    queue.push({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "" });
    give?.();
  };
  const turn = async (content, each = () => {}) => {
    say(content);
    const messages = [];
    while (true) {
      const { value, done } = await session.next();
      if (done) return messages;
      messages.push(value);
      await each(value);
      if (value.type === "result") return messages;
    }
  };
  const close = async () => {
    closed = true;
    give?.();
    await all(session);
  };
  return { session, say, turn, close };
}

const scenarios = {
  async simple() {
    const messages = await one("/think Hm.\n/say hello there");
    const init = messages.find((m) => m.type === "system" && m.subtype === "init");
    assert.ok(init.cwd && Array.isArray(init.tools));
    assert.equal(text(messages), "hello there");
    const result = last(messages);
    assert.equal(result.subtype, "success");
    assert.equal(result.session_id, init.session_id);
    assert.ok(messages.every((m) => m.type !== "assistant" || m.parent_tool_use_id === null));
  },

  async client() {
    const { session, turn, close } = talk();
    assert.equal(text(await turn("/say first")), "first");
    assert.equal(text(await turn("/say turn {turns}")), "turn 2");
    assert.ok(Array.isArray(await session.supportedCommands()));
    assert.ok(Array.isArray(await session.supportedModels()));
    await session.accountInfo();
    await close();
  },

  async permissions() {
    const asked = [];
    const canUseTool = async (name, input) => {
      asked.push(name);
      if (input.command === "echo no") return { behavior: "deny", message: "not that one" };
      if (input.command === "echo change")
        return { behavior: "allow", updatedInput: { command: "echo changed" } };
      return { behavior: "allow" };
    };
    const { turn, close } = talk({ canUseTool });
    for (const [command, isError, said] of [
      ["echo yes", false, "yes"],
      ["echo no", true, "not that one"],
      ["echo change", false, "changed"],
    ]) {
      const messages = await turn(`/bash ${command}`);
      const [result] = results(messages);
      assert.equal(Boolean(result.is_error), isError, command);
      assert.match(JSON.stringify(result.content), new RegExp(said));
      assert.equal(last(messages).permission_denials.length, Number(isError));
    }
    assert.deepEqual(asked, ["Bash", "Bash", "Bash"]);
    await close();
  },

  async hooks() {
    const seen = [];
    const note = async (input) => {
      seen.push(input.hook_event_name);
      if (input.tool_input?.command !== "echo blocked" || input.hook_event_name !== "PreToolUse") return {};
      return {
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "deny",
          permissionDecisionReason: "policy X",
        },
      };
    };
    const hooks = Object.fromEntries(
      ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"].map((event) => [event, [{ hooks: [note] }]]),
    );
    const { turn, close } = talk({ hooks, allowedTools: ["Bash"] });
    const [first, second] = results(await turn("/bash echo fine\n/bash echo blocked"));
    assert.ok(!first.is_error && second.is_error);
    assert.match(JSON.stringify(second.content), /policy X/);
    assert.deepEqual(seen, ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "Stop"]);
    await close();
  },

  async mcp() {
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum ${a + b}` }],
    }));
    const calc = createSdkMcpServer({ name: "calc", tools: [add] });
    const { session, turn, close } = talk({ mcpServers: { calc }, allowedTools: ["mcp__calc__add"] });
    const messages = await turn('/tool mcp__calc__add {"a":1,"b":2}\n/say {result}');
    assert.match(text(messages), /sum 3/);
    const [server] = await session.mcpServerStatus();
    assert.equal(server.name, "calc");
    await close();
  },

  async interrupt() {
    const { session, turn, close } = talk();
    const messages = await turn("/say before\n/hang", async (message) => {
      if (message.type === "assistant") await session.interrupt();
    });
    assert.equal(last(messages).subtype, "error_during_execution");
    assert.ok(last(messages).errors);
    assert.equal(text(await turn("/say after")), "after");
    await close();
  },

  async models() {
    const { session, turn, close } = talk({ model: "first-model" });
    assert.equal(text(await turn("/say {model}")), "first-model");
    await session.setModel("second-model");
    assert.equal(text(await turn("/say {model}")), "second-model");
    await session.setPermissionMode("plan");
    assert.equal(text(await turn("/say {mode}")), "plan");
    await close();
  },

  async partial() {
    const messages = await one("/say one two three", { includePartialMessages: true });
    const events = messages.filter((m) => m.type === "stream_event").map((m) => m.event);
    const pieces = events.filter((e) => e.type === "content_block_delta").map((e) => e.delta.text);
    assert.ok(pieces.length > 1);
    assert.equal(pieces.join(""), "one two three");
    const block = messages.findIndex((m) => m.type === "assistant");
    const stop = messages.findIndex((m) => m.type === "stream_event" && m.event.type === "content_block_stop");
    assert.ok(block < stop, "the whole block comes before its end");
  },

  async errors() {
    await assert.rejects(one("/fail out of luck"), /out of luck/);
    const { turn, close } = talk({ maxTurns: 1 });
    const result = last(await turn("/bash echo one\n/bash echo two"));
    assert.equal(result.subtype, "error_max_turns");
    await close().catch(() => {});
    await assert.rejects(one("/usage 9000000 9 9 9\n/bash echo", { maxBudgetUsd: 0.01 }), /maximum budget/);
  },

  async large() {
    assert.equal(text(await one("/pad 2000000")).length, 2_000_000);
    assert.equal(text(await one("x".repeat(2_000_000) + "\n/say read")), "read");
  },

  async separators() {
    assert.equal(text(await one(`/say ${SEPARATORS}`)), SEPARATORS);
  },

  async resume() {
    const first = last(await one("/say one"));
    const again = await one("/say turn {turns}", { resume: first.session_id });
    assert.equal(text(again), "turn 2");
    assert.equal(last(again).session_id, first.session_id);
    const forked = await one("/say turn {turns}", { resume: first.session_id, forkSession: true });
    assert.notEqual(last(forked).session_id, first.session_id);
    const chosen = "11111111-2222-4333-8444-555555555555";
    assert.equal(last(await one("/say x", { sessionId: chosen })).session_id, chosen);
  },

  async structured() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const messages = await one('/tool StructuredOutput {"n":7}', {
      outputFormat: { type: "json_schema", schema },
    });
    assert.deepEqual(last(messages).structured_output, { n: 7 });
  },

  async commands_first() {
    const { session, turn, close } = talk();
    const commands = await session.supportedCommands();
    assert.ok(commands.every((command) => command.name && typeof command.description === "string"));
    const names = commands.map((command) => command.name);
    assert.ok(names.includes("say"), names.join());
    assert.equal(text(await turn("/say now")), "now");
    await close();
  },

  async suggestions() {
    const asked = [];
    const canUseTool = async (name, input, { suggestions, toolUseID }) => {
      asked.push(input.command);
      assert.ok(suggestions.length && toolUseID);
      return { behavior: "allow", updatedPermissions: suggestions };
    };
    const { turn, close } = talk({ canUseTool });
    for (let time = 0; time < 2; time++) {
      const [result] = results(await turn("/bash touch one"));
      assert.ok(!result.is_error);
    }
    assert.deepEqual(asked, ["touch one"]);
    await close();
  },

  async queued() {
    const { session, say, close } = talk();
    say("/say one\n/sleep 300");
    say("/say two {turns}");
    const turns = [[]];
    for await (const message of session) {
      turns.at(-1).push(message);
      if (message.type !== "result") continue;
      if (turns.length === 2) break;
      turns.push([]);
    }
    assert.deepEqual(turns.map(text), ["one", "two 2"]);
    await close();
  },

  /** What is aborted in its turn leaves nothing behind. */
  async abort() {
    const abortController = new AbortController();
    const messages = query({ prompt: "/say running\n/hang", options: options({ abortController }) });
    await assert.rejects(async () => {
      for await (const message of messages) if (message.type === "assistant") abortController.abort();
    }, AbortError);
  },

  /** An agent that dies in its turn is an error, not silence. */
  async agent_dies() {
    await assert.rejects(one("/say before\n/exit 3"), /returned an error result/);
  },

  /** What a subagent does is told with the call that began it; what it says only if wanted. */
  async subagent() {
    const prompt = "/task look\n/say inside\n/read gone.txt\n/end\n/say outside";
    for (const forwardSubagentText of [false, true]) {
      const messages = await one(prompt, { forwardSubagentText });
      const task = calls(messages).find((call) => call.name === "Task");
      const inner = messages.filter((m) => m.type === "assistant" && m.parent_tool_use_id !== null);
      assert.ok(inner.every((m) => m.parent_tool_use_id === task.id));
      assert.deepEqual(calls(inner).map((call) => call.name), ["Read"]);
      assert.equal(text(inner), forwardSubagentText ? "inside" : "");
      assert.equal(text(messages.filter((m) => !inner.includes(m))), "outside");
    }
  },

  async todo() {
    const messages = await one("/plan first | second");
    const [call] = calls(messages);
    assert.deepEqual(call.input.todos.map((item) => item.content), ["first", "second"]);
    assert.equal(results(messages)[0].tool_use_id, call.id);
  },

  async image() {
    const { turn, close } = talk();
    const source = { type: "base64", media_type: "image/png", data: IMAGE };
    const messages = await turn([{ type: "text", text: "/say seen" }, { type: "image", source }]);
    assert.equal(text(messages), "seen");
    await close();
  },

  async system_prompt() {
    assert.equal(text(await one("/say {system}", { systemPrompt: "be brief" })), "be brief");
  },

  async codex_text() {
    const messages = await one("Say hello.", { includePartialMessages: true });
    assert.equal(text(messages), "Hello from the fake model.");
    const events = messages.filter((m) => m.type === "stream_event").map((m) => m.event);
    assert.equal(events.map((e) => e.delta?.text ?? "").join(""), text(messages));
    assert.equal(last(messages).result, text(messages));
  },

  async codex_allow() {
    const asked = [];
    const canUseTool = async (name, input, { toolUseID }) => {
      asked.push(toolUseID);
      return { behavior: "allow" };
    };
    const { turn, close } = talk({ canUseTool });
    const messages = await turn("Escalate.");
    const [call] = calls(messages);
    const [result] = results(messages);
    assert.deepEqual(asked, [call.id]);
    assert.equal(result.tool_use_id, call.id);
    assert.match(JSON.stringify(result.content), /data/);
    assert.equal(text(messages), "Escalated command handled.");
    await close();
  },

  async acp_allow() {
    const canUseTool = async () => ({ behavior: "allow" });
    const { turn, close } = talk({ canUseTool });
    const messages = await turn("Run it.");
    assert.equal(results(messages)[0].tool_use_id, calls(messages)[0].id);
    assert.match(text(messages), /The command ran\.$/);
    assert.equal(last(messages).subtype, "success");
    await close();
  },
};

await scenarios[scenario]();
console.log("ok", scenario);
