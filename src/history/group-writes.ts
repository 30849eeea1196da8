/**
 * Group commit: whatever is put while the store is busy goes to it as one. A single put does not wait; a hundred jobs
 * that report every second cost one commit, not a hundred.
 */
import { setTimeout as pause } from "node:timers/promises";

interface GroupedWrites<T> {
  /** Resolves when the item is stored. Items are stored in the order of the calls. */
  put(item: T): Promise<void>;
  /** Takes nothing more; resolves when all that was put is stored or refused. */
  close(): Promise<void>;
}

interface GroupOptions {
  readonly mostItems: number;
  /** Rest after each commit, for stores to which every commit is dear. */
  readonly pauseMs: number;
  /** After a group failed, each item is tried by itself, so that one bad row fails alone. */
  readonly splitFailed: boolean;
}

interface Waiting<T> {
  readonly item: T;
  resolve(this: void): void;
  reject(this: void, error: unknown): void;
}

export function groupWrites<T>(
  store: (items: readonly T[]) => Promise<void>,
  { mostItems, pauseMs, splitFailed }: GroupOptions,
): GroupedWrites<T> {
  let queue: Waiting<T>[] = [];
  let working: Promise<void> | null = null;
  let isClosed = false;

  async function storeGroup(group: readonly Waiting<T>[]): Promise<void> {
    try {
      await store(group.map(({ item }) => item));
      for (const { resolve } of group) resolve();
    } catch (error) {
      if (group.length === 1 || !splitFailed) {
        for (const { reject } of group) reject(error);
      } else {
        for (const one of group) await storeGroup([one]);
      }
    }
  }

  async function work(): Promise<void> {
    while (queue.length > 0) {
      const group = queue.slice(0, mostItems);
      queue = queue.slice(mostItems);
      await storeGroup(group);
      if (pauseMs > 0 && !isClosed) await pause(pauseMs);
    }
    working = null;
  }

  return {
    put: (item) =>
      new Promise((resolve, reject) => {
        if (isClosed) {
          reject(new Error("the history is closed"));
          return;
        }
        queue.push({ item, resolve, reject });
        // Not at once: what is put in the same turn belongs to the same group.
        working ??= Promise.resolve().then(work);
      }),
    async close() {
      isClosed = true;
      await working;
    },
  };
}
