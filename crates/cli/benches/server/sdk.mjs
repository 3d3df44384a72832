// The official TypeScript SDK reads the benchmark's agent: `sdk.mjs PROGRAM`. Orders are lines on stdin; the
// answer to each is a line of JSON on stdout.

import { createInterface } from "node:readline";
import { query } from "@anthropic-ai/claude-agent-sdk";

const LINES_PER_TURN = 24;

let give;
const prompts = [];
async function* input() {
  while (true) {
    while (prompts.length) yield prompts.shift();
    await new Promise((resolve) => (give = resolve));
  }
}

const session = query({
  prompt: input(),
  options: { pathToClaudeCodeExecutable: process.argv[2], includePartialMessages: true },
});

async function obey(order) {
  const lines = Number(order.split(" ")[1]) * LINES_PER_TURN;
  const ages = [];
  let faults = 0;
  let next = 0;
  const [begun, before] = [process.hrtime.bigint(), process.cpuUsage()];
  prompts.push({
    type: "user",
    message: { role: "user", content: order },
    parent_tool_use_id: null,
    session_id: "",
  });
  give?.();
  while (next < lines) {
    const { value, done } = await session.next();
    if (done) break;
    if (value.mark === undefined) continue;
    const [number, written] = value.mark.split(" ");
    // The agent and this process read the same clock.
    ages.push(Number(process.hrtime.bigint() - BigInt(written)) / 1000);
    if (Number(number) !== next) faults += 1;
    next = Number(number) + 1;
  }
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
  const used = process.cpuUsage(before);
  return { seconds, faults: faults + lines - next, cpu: used.user + used.system, ages };
}

for await (const order of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await obey(order)));
}
process.exit(0);
