// Reads a stream of server-sent events, wherever its chunks are split.

export interface Message {
  readonly id: string;
  /** `message`, unless the stream names another. */
  readonly event: string;
  readonly data: string;
}

export class SseParser {
  /** The pieces of an incomplete line. Joined only when its end arrives: an event can be many megabytes long. */
  #rest: string[] = [];
  #id = "";
  #event = "";
  #data: string[] = [];

  /** The messages that this text completes. */
  feed(text: string): Message[] {
    const messages: Message[] = [];
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#rest.push(text.slice(from, end));
      const line = this.#rest.length === 1 ? this.#rest[0]! : this.#rest.join("");
      this.#rest = [];
      from = end + 1;
      const message = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (message) messages.push(message);
    }
    if (from < text.length) this.#rest.push(text.slice(from));
    return messages;
  }

  #line(line: string): Message | undefined {
    if (line === "") {
      const message = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
      const isEmpty = this.#data.length === 0;
      [this.#id, this.#event, this.#data] = ["", "", []];
      return isEmpty ? undefined : message;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "id") this.#id = value;
    else if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    return undefined;
  }
}
