/**
 * Per-rank logs of pipeline passes, as PipeMorph's trainer writes them ("[RANK2] F @ 31.5 (ms) to 58.1 (ms),
 * cudaEventElapsed = 26.4 (ms)"; event_timer.py and our_schedules.py in wutianyuan1/PipeMorph). F is a forward pass,
 * B the backward pass for the inputs, W the one for the weights; "4W" is four of those in one go. The times are
 * the host's clock after the device has been waited for: milliseconds since the iteration began, or since 1970.
 *
 * Files that end in "_CPU.log" hold the iterations of the same job in which tensors went through host memory. They
 * count iterations of their own, and a transfer takes another time there, so that they are a format of their own.
 */
import type { Defect, Reading } from "../model/reading.ts";
import type { StageOperations } from "../model/stage-operations.ts";
import { LineSink } from "./line-sink.ts";
import { rankFromName } from "./reader.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "stage-passes";
const CPU_FORMAT = "stage-passes-cpu";
const KINDS = ["forward-compute", "backward-compute", "weight-compute"] as const;
const LETTERS = "FBW";

const ITERATION = /^\[RANK(\d{1,6})\] Iteration (\d{1,9})$/;
const NUMBER = String.raw`(-?\d{1,16}(?:\.\d{1,24})?(?:e[-+]?\d{1,3})?)`;
const PASS = new RegExp(
  String.raw`^\[RANK(\d{1,6})\] (\d{0,4})([FBW]) @ +${NUMBER} \(ms\) to +${NUMBER} \(ms\), cudaEventElapsed = ${NUMBER} \(ms\)$`,
);
/** Rows kept of one file; what comes after is counted. */
const MAX_ROWS = 2_000_000;
const SAMPLE_CHARS = 80;

export const stagePasses: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    const lines = head.text.split("\n").map((line) => line.replace(/\r$/, ""));
    return ITERATION.test(lines[0]!) && (lines[1] === undefined || isOwn(lines[1]));
  },
  open: (file: string): Sink => new StagePassesSink(file),
};

/** The second line may be cut off by the head, or be missing in a file that has just been begun. */
function isOwn(line: string): boolean {
  return PASS.test(line) || ITERATION.test(line) || line.trim() === "";
}

class StagePassesSink extends LineSink {
  readonly #format: string;
  readonly #columns = {
    rank: [] as number[],
    step: [] as number[],
    kind: [] as number[],
    microBatch: [] as number[],
    seq: [] as number[],
    startMs: [] as number[],
    durationMs: [] as number[],
  };
  /** The iteration under way of each rank, and how many passes and rows of each kind it has. */
  readonly #steps = new Map<number, { step: number; passes: number[]; rows: number[] }>();
  #records = 0;
  #dropped = 0;
  #bad = 0;
  #firstBad: Defect | null = null;

  constructor(file: string) {
    super(file, 4096);
    this.#format = /_CPU\.log(?:\.gz)?$/.test(file) ? CPU_FORMAT : FORMAT;
  }

  finish(): Reading {
    const [only] = this.#steps.keys();
    const rank = this.#steps.size === 1 ? only! : rankFromName(this.file);
    return {
      file: this.file,
      format: this.#format,
      rank,
      records: this.#records,
      defects: this.#defects(),
      stageOperations: this.#records > 0 ? [this.#operations(rank)] : [],
    };
  }

  line(text: string, no: number): void {
    const pass = PASS.exec(text);
    if (pass) {
      this.#pass(pass);
      return;
    }
    const iteration = ITERATION.exec(text);
    if (iteration) {
      const step = Number(iteration[2]);
      this.#steps.set(Number(iteration[1]), { step, passes: [0, 0, 0], rows: [0, 0, 0] });
    } else if (text.trim() !== "") {
      this.#bad++;
      this.#firstBad ??= { file: this.file, what: text.slice(0, SAMPLE_CHARS), line: no };
    }
  }

  #pass([, rankText, times, letter, from, to]: RegExpExecArray): void {
    this.#records++;
    if (this.#columns.rank.length >= MAX_ROWS) {
      this.#dropped++;
      return;
    }
    const rank = Number(rankText);
    // A file cut at its beginning: the iteration is not known.
    const now = this.#steps.get(rank) ?? { step: -1, passes: [0, 0, 0], rows: [0, 0, 0] };
    this.#steps.set(rank, now);
    const kind = LETTERS.indexOf(letter!);
    const startMs = Number(from);
    this.#columns.rank.push(rank);
    this.#columns.step.push(now.step);
    this.#columns.kind.push(kind);
    this.#columns.microBatch.push(now.passes[kind]!);
    this.#columns.seq.push(now.rows[kind]!);
    this.#columns.startMs.push(startMs);
    this.#columns.durationMs.push(Number(to) - startMs);
    now.passes[kind]! += times === "" ? 1 : Number(times);
    now.rows[kind]!++;
  }

  #operations(writer: number | null): StageOperations {
    const { rank, step, kind, microBatch, seq, startMs, durationMs } = this.#columns;
    const unknown = (): Int32Array => new Int32Array(rank.length).fill(-1);
    return {
      file: this.file,
      format: this.#format,
      writer,
      rank: Int32Array.from(rank),
      replica: unknown(),
      stage: unknown(),
      step: Int32Array.from(step),
      kind: Uint8Array.from(kind),
      kinds: KINDS,
      microBatch: Int32Array.from(microBatch),
      chunk: unknown(),
      seq: Int32Array.from(seq),
      startMs: Float64Array.from(startMs),
      durationMs: Float64Array.from(durationMs),
    };
  }

  #defects(): Defect[] {
    const defects: Defect[] = [];
    if (this.#firstBad) {
      const { what, line } = this.#firstBad;
      defects.push({
        file: this.file,
        what: `${this.#bad} lines are not passes, the first: ${what}`,
        line: line!,
      });
    }
    if (this.#dropped > 0) {
      defects.push({ file: this.file, what: `${this.#dropped} passes were left out` });
    }
    return defects;
  }
}
