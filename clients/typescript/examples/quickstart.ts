// Runs a prompt and prints the answer, then continues the conversation.
//
//   node quickstart.js codex "Fix the failing test"
import { connect, type AgentType } from "@agentwire/client/node";

const [agent = "demo", prompt = "/say I am the demo agent.\n/write hello.txt Hello"] = process.argv.slice(2);
const client = await connect();

// Requests that nobody allows are denied.
const answer = await client.run(agent as AgentType, prompt, {
  config: { workingDirectory: process.cwd() },
  onRequest: (request) => (request.toolName === "Write" ? "allow" : "deny"),
});
console.log(answer.text);
console.log(`-- ${answer.usage.totalTokens} tokens`);

// A session that has ended can be resumed later, from any client.
const session = await client.sessions.resume(answer.session.id, agent === "demo" ? "/say This is turn {turns}." : "Sum up in one sentence.");
for await (const text of session.text()) process.stdout.write(text);
console.log();
await session.stop();
await client.close();
