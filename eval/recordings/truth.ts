/** What really happened in a recording, as far as a verdict is asked for it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Truth {
  readonly kind: string;
  /** Kinds of verdict that count as right. */
  readonly kinds: readonly string[];
  readonly ranks: readonly number[];
  /** Causes that count as right. */
  readonly causes: readonly string[];
}

interface TruthFile {
  readonly kind: string;
  readonly faults: readonly { readonly ranks: readonly number[]; readonly cause: string }[];
  readonly job: { readonly tp: number; readonly dp: number; readonly pp: number };
}

/** truth.json of our recordings, fault_injection.log of NVIDIA's resiliency tests. */
export function truthIn(folder: string): Truth | null {
  const ours = join(folder, "truth.json");
  if (existsSync(ours)) {
    const truth = JSON.parse(readFileSync(ours, "utf8")) as TruthFile;
    const ranks =
      truth.kind === "regression"
        ? regressedRanks(truth, folder)
        : truth.faults.flatMap((fault) => fault.ranks);
    const causes = truth.faults.map(({ cause }) => cause);
    const kinds = [truth.kind, ...(truth.kind === "healthy" ? unknowable(folder) : [])];
    return { kind: truth.kind, kinds, ranks: sorted(ranks), causes };
  }
  const injected = join(folder, "fault_injection.log");
  if (!existsSync(injected)) return null;
  const text = readFileSync(injected, "utf8");
  const ranks = /Fault ranks: \[([\d, ]+)\]/.exec(text)![1]!.split(",").map(Number);
  const isGpu = /GPU_ERROR|GPU_SLEEP/.test(text);
  const causes = isGpu ? ["gpu-error", "gpu-hang"] : ["cpu-stall"];
  return { kind: "hang", kinds: ["hang"], ranks: sorted(ranks), causes };
}

/**
 * Slower code is slow wherever it runs, so that its recordings name no ranks: a loader runs on the first stage only, the
 * rest everywhere. A rank that left no trace cannot be named.
 */
function regressedRanks({ faults, job }: TruthFile, folder: string): number[] {
  const isLoader = faults.every(({ cause }) => cause === "dataloader");
  const slow = isLoader ? job.tp * job.dp : job.tp * job.dp * job.pp;
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
  return { kind: truth.kind, kinds: ["healthy", "undetermined"], ranks: [], causes: [] };
}

function sorted(ranks: readonly number[]): number[] {
  return [...new Set(ranks)].sort((a, b) => a - b);
}
