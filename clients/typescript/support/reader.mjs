// A client in a scenario of ../../scenarios.json. Its task comes as JSON; it reports lines of JSON on stdout, and
// continues after a pause when a line arrives on stdin.
import { createInterface } from "node:readline";

const [module, text] = process.argv.slice(2);
const task = JSON.parse(text);
const { Client, GapError, HttpTransport } = await import(module);
const report = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const { url, token, way, plan } = task;
const transport = new HttpTransport({ url, token }, { streaming: way });
const client = new Client(transport);
try {
  await client.status();
  const request = { agentType: "demo", prompt: plan.creates, config: { workingDirectory: task.directory } };
  const session = task.session ? await client.sessions.attach(task.session) : await client.sessions.create(request);
  report({ session: session.id });
  const prompts = [...plan.prompts];
  const events = session.events({ after: plan.after, profile: plan.profile ?? "full" });
  for (let isOver = false; !isOver; ) {
    try {
      for await (const { seq, type } of events) {
        report({ seq, type });
        if (seq === plan.pauseAt) await lines.next();
        if (type !== "turnCompleted" || task.session) continue;
        const prompt = prompts.shift();
        await (prompt === undefined ? session.stop() : session.prompt(prompt));
      }
      isOver = true;
    } catch (error) {
      if (!(error instanceof GapError)) throw error;
      report({ gap: [error.from, error.to] });
    }
  }
  report({ streaming: transport.streaming });
  report({ end: true });
} catch (error) {
  report({ error: String(error?.stack ?? error) });
}
process.exit();
