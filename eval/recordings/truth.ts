/** What really happened in a recording, as far as a verdict is asked for it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { familyOf, type RecordedJob } from "./families.ts";

export interface Fault {
  /** Empty where it is nobody's in particular, or the files do not tell whose. */
  readonly ranks: readonly number[];
  /** Causes that count as right. */
  readonly causes: readonly string[];
}

export interface Truth {
  readonly kind: string;
  /** Kinds of verdict that count as right. */
  readonly kinds: readonly string[];
  /** Of all faults. */
  readonly ranks: readonly number[];
  readonly faults: readonly Fault[];
  readonly family: string;
  /** Whether it was slow from the first iteration on. */
  readonly fromStart: boolean;
}

interface FaultInFile {
  readonly ranks: readonly number[];
  readonly cause: string;
  readonly causesAccepted?: readonly string[];
  readonly fromStart?: boolean;
}

interface TruthFile {
  readonly kind: string;
  readonly faults: readonly FaultInFile[];
  readonly fromStart?: boolean;
  readonly job?: RecordedJob;
}

/** truth.json of our recordings, fault_injection.log of NVIDIA's resiliency tests. */
export function truthIn(folder: string): Truth | null {
  const ours = join(folder, "truth.json");
  if (existsSync(ours)) return ownTruth(JSON.parse(readFileSync(ours, "utf8")), folder);
  const injected = join(folder, "fault_injection.log");
  if (!existsSync(injected)) return null;
  const text = readFileSync(injected, "utf8");
  const ranks = sorted(/Fault ranks: \[([\d, ]+)\]/.exec(text)![1]!.split(",").map(Number));
  const isGpu = /GPU_ERROR|GPU_SLEEP/.test(text);
  const causes = isGpu ? ["gpu-error", "gpu-hang"] : ["cpu-stall"];
  const faults = [{ ranks, causes }];
  const family = "NVIDIA resiliency tests";
  return { kind: "hang", kinds: ["hang"], ranks, faults, family, fromStart: false };
}

function ownTruth({ kind, faults, fromStart, job = {} }: TruthFile, folder: string): Truth {
  const regressed = kind === "regression" ? regressedRanks(faults, job, folder) : null;
  const own = faults.map(({ ranks, cause, causesAccepted }) => ({
    ranks: sorted(regressed ?? ranks),
    causes: causesAccepted ?? [cause],
  }));
  return {
    kind,
    kinds: [kind, ...(kind === "healthy" ? unknowable(folder) : [])],
    ranks: sorted(own.flatMap(({ ranks }) => ranks)),
    faults: own,
    family: familyOf(job),
    fromStart: fromStart ?? faults.some((fault) => fault.fromStart === true),
  };
}

/**
 * Slower code is slow wherever it runs, so that its recordings name no ranks: a loader runs on the first stage only, the
 * rest everywhere. A rank that left no trace cannot be named.
 */
function regressedRanks(
  faults: readonly FaultInFile[],
  { tp, dp = 1, pp = 1 }: RecordedJob,
  folder: string,
): number[] {
  const isLoader = faults.every(({ cause }) => cause === "dataloader");
  // Without pipeline stages all ranks load.
  const slow = tp === undefined ? Infinity : isLoader ? tp * dp : tp * dp * pp;
  return readdirSync(folder)
    .flatMap((name) => /^kineto\.rank(\d+)\./.exec(name)?.[1] ?? [])
    .map(Number)
    .filter((rank) => rank < slow);
}

/** Traces alone do not show that a job ended well. */
function unknowable(folder: string): string[] {
  const hasMore = readdirSync(folder).some((name) => !/^(?:kineto\.|truth\.json$)/.test(name));
  return hasMore ? [] : ["undetermined"];
}

/** Of a regression nothing need be said without its baseline, and nobody may be accused. */
export function withoutBaseline(truth: Truth): Truth {
  if (truth.kind !== "regression") return truth;
  return { ...truth, kinds: ["healthy", "undetermined"], ranks: [], faults: [] };
}

export function truthWords({ kind, ranks, faults, fromStart }: Truth): string {
  const causes = [...new Set(faults.flatMap((fault) => fault.causes))];
  return `${kind}${ranks.length > 0 ? ` ${ranks.join(", ")}` : ""}${causes.length > 0 ? `, ${causes.join(" or ")}` : ""}${fromStart ? ", from the start" : ""}`;
}

function sorted(ranks: readonly number[]): number[] {
  return [...new Set(ranks)].sort((a, b) => a - b);
}
