/** What the lines of a running job's log tell at once: iterations that ended, and failures; by the rules of ingest/rank-log. */
import { looksStamped, parseStamp } from "../../../ingest/log-time.ts";
import { parseNcclLine } from "../../../ingest/nccl-lines.ts";
import { IterationLine } from "../../../ingest/rank-log/iteration-line.ts";
import { iterationOf } from "../../../ingest/rank-log/iterations.ts";
import { loneFailure, ncclFailure, beginsTerminate } from "../../../ingest/rank-log/lone-lines.ts";
import { isNoteworthy } from "../../../ingest/rank-log/noteworthy.ts";
import { Prefix, stripAnsi } from "../../../ingest/rank-log/prefixes.ts";
import type { Stream } from "../../../ingest/rank-log/stream.ts";
import { Streams } from "../../../ingest/rank-log/streams.ts";

const LINE_CHARS = 8192;
/** glog's own remarks: they quote errors that were survived. */
const REMARK = /^\[?I\d{3,4} \d\d:/;
/** Lines after which it is decided whether "3: text" is srun's label: in most logs it is not. */
const LABELLED_SHARE = 0.5;

/** Who wrote a line: a global rank, a local one, or neither (-1). */
export interface Writer {
  readonly rank: number;
  readonly local: number;
}

export interface LogIteration extends Writer {
  readonly iteration: number;
  /** As the line says; NaN where it does not. */
  readonly ms: number;
  /** The line's own time, milliseconds; NaN where it has none. A zone that it does not name is taken for UTC. */
  readonly stampMs: number;
}

export interface LogFailureLine extends Writer {
  readonly text: string;
}

export class LiveLogLines {
  readonly #onIteration: (one: LogIteration) => void;
  readonly #onFailure: (one: LogFailureLine) => void;
  readonly #prefix = new Prefix();
  readonly #point = new IterationLine();
  readonly #streams: Streams;
  /** By the file's name. */
  readonly #fileRank: number;
  #lines = 0;
  #labelled = 0;

  constructor(
    path: string,
    onIteration: (one: LogIteration) => void,
    onFailure: (one: LogFailureLine) => void,
  ) {
    this.#onIteration = onIteration;
    this.#onFailure = onFailure;
    this.#streams = new Streams((raised, by) =>
      this.#onFailure({ ...this.#writerOf(by), text: raised.text }),
    );
    // Asked of nobody's lines, only the name decides.
    this.#fileRank = new Streams(() => {}).settle(path, 0) ?? -1;
  }

  get fileRank(): number {
    return this.#fileRank;
  }

  line(raw: string): void {
    // tqdm rewrites its line; what stands last is what counts.
    for (const part of raw.includes("\r") ? raw.split("\r") : [raw])
      if (part !== "") this.#part(stripAnsi(part.slice(-LINE_CHARS)));
  }

  /** Nothing came for a while: a traceback that was begun has ended. */
  rest(): void {
    for (const stream of this.#streams.all) stream.tracebacks.finish();
  }

  #part(text: string): void {
    this.#prefix.read(text);
    const no = ++this.#lines;
    if (this.#prefix.task >= 0) this.#labelled++;
    const stream = this.#streams.of(this.#prefix);
    const { body } = this.#prefix;
    if (body.trim() === "") {
      stream.tracebacks.blank();
      return;
    }
    const isNoted = isNoteworthy(body);
    const isInside = stream.tracebacks.active || stream.terminateLine > 0;
    if (!isNoted && !isInside) return;
    const stamped = looksStamped(body);
    if (isNoted && this.#point.read(body, iterationOf(body))) {
      this.#onIteration({
        ...this.#writerOf(stream),
        iteration: this.#point.iteration,
        ms: this.#point.ms,
        stampMs: (stamped ? parseStamp(body)?.ms : undefined) ?? NaN,
      });
      return;
    }
    this.#failure(body, no, stream, stamped);
  }

  #failure(body: string, no: number, stream: Stream, stamped: boolean): void {
    if (stamped && REMARK.test(body)) return;
    const nccl = body.includes(" NCCL ") ? parseNcclLine(body) : null;
    if (nccl === null) {
      if (stream.tracebacks.line(body, no, stamped) || beginsTerminate(body, no, stream)) return;
    }
    const found = nccl === null ? loneFailure(body, no, stream) : ncclFailure(nccl);
    if (found !== null) this.#onFailure({ ...this.#writerOf(stream), text: found.text });
  }

  #writerOf({ is }: Stream): Writer {
    if (is.rank >= 0) return { rank: is.rank, local: -1 };
    if (this.#fileRank >= 0) return { rank: this.#fileRank, local: -1 };
    if (is.local >= 0) return { rank: -1, local: is.local };
    const isLabelled = this.#labelled >= LABELLED_SHARE * this.#lines;
    return { rank: is.task >= 0 && isLabelled ? is.task : -1, local: -1 };
  }
}
