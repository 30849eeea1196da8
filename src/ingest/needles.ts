/**
 * Whether one of many fixed strings stands in a line: the first thing that every line of a log goes through.
 * Looks at three letters in every four: each needle has at least six characters, so that one of the four
 * windows of three letters inside it is met wherever it stands. Measured on iteration lines with 190 needles:
 * six times as fast as one regular expression of them, line splitting included.
 */
const MASK = 0xffff;
const WINDOW = 3;
const SHORTEST_NEEDLE = 6;
const STEP = SHORTEST_NEEDLE - WINDOW + 1;

/** Words of ordinary log lines. Windows that occur here would send every line to the second look. */
const ORDINARY =
  " iteration | consumed samples: elapsed time per iteration (ms): learning rate: global batch size: lm loss: loss " +
  "scale: grad norm: number of skipped iterations: number of nan iterations: [INFO] step: tokens throughput memory " +
  "allocated reserved epoch: validation checkpoint saving to loading the from at and for with training rank " +
  "2026-11-15 00:00:00,000 1.000000E+00 samples/sec: params data parallel size model ";

interface Place {
  readonly needle: string;
  /** Where in the needle the window begins. */
  readonly at: number;
}

export class Needles {
  /** Window → index into `#places`; 0 for none. */
  readonly #bucketOf = new Uint16Array(MASK + 1);
  readonly #places: Place[][] = [[]];

  constructor(needles: readonly string[]) {
    for (const needle of needles) {
      if (needle.length < SHORTEST_NEEDLE)
        throw new Error(`internal error: needle "${needle}" is too short`);
      const start = rarestStretch(needle);
      for (let at = start; at < start + STEP; at++)
        this.#bucket(windowHash(needle, at)).push({ needle, at });
    }
  }

  in(text: string): boolean {
    const bucketOf = this.#bucketOf;
    const last = text.length - WINDOW;
    for (let i = 0; i <= last; i += STEP) {
      const bucket = bucketOf[windowHash(text, i)] as number;
      if (bucket !== 0 && this.#confirm(bucket, text, i)) return true;
    }
    return false;
  }

  #bucket(hash: number): Place[] {
    let index = this.#bucketOf[hash] as number;
    if (index === 0) {
      index = this.#places.push([]) - 1;
      this.#bucketOf[hash] = index;
    }
    return this.#places[index] as Place[];
  }

  #confirm(bucket: number, text: string, i: number): boolean {
    for (const { needle, at } of this.#places[bucket] as Place[]) {
      if (i >= at && text.startsWith(needle, i - at)) return true;
    }
    return false;
  }
}

function windowHash(text: string, at: number): number {
  return (
    ((text.charCodeAt(at) << 9) ^ (text.charCodeAt(at + 1) << 5) ^ text.charCodeAt(at + 2)) & MASK
  );
}

/** Where the six characters of the needle begin whose windows are least ordinary. */
function rarestStretch(needle: string): number {
  let best = 0;
  let bestScore = Number.POSITIVE_INFINITY;
  for (let start = 0; start + SHORTEST_NEEDLE <= needle.length; start++) {
    let score = 0;
    for (let at = start; at < start + STEP; at++) {
      if (ORDINARY.includes(needle.slice(at, at + WINDOW))) score++;
    }
    if (score < bestScore) {
      bestScore = score;
      best = start;
    }
  }
  return best;
}
