/** What `--emit` can name. */
import { emitFlightRecorder } from "./flight-recorder.ts";
import { emitOperators } from "./operators.ts";
import type { MakeEmitter } from "./emitter.ts";

export const EMITTERS: Readonly<Record<string, MakeEmitter>> = {
  operators: emitOperators,
  "flight-recorder": emitFlightRecorder,
};
