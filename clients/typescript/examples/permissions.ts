// Decides what an agent may do: allow, allow with another input, deny, or answer a question.
import { connect, type Decision, type Request } from "@agentwire/client/node";

const PROMPT = `/write notes.txt draft
/bash rm -rf build
/bash echo from the agent
/ask Which colour? | red | green`;

async function decide(request: Request, signal: AbortSignal): Promise<Decision> {
  if (request.questions.length > 0) {
    console.log(`asked: ${request.questions.map(({ question }) => question).join(", ")}`);
    const isFirst = await request.answer(request.questions.map(() => "green"), { signal });
    if (!isFirst) console.log("somebody else was faster");
    return undefined;
  }
  const { command = "" } = (request.input ?? {}) as { command?: string };
  if (request.toolName === "Write") {
    console.log(`allowed: ${request.toolName}`);
    return "allow";
  }
  if (request.toolName === "Bash" && command.startsWith("echo ")) {
    console.log(`allowed with another input: ${command}`);
    return { behavior: "allow", updatedInput: { command: "echo from the client" } };
  }
  console.log(`denied: ${request.toolName} ${command}`);
  return { behavior: "deny", message: "only harmless commands may run" };
}

const client = await connect();
const session = await client.sessions.create({
  agentType: "demo",
  prompt: PROMPT,
  config: { workingDirectory: process.cwd(), approvalMode: "ask" },
});
// The signal aborts if another client answers first.
for await (const event of session.turn(undefined, { onRequest: (request, { signal }) => decide(request, signal) })) {
  switch (event.type) {
    case "toolCompleted":
      console.log(`done: ${event.toolId}`);
      break;
    case "requestSettled":
      console.log(`${event.outcome} by ${event.by}`);
      break;
    default:
      // Newer servers have types that this program does not know.
      break;
  }
}
await session.stop();
await client.close();
