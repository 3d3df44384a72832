// Time limits, pauses and cancellation.

/** A signal that also aborts at a time limit. Call `clear` when done. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the time limit, not the outer signal, has aborted. */
  isOver = false;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#abort();
    else outer?.addEventListener("abort", this.#abort, { once: true });
  }

  readonly #abort = () => this.#controller.abort(this.#outer?.reason);

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Replaces the time limit. */
  within(milliseconds: number): void {
    this.clearTimer();
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort(new Error(`no answer within ${milliseconds / 1000} s`));
    }, milliseconds);
  }

  clearTimer(): void {
    clearTimeout(this.#timer);
  }

  clear(): void {
    this.clearTimer();
    this.#outer?.removeEventListener("abort", this.#abort);
  }

  /** Also ends what still uses the signal. */
  end(): void {
    this.clear();
    this.#controller.abort();
  }
}

/** Waits. Rejects with the signal's reason if it aborts. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

const FIRST = 100;
const LONGEST = 5000;

/** Pauses between attempts: they double, and each client waits a different time. */
export class Backoff {
  #next = FIRST;
  readonly #since = Date.now();

  constructor(readonly patience: number) {}

  get isOver(): boolean {
    return Date.now() - this.#since >= this.patience;
  }

  next(): number {
    const time = this.#next;
    this.#next = Math.min(time * 2, LONGEST);
    return (time * (1 + Math.random())) / 2;
  }
}

/** A random id. `crypto.randomUUID` is missing on pages without TLS. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
