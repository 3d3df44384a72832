// Requests of an agent, and the methods to answer them.
import { AgentwireError, invalid } from "./errors.js";
import type { Behavior, OpenRequest, Question, RequestKind, RequestRaisedEvent, Settlement } from "./types.js";

/** What a callback decides. Nothing, or anything else, denies. */
export type Decision = Behavior | Omit<Settlement, "requestId"> | undefined | void;

/** Decides about a request. The signal aborts if the request is settled elsewhere. */
export type OnRequest = (request: Request, context: { readonly signal: AbortSignal }) => Decision | Promise<Decision>;

type Settle = (sessionId: string, settlement: Settlement, signal?: AbortSignal) => Promise<unknown>;

interface Answering {
  readonly signal?: AbortSignal;
}

/**
 * A request that an agent waits on. An answer is valid for exactly the input that the request shows.
 *
 * The first answer counts: it may come from a rule of the session, this program or another client. Each method
 * that answers returns whether its answer was the first.
 */
export class Request {
  readonly #settle: Settle;
  /** @internal */
  isAnswered = false;

  /** @internal */
  constructor(
    /** The request as the protocol describes it. */
    readonly open: OpenRequest,
    settle: Settle,
  ) {
    this.#settle = settle;
  }

  get id(): string {
    return this.open.requestId;
  }

  get sessionId(): string {
    return this.open.sessionId;
  }

  get kind(): RequestKind {
    return this.open.kind;
  }

  /** The tool that asks for permission. */
  get toolName(): string | undefined {
    return this.open.toolName;
  }

  /** The input that the tool would run with. */
  get input(): unknown {
    return this.open.input;
  }

  /** The questions to answer. */
  get questions(): readonly Question[] {
    return this.open.questions ?? [];
  }

  /** Allows the call: with `remember: "session"`, similar calls too; with `input`, that input instead. */
  allow(options: { remember?: "once" | "session"; input?: Record<string, unknown> } & Answering = {}): Promise<boolean> {
    const { remember, input, signal } = options;
    // A missing replacement would allow the original input.
    if ("input" in options && (typeof input !== "object" || input === null || Array.isArray(input))) {
      return Promise.reject(invalid("the input of a tool must be an object"));
    }
    return this.settle(
      { behavior: "allow", ...(remember && { remember }), ...(input && { updatedInput: input }) },
      { ...(signal && { signal }) },
    );
  }

  /** Denies the call, or declines to answer. The agent receives the message. */
  deny(message?: string, options?: Answering): Promise<boolean> {
    return this.settle({ behavior: "deny", ...(message !== undefined && { message }) }, options);
  }

  /**
   * Answers questions: in order, or by id (by the text of a question without an id). An answer is the label of an
   * option or free text; for a question that allows several options it can be a list.
   */
  answer(answers: readonly (string | readonly string[])[] | Record<string, unknown>, options?: Answering): Promise<boolean> {
    if (!Array.isArray(answers)) return this.settle({ answers: answers as Record<string, unknown> }, options);
    if (answers.length !== this.questions.length) {
      return Promise.reject(invalid(`expected ${this.questions.length} answers, got ${answers.length}`));
    }
    const pairs = this.questions.map((question, at) => {
      const answer: unknown = answers[at];
      const value = question.multiSelect && typeof answer === "string" ? [answer] : answer;
      return [question.id ?? question.question, value];
    });
    return this.settle({ answers: Object.fromEntries(pairs) }, options);
  }

  /** Answers a hook or another request in the agent's own format. */
  respond(output: unknown, options?: Answering): Promise<boolean> {
    return this.settle({ hookOutput: output }, options);
  }

  /** Answers with any settlement. */
  async settle(settlement: Omit<Settlement, "requestId">, options: Answering = {}): Promise<boolean> {
    this.isAnswered = true;
    const full: Settlement = { inputDigest: this.open.inputDigest, ...settlement, requestId: this.id };
    try {
      await this.#settle(this.sessionId, full, options.signal);
      return true;
    } catch (error) {
      const code = error instanceof AgentwireError ? error.code : undefined;
      if (code === "requestSettled" || code === "requestNotFound") return false;
      this.isAnswered = false;
      throw error;
    }
  }
}

/** The request that an event raises. */
export function openRequest(event: RequestRaisedEvent): OpenRequest {
  const { id: _id, timestamp, type: _type, native: _native, ...rest } = event;
  return { ...rest, raisedAt: timestamp, state: "open" };
}

/** Denies everything. */
export const denyAll: OnRequest = () => ({ behavior: "deny", message: "nobody is there to answer" });

/** Calls the callback, and carries out what it decides. Anything but a decision is a denial. */
export async function decide(request: Request, callback: OnRequest, signal: AbortSignal): Promise<void> {
  try {
    const decision = await callback(request, { signal });
    if (signal.aborted || request.isAnswered) return;
    if (typeof decision === "object" && decision !== null) await request.settle(decision);
    else if (decision === "allow") await request.allow();
    else await request.deny("the program did not allow it");
  } catch (error) {
    if (signal.aborted) return;
    if (!request.isAnswered) await request.deny("the program failed to decide").catch(() => undefined);
    throw error;
  }
}
