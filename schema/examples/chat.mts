// A conversation with an agent over HTTP, typed by ../agentwire.d.ts:
//
//     npm install --save-dev typescript @types/node
//     npx tsc --module nodenext --outDir out chat.mts && node out/chat.mjs URL TOKEN PROMPT
//
// What the agent asks for is allowed, its questions get their first answer.
import type {
  Event,
  EventPage,
  Problem,
  RequestRaisedEvent,
  SessionRequest,
  SessionSummary,
  Settlement,
} from "../agentwire.js";

const [url, token, prompt] = process.argv.slice(2);
if (url === undefined || token === undefined || prompt === undefined) {
  throw new Error("give the server's address, a token and a prompt");
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });
  if (!answer.ok) {
    const problem = (await answer.json()) as Problem;
    throw new Error(`${problem.code}: ${problem.detail}`);
  }
  return (await answer.json()) as T;
}

/** All events of a session, to its end. Nothing is lost if the server is away for a minute: `after` is ours. */
async function* events(session: string): AsyncGenerator<Event> {
  for (let after = 0, failures = 0; ; ) {
    let page: EventPage;
    try {
      page = await call<EventPage>("GET", `/v1/sessions/${session}/events?after=${after}&wait=30`);
    } catch (error) {
      // No answer is a TypeError of fetch; what the server refuses, it refuses again.
      if (!(error instanceof TypeError) || ++failures > 60) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
      continue;
    }
    failures = 0;
    yield* page.events;
    after = page.next;
    if (page.ended && after === page.last) {
      return;
    }
  }
}

function answer(request: RequestRaisedEvent): Settlement {
  const questions = request.questions ?? [];
  if (request.kind !== "question") {
    return { behavior: "allow" };
  }
  const answers = questions.map((it) => [it.id ?? it.question, it.options?.[0]?.label ?? "yes"]);
  return { behavior: "allow", answers: Object.fromEntries(answers) };
}

const request: SessionRequest = { agentType: "demo", prompt, config: { approvalMode: "ask" } };
const session = await call<SessionSummary>("POST", "/v1/sessions", request);
for await (const event of events(session.id)) {
  switch (event.type) {
    case "textChunk":
      process.stdout.write(event.content + (event.isComplete ? "\n" : ""));
      break;
    case "toolStarted":
      console.log(`[${event.toolName}] ${JSON.stringify(event.arguments)}`);
      break;
    case "toolCompleted":
      console.log(`[${event.toolId}] ${event.success ? "done" : "failed"}`);
      break;
    case "requestRaised":
      await call("POST", `/v1/sessions/${session.id}/requests/${encodeURIComponent(event.requestId)}`, answer(event));
      break;
    case "turnCompleted":
      console.log(`turn ${event.turnNumber}: ${event.usage.outputTokens} tokens`);
      await call("POST", `/v1/sessions/${session.id}/stop`);
      break;
    case "turnFailed":
      console.error(`turn ${event.turnNumber} failed: ${event.error}`);
      await call("POST", `/v1/sessions/${session.id}/stop`);
      break;
    default:
      // Newer servers have types that this one does not know.
      break;
  }
}
