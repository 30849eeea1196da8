/** The question "why is the code slower than it was, or than it could be?" asked of kernel timelines (FLARE §5.2). */
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { Cause } from "../../model/cause.ts";
import type { Regression } from "../../model/regression.ts";
import type { RunProfile } from "../../model/trace-profile.ts";
import { compareRun } from "./compare-run.ts";
import { peerRegressions } from "./peer-regressions.ts";
import { profileRun } from "./profile-run.ts";

export const regression: Method = {
  id: "traces/regression",
  applies: (job) => (job.kernels ?? []).some(({ gpu }) => gpu.count > 0),
  *run(job) {
    const run = profileRun(job.kernels ?? [], "");
    if (!run) return;
    const { regressions, notes } = judge(run, job.traceBaseline ?? []);
    for (const one of regressions) yield findingOf(one, run, job);
    for (const note of notes)
      yield { says: note, weight: 0, at: [], data: { fact: "remark" }, accuses: [], clears: [] };
  },
};

/** Against healthy runs where there are any; else what the traces prove by themselves. */
export function judge(
  run: RunProfile,
  baseline: readonly RunProfile[],
): {
  regressions: readonly Regression[];
  distanceMs: ReadonlyMap<number, number>;
  notes: readonly string[];
} {
  const { whole, lacks } = withoutCut(run);
  const known = baseline.map(withoutCut).filter((one) => one.whole.ranks.length > 0);
  const notes = [...new Set([...lacks, ...baseline.flatMap((one) => withoutCut(one).lacks)])];
  if (whole.ranks.length === 0 || (baseline.length > 0 && known.length === 0))
    return { regressions: [], distanceMs: new Map(), notes };
  if (baseline.length === 0)
    return { regressions: peerRegressions(whole), distanceMs: new Map(), notes };
  const compared = compareRun(
    whole,
    known.map((one) => one.whole),
  );
  return { ...compared, notes: [...notes, ...compared.notes] };
}

/** Kernels stand at the end of a trace: of one that was cut off most are lost, and what is left looks idle. */
function withoutCut(run: RunProfile): { whole: RunProfile; lacks: readonly string[] } {
  const cut = run.ranks.filter(({ isCut }) => isCut);
  if (cut.length === 0) return { whole: run, lacks: run.lacks ?? [] };
  const says = `${cut.map(({ files }) => files.join(", ")).join(", ")}: cut off, so not compared`;
  const whole = { ...run, ranks: run.ranks.filter(({ isCut }) => !isCut) };
  return { whole, lacks: [...(run.lacks ?? []), says] };
}

const TYPES: Partial<Record<Cause, Accusation["type"]>> = {
  "gpu-slow": "gpu",
  "network-slow": "link",
  "cpu-stall": "rank",
};

function findingOf(one: Regression, run: RunProfile, job: Job): NewFinding {
  const { cause, ranks, why, weight, at } = one;
  const pair = ranks.length === 2 ? ([`rank:${ranks[0]}`, `rank:${ranks[1]}`] as const) : null;
  const isLink = cause === "network-slow" && pair !== null;
  const type = cause === "network-slow" && !isLink ? "rank" : (TYPES[cause] ?? "code");
  const isSome = ranks.length < run.ranks.length;
  // Hardware that is slow beside its peers is no regression of the code.
  const kind =
    cause === "gpu-slow" && (job.traceBaseline ?? []).length === 0 ? "fail-slow" : "regression";
  return {
    says: why,
    weight,
    at,
    data: {
      fact: "regressed-metric",
      regression: true,
      metric: one.metric,
      value: one.value,
      baseline: one.baseline,
      share: one.share,
      ...(one.stepMs === undefined ? {} : { stepMs: one.stepMs }),
      ...(one.call === undefined ? {} : { call: one.call }),
      ...(one.calls === undefined ? {} : { calls: one.calls }),
      threshold: one.threshold,
    },
    accuses: [{ kind, type, ranks, link: isLink ? pair : null, cause, weight, why }],
    clears: isSome ? run.ranks.map(({ rank }) => rank).filter((rank) => !ranks.includes(rank)) : [],
  };
}
