/**
 * What turns a simulation into files. An emitter sees every iteration once, while it is fresh, and
 * writes through an Output, so that nothing here touches the disk and a live service can take its place.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";

export interface Writer {
  write(chunk: string | Uint8Array): void;
  end(): void;
}

export interface Output {
  /** Path below the output folder: "logs/rank3.log". */
  open(path: string): Writer;
}

export interface Emitter {
  /** The arrays are reused after the call: copy what is to be kept. */
  iteration(times: IterationTimes): void;
  end(): void;
}

export type MakeEmitter = (simulation: Simulation, output: Output) => Emitter;
