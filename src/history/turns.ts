/** At most so many at once; the others wait for their turn, in order. */
interface Turns {
  take<T>(work: () => Promise<T>): Promise<T>;
  /** When nothing runs or waits. */
  idle(): Promise<void>;
}

export function turns(atOnce: number): Turns {
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<unknown>>();
  let free = atOnce;

  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The turn is handed on, not given back: nobody can slip in between.
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  }

  return {
    async take(work) {
      const turn = run(work);
      const settled = turn.catch(() => {});
      running.add(settled);
      void settled.then(() => running.delete(settled));
      return await turn;
    },
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
