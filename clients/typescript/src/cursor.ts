// A position in a session's log. Passes events on in order and once, and reports missing ones.
import type { Event } from "./types.js";

/** Events to pass on, and what comes after them. */
export interface Advance {
  readonly events: readonly Event[];
  /** These events are missing, confirmed by a second connection. */
  readonly gap?: { readonly from: number; readonly to: number };
  /** An event is missing: connect again to see whether it is lost. */
  readonly jump?: string;
}

export class Cursor {
  #jumped: { wanted: number; came: number } | undefined;

  constructor(public position: number) {}

  /** Continues after an event of a log that is shorter than expected. */
  goBack(to: number): void {
    this.position = to;
    this.#jumped = undefined;
  }

  /** Takes a batch. If it is dense, each number must follow the one before. */
  advance(batch: readonly Event[], isDense: boolean): Advance {
    const events: Event[] = [];
    for (const event of batch) {
      const wanted = this.position + 1;
      const { seq } = event;
      if (typeof seq !== "number") return { events, jump: "received an event without a number" };
      if (seq < wanted) continue;
      if (seq > wanted && isDense) {
        const before = this.#jumped;
        if (before?.wanted === wanted && seq <= before.came) {
          this.goBack(seq - 1);
          return { events, gap: { from: wanted, to: seq - 1 } };
        }
        if (before?.wanted !== wanted) this.#jumped = { wanted, came: seq };
        return { events, jump: `received event ${seq} instead of ${wanted}` };
      }
      this.position = seq;
      events.push(event);
    }
    return { events };
  }
}
