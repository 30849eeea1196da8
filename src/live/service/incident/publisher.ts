/** What the service tells the page and its log. */
import type { LiveEvent } from "../view.ts";

/** The same line is logged at most once in so long. */
const REPEAT_MS = 60_000;
const MOST_LINES = 1000;

export class Publisher {
  readonly #nowMs: () => number;
  readonly #log: (line: string) => void;
  readonly #listeners = new Set<(event: LiveEvent) => void>();
  readonly #logged = new Map<string, number>();

  constructor(nowMs: () => number, log: (line: string) => void) {
    this.#nowMs = nowMs;
    this.#log = log;
  }

  /** Returns how to stop listening. */
  listen(listener: (event: LiveEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish(event: LiveEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  readonly trouble = (line: string): void => {
    const nowMs = this.#nowMs();
    if (nowMs - (this.#logged.get(line) ?? -Infinity) < REPEAT_MS) return;
    if (this.#logged.size > MOST_LINES) this.#logged.clear();
    this.#logged.set(line, nowMs);
    this.#log(line);
    this.publish({ type: "trouble", line });
  };
}
