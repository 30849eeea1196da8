/**
 * Logs and dumps of a job may lie on a network file system whose server is gone: a read then never returns. So that the agent
 * goes on to report, such reads run in libuv's threads, each has a deadline, and only a few may wait at the same time (the
 * other threads look up host names).
 */
const LIMIT_MS = 2000;
const MOST_STUCK = 2;

export class SlowStorage {
  readonly #limitMs: number;
  readonly #stuck = new Set<string>();

  constructor(limitMs = LIMIT_MS) {
    this.#limitMs = limitMs;
  }

  /** Reads still wait for storage. Node waits for them at its end: a process that wants to end must kill itself. */
  get isStuck(): boolean {
    return this.#stuck.size > 0;
  }

  /** `key` names what is read: while one read of it waits, no other is begun. Rejects at the deadline; the read may go on. */
  async read<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#stuck.has(key) || this.#stuck.size >= MOST_STUCK) throw new SilentStorage();
    const reading = work();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#stuck.add(key);
        void reading.catch(() => {}).finally(() => this.#stuck.delete(key));
        reject(new SilentStorage());
      }, this.#limitMs);
    });
    try {
      return await Promise.race([reading, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

class SilentStorage extends Error {
  constructor() {
    super("its storage does not answer; it is not read until it does");
  }
}
