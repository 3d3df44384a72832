// What a client must be able to do, whatever it runs in. Throws if it cannot.

function equal(found, expected, what) {
  const [one, other] = [found, expected].map((value) => JSON.stringify(value));
  if (one !== other) throw new Error(`${what}: found ${one}, expected ${other}`);
}

const QUESTION = "Which one?";

export async function converse({ AgentwireError, Watched }, client, config) {
  // Silence denies.
  const silent = await client.run("demo", "/bash echo never\n/say after", { config });
  equal([silent.text.includes("after"), silent.turn.type, silent.usage.totalTokens > 0], [true, "turnCompleted", true], "run");

  const kinds = [];
  const onRequest = async (request) => {
    kinds.push(request.kind);
    if (request.kind === "question") return void (await request.answer(["blue"]));
    return { behavior: "allow", updatedInput: { command: "echo changed" } };
  };
  const answered = await client.run("demo", `/bash echo original\n/say {result}\n/ask ${QUESTION} | red | blue`, { config, onRequest, keepOpen: true });
  equal(kinds, ["permission", "question"], "requests");
  if (!answered.text.includes("changed") || !answered.text.includes("blue")) throw new Error(answered.text);
  const { session } = answered;
  equal(session.state, "idle", "state");

  await session.label({ title: "The answer", tags: ["one", "two"] });
  await client.sessions.update(session.id, { pinned: true });
  const { title, tags, pinned } = await session.refresh();
  equal([title, tags, pinned], ["The answer", ["one", "two"], true], "labels");

  let text = "";
  for await (const part of session.text("/say turn {turns}")) text += part;
  equal(text.trim(), "turn 2", "text");

  // The first answer counts. The inbox shows what waits.
  const turn = session.turn("/bash true");
  for await (const event of turn) {
    if (event.type !== "requestRaised") continue;
    let open;
    for await (const request of client.requests()) {
      if (request.sessionId !== session.id) continue;
      open = request;
      break;
    }
    equal(await open.deny("no"), true, "the first answer");
    equal(await session.request(event).allow(), false, "the second answer");
  }
  equal((await session.requests()).length, 0, "open requests");

  // An interrupt ends the turn, not the session.
  const seen = [];
  for await (const event of session.turn("/hang")) {
    if (event.type === "turnStarted") await session.interrupt();
    if (event.type === "turnFailed") seen.push(event.reason);
  }
  equal(seen, ["interrupted"], "interrupt");
  const aborted = await session.refresh({ signal: AbortSignal.abort(new RangeError("enough")) }).catch((error) => error);
  if (!(aborted instanceof RangeError)) throw aborted;

  const watched = new Watched();
  for await (const update of client.watch()) {
    watched.apply(update);
    if (watched.sessions.has(session.id)) break;
  }
  await session.stop();
  await session.stop();
  const numbers = [];
  for await (const { seq } of session.events()) numbers.push(seq);
  equal(numbers, numbers.map((_, at) => at + 1), "events");
  const refused = await session.prompt("/say late").catch((error) => error);
  if (!(refused instanceof AgentwireError) || refused.code !== "conflict") throw refused;

  const resumed = await client.sessions.resume(session.id, "/say again");
  for await (const { type } of resumed.turn()) if (type === "turnCompleted") text = type;
  equal(text, "turnCompleted", "resume");
  const forked = await client.sessions.fork(session.id, "/say apart");
  equal((await client.sessions.get(forked.id)).id !== session.id, true, "fork");
  await forked.stop();
  await resumed.finish();
  const ids = (await client.sessions.list({ limit: 500 })).map(({ id }) => id);
  equal([ids.includes(session.id), ids.includes(forked.id)], [true, true], "list");
}
