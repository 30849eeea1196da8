/** What `--emit` can name. */
import { emitFlightRecorder } from "./flight-recorder.ts";
import { emitKineto } from "./kineto.ts";
import { emitLogs } from "./logs.ts";
import { emitMetrics } from "./metrics.ts";
import { emitOperators } from "./operators.ts";
import type { MakeEmitter } from "./emitter.ts";

export const EMITTERS: Readonly<Record<string, MakeEmitter>> = {
  operators: emitOperators,
  "flight-recorder": emitFlightRecorder,
  logs: emitLogs,
  metrics: emitMetrics,
  kineto: emitKineto,
};
