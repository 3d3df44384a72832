// What is known of a session: its last summary, and the events read since.
import type { Event, SessionSummary, TokenUsage } from "./types.js";

const WAITING = { permission: "waitingPermission", question: "waitingQuestion" } as const;

export class Snapshot {
  #summary: SessionSummary;
  readonly #open = new Map<string, "permission" | "question">();

  constructor(summary: SessionSummary) {
    this.#summary = summary;
  }

  get summary(): SessionSummary {
    return this.#summary;
  }

  /** A reply may be older than what was read meanwhile. */
  replace(summary: SessionSummary): void {
    if (summary.lastSeq >= this.#summary.lastSeq) this.#summary = summary;
    if (summary.openRequests === 0) this.#open.clear();
  }

  /** The log starts over at this event. */
  forget(from: number): void {
    this.#summary = { ...this.#summary, lastSeq: Math.min(this.#summary.lastSeq, from - 1) };
  }

  apply(event: Event): void {
    if (event.seq <= this.#summary.lastSeq) return;
    const next = { ...this.#summary, lastSeq: event.seq, updatedAt: event.timestamp };
    switch (event.type) {
      case "sessionStarted":
        next.state = "starting";
        break;
      case "turnStarted":
        next.turns = Math.max(next.turns, event.turnNumber);
        next.state = "working";
        break;
      case "turnCompleted":
      case "turnFailed":
        next.lastTurn = event.type === "turnCompleted" ? "completed" : event.reason === "interrupted" ? "interrupted" : "failed";
        if (event.usage) next.usage = sum(next.usage, event.usage);
        if (event.costUsd !== undefined) next.costUsd = (next.costUsd ?? 0) + event.costUsd;
        next.state = "idle";
        break;
      case "statusChanged":
        if (event.status === "ready" && next.state === "starting") next.state = "idle";
        break;
      case "sessionEnded":
        next.state = "ended";
        next.reason = event.reason;
        next.openRequests = 0;
        this.#open.clear();
        break;
      case "requestRaised":
        next.openRequests += 1;
        if (event.kind === "permission" || event.kind === "question") this.#open.set(event.requestId, event.kind);
        break;
      case "requestSettled":
        next.openRequests = Math.max(0, next.openRequests - 1);
        this.#open.delete(event.requestId);
        if (next.state === "waitingPermission" || next.state === "waitingQuestion") next.state = "working";
        break;
    }
    const [asked] = this.#open.values();
    if (asked && next.state !== "ended") next.state = WAITING[asked];
    this.#summary = next;
  }
}

/** Every field of either. */
function sum(one: TokenUsage, other: TokenUsage): TokenUsage {
  const all: Record<string, number> = { ...one } as never;
  for (const [name, count] of Object.entries(other)) {
    if (typeof count === "number") all[name] = (all[name] ?? 0) + count;
  }
  return all as unknown as TokenUsage;
}
