/** What each family of faults is in the engine's words, and what is true of it. */
import { pick, type Random } from "../../../src/base/random.ts";
import type { Cause } from "../../../src/model/cause.ts";
import type { SuspectType, VerdictKind } from "../../../src/model/finding.ts";
import type { Family } from "./scenario.ts";

export type Faulty = Exclude<Family, "healthy">;

export interface Recipe {
  readonly kind: VerdictKind;
  readonly cause: Cause;
  readonly type: SuspectType;
  /** What the engine is told, after the place. */
  readonly core: (random: Random) => string;
  readonly place: "rank" | "machine" | "rank or machine" | "loading rank" | "link" | "switch";
  /** The most that the factor may be, for what slows the job down. */
  readonly most?: number;
}

const stop = (
  kind: VerdictKind,
  cause: Cause,
  core: string | ((random: Random) => string),
  type: SuspectType = "rank",
): Recipe => ({
  kind,
  cause,
  type,
  core: typeof core === "string" ? () => core : core,
  place: "rank",
});

/** Minder's Table 1: of what GPUs die of, ECC 38.9 %, NVLink 1.7 %, card drop 2 %, CUDA execution 14.6 %; smoothed. */
const GPU_SIGNATURES = ["ecc", "ecc", "ecc", "nvlink", "card-drop", "", ""] as const;

export const RECIPES: Readonly<Record<Faulty, Recipe>> = {
  "gpu-slow": {
    kind: "fail-slow",
    cause: "gpu-slow",
    type: "gpu",
    core: () => "gpu-slow",
    place: "rank",
    most: 5,
  },
  "nic-slow": {
    kind: "fail-slow",
    cause: "network-slow",
    type: "nic",
    core: () => "network-slow",
    place: "rank",
    most: 100,
  },
  "link-slow": {
    kind: "fail-slow",
    cause: "network-slow",
    type: "link",
    core: () => "network-slow",
    place: "link",
    most: 200,
  },
  "switch-slow": {
    kind: "fail-slow",
    cause: "network-slow",
    type: "switch",
    core: () => "network-slow",
    place: "switch",
    most: 60,
  },
  "cpu-contention": {
    kind: "fail-slow",
    cause: "cpu-stall",
    type: "machine",
    core: () => "cpu-stall",
    place: "rank or machine",
    most: 30,
  },
  "dataloader-slow": {
    kind: "fail-slow",
    cause: "dataloader",
    type: "rank",
    core: () => "dataloader",
    place: "loading rank",
    most: 300,
  },
  "gpu-error": stop(
    "crash",
    "gpu-error",
    (random) => withSignature("gpu-error", pick(random, GPU_SIGNATURES)),
    "gpu",
  ),
  "gpu-memory": stop("crash", "gpu-memory", "gpu-memory"),
  "host-memory": stop("crash", "host-memory", "process-gone"),
  exception: stop("crash", "user-program", "user-program", "code"),
  nan: stop("crash", "numerical", "numerical"),
  "process-gone": stop("crash", "process-gone", "process-gone"),
  "process-stopped": stop("hang", "process-stopped", "process-stopped"),
  "machine-lost": {
    ...stop("hang", "process-stopped", "process-stopped", "machine"),
    place: "machine",
  },
  "gpu-hang": stop("hang", "gpu-hang", "gpu-hang", "gpu"),
  "cpu-stall": stop("hang", "cpu-stall", "cpu-stall:severity=inf"),
  "dataloader-hang": {
    ...stop("hang", "dataloader", "cpu-stall:severity=inf"),
    place: "loading rank",
  },
  "storage-hang": stop("hang", "storage", "cpu-stall:severity=inf", "storage"),
  // Minder's Table 1: NIC dropout 5.7 %; the other half is a fabric that says nothing (judgement).
  "network-hang": stop(
    "hang",
    "network-hang",
    (random) => withSignature("network-hang", random() < 0.5 ? "nic-drop" : ""),
    "nic",
  ),
  // All enter the operator and none leaves; who called something else is told by mismatch.ts.
  mismatch: stop("hang", "collective-mismatch", "gpu-hang", "code"),
};

function withSignature(core: string, signature: string): string {
  return signature === "" ? core : `${core}:signature=${signature}`;
}
