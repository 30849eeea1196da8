/**
 * The Python functions of a healthy step, where the profiler records stacks: the step, each pass, each
 * layer. They are as long as what they hold, so that a long function alone says nothing.
 */
import * as P from "../../cluster/program.ts";
import type { RankEvents } from "./rank-events.ts";

const STEP = "train.py(118): train_step";
const PASSES = [
  "megatron/core/pipeline_parallel/schedules.py(312): forward_step",
  "megatron/core/pipeline_parallel/schedules.py(401): backward_step",
];

interface Span {
  readonly key: string;
  readonly name: string;
  fromNs: number;
  toNs: number;
}

export class PythonFrames {
  readonly #events: RankEvents;
  readonly #program: P.StageProgram;
  #pass: Span | null = null;
  #layer: Span | null = null;

  constructor(events: RankEvents, program: P.StageProgram) {
    this.#events = events;
    this.#program = program;
  }

  /** The CPU works on an operator from one time to another; calls come in the order of the program. */
  operator(op: number, fromNs: number, toNs: number): void {
    const { phase, microBatch, layer } = this.#program;
    const isPass = phase[op] === P.FORWARD || phase[op] === P.BACKWARD;
    if (!isPass) return;
    const pass = `${phase[op]}/${microBatch[op]}`;
    // The backward pass of a layer is autograd's: no Python of its own.
    const at = phase[op] === P.FORWARD && layer[op]! >= 0 ? `${pass}/${layer[op]}` : "";
    this.#layer = this.#extend(
      this.#layer,
      at,
      `nn.Module: TransformerLayer_${layer[op]}`,
      fromNs,
      toNs,
    );
    this.#pass = this.#extend(this.#pass, pass, PASSES[phase[op]!]!, fromNs, toNs);
  }

  #extend(span: Span | null, key: string, name: string, fromNs: number, toNs: number): Span | null {
    if (span?.key === key) {
      span.toNs = toNs;
      return span;
    }
    this.#write(span);
    return key === "" ? null : { key, name, fromNs, toNs };
  }

  #write(span: Span | null): void {
    if (span) this.#events.python(span.name, this.#events.main, span.fromNs, span.toNs);
  }

  end(fromNs: number, toNs: number): void {
    this.#write(this.#layer);
    this.#write(this.#pass);
    this.#events.python(STEP, this.#events.main, fromNs, toNs);
    this.#layer = this.#pass = null;
  }
}
