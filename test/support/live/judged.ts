/** People's judgements for tests. */
import type { Judged } from "../../../src/live/service/site/how-right.ts";
import type { SaidThen } from "../../../src/model/handling.ts";

export function judged(
  isRight: boolean,
  said: Partial<SaidThen> = {},
  truth: Partial<Pick<Judged, "machine" | "cause" | "atMs" | "jobs">> = {},
): Judged {
  const { confidence = 0.9 } = said;
  return {
    incident: "llama.r1.hang.i120",
    who: "ada",
    atMs: 0,
    isRight,
    machine: null,
    cause: null,
    jobs: null,
    ...truth,
    said: {
      job: "llama",
      openedMs: 1000,
      kind: "hang",
      cause: "gpu-hang",
      confidence,
      stated: confidence,
      machines: ["node003"],
      records: [],
      ...said,
    },
  };
}
