/** What every metric needs of a trace, worked out once. */
import { unionOf, type Intervals } from "../../maths/intervals.ts";
import type { RankKernels } from "../../model/kernels.ts";
import { COLLECTIVE, eventClasses, mainStream } from "./instrumented.ts";
import { stepAt, stepsOf, type Steps } from "./steps.ts";

export interface Measured {
  readonly trace: RankKernels;
  readonly steps: Steps;
  /** MATRIX, COLLECTIVE or MINORITY; one entry a GPU event. */
  readonly classes: Uint8Array;
  readonly stream: number;
  /** The step in which each GPU event was launched (started, where the trace lacks the launch); -1 outside. */
  readonly step: Int32Array;
  readonly communication: Intervals;
}

export function measured(trace: RankKernels): Measured {
  const { gpu, calls } = trace;
  const steps = stepsOf(trace);
  const classes = eventClasses(trace);
  const step = new Int32Array(gpu.count);
  for (let i = 0; i < gpu.count; i++) {
    const launch = gpu.launch[i]!;
    step[i] = stepAt(steps, launch < 0 ? gpu.startNs[i]! : calls.startNs[launch]!);
  }
  const isCollective = (row: number): boolean => classes[row] === COLLECTIVE;
  const communication = unionOf(gpu.startNs, gpu.durNs, gpu.count, isCollective);
  return { trace, steps, classes, stream: mainStream(trace), step, communication };
}
