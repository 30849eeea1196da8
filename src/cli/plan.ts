/** `faultline plan microbatches|topology|mitigation`: what to do about a slow device, computed. */
import { readFile } from "node:fs/promises";
import { UserError, errorText } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { isPlan, planForVerdict } from "../mitigate/from-verdict.ts";
import { allocateMicroBatches } from "../mitigate/microbatches.ts";
import { mitigationOf } from "../mitigate/mitigation.ts";
import { type Overheads, type RemedyOptions, USUAL_OVERHEADS } from "../mitigate/remedies.ts";
import { planTopology } from "../mitigate/topology/plan-topology.ts";
import type { Mitigation, PlacedJob } from "../model/mitigation.ts";
import { diagnose } from "../pipeline/diagnose.ts";
import { counts, planLines, time } from "../report/mitigation-words.ts";
import { type PlacedFlags, placedJob, refuseWithFiles } from "./placed-job.ts";
import { writeReport } from "./output.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

interface PlanOutput {
  readonly json?: boolean;
  readonly out?: string;
}

export interface MicroBatchFlags extends PlanOutput {
  readonly times: readonly number[];
  readonly total: number;
  readonly fixed?: readonly number[];
  readonly multipleOf?: number;
}

export async function runPlanMicroBatches(io: Io, flags: MicroBatchFlags): Promise<number> {
  const { times: timesMs, total, fixed, multipleOf = 1 } = flags;
  const plan = allocateMicroBatches({
    timesMs,
    total,
    multipleOf,
    ...(fixed === undefined ? {} : { fixedMs: fixed }),
  });
  const replicas = timesMs.length;
  const even = Math.floor(total / multipleOf / replicas) * multipleOf;
  const rest = (total - even * replicas) / multipleOf;
  const evenMakespan = timesMs.reduce(
    (most, t, i) => Math.max(most, (fixed?.[i] ?? 0) + t * (even + (i < rest ? multipleOf : 0))),
    0,
  );
  const document = { schema: "faultline.plan/1", ...plan, evenMakespan };
  const gain = evenMakespan / plan.makespan;
  return await answer(io, flags, document, [
    `micro-batches by replica: ${counts(plan.allocation)}`,
    `slowest replica: ${number(plan.makespan)} (even shares: ${number(evenMakespan)}, ${gain.toFixed(2)} times as long); no allocation is faster, lower bound ${number(plan.lowerBound)}`,
    `gradient weights: ${plan.weights.length <= 16 ? plan.weights.map((w) => w.toFixed(3)).join(" ") : "in --json"} (a replica's mean gradient times its weight, then the mean over replicas)`,
  ]);
}

export interface TopologyFlags extends PlacedFlags, PlanOutput {
  readonly rebalance?: boolean;
  readonly multipleOf?: number;
}

export async function runPlanTopology(io: Io, flags: TopologyFlags): Promise<number> {
  const job = await readPlaced(flags);
  const total = job.microBatches.reduce((sum, count) => sum + count, 0);
  const { multipleOf = 1 } = flags;
  const share = (timesMs: Float64Array, fixedMs: Float64Array): number =>
    allocateMicroBatches({ timesMs, fixedMs, total, multipleOf }).makespan;
  const plan = planTopology(job, flags.rebalance ? { rebalance: share } : {});
  const name = (slot: number): string => job.slots[slot]!.name;
  const swaps = plan.swaps.map(({ a, b }) => [name(a), name(b)] as const);
  const placement = Array.from(plan.placeOf, (place, slot) => ({
    node: name(slot),
    replica: place % job.replicas,
    stage: Math.floor(place / job.replicas),
  }));
  const { beforeMs, afterMs, healthyMs, why } = plan;
  // Activations and the embedding's gradients also pass a NIC, which the model does not know of (remedies.ts).
  const assumes = job.slots.some(({ network }) => network > 1)
    ? ["a slow NIC only delays the exchange of gradients; moving it made simulated jobs slower"]
    : [];
  const document = {
    schema: "faultline.plan/1",
    swaps,
    beforeMs,
    afterMs,
    healthyMs,
    why,
    placement,
    assumes,
  };
  if (swaps.length === 0) return await answer(io, flags, document, [why]);
  return await answer(io, flags, document, [
    why,
    ...swaps.map(([a, b], i) => `${String(i + 1).padStart(3)}. swap ${a} and ${b}`),
    `iteration: ${time(beforeMs)} → ${time(afterMs)} (healthy ${time(healthyMs)})`,
    ...assumes.map((assumption) => `assuming ${assumption}`),
  ]);
}

export interface MitigationFlags extends PlacedFlags, PlanOutput {
  readonly job?: string;
  readonly overhead?: readonly (readonly [keyof Overheads, number])[];
  readonly spares?: number;
  readonly multipleOf?: number;
  readonly swap: boolean;
  readonly uneven: boolean;
  readonly quiet?: boolean;
}

/** From a job's files, or from what is known of it. */
export async function runPlanMitigation(
  io: Io,
  paths: readonly string[],
  flags: MitigationFlags,
): Promise<number> {
  const options: RemedyOptions = {
    overheads: { ...USUAL_OVERHEADS, ...Object.fromEntries(flags.overhead ?? []) },
    mayBeUneven: flags.uneven,
    maySwap: flags.swap,
    ...(flags.spares === undefined ? {} : { spares: flags.spares }),
    ...(flags.multipleOf === undefined ? {} : { multipleOf: flags.multipleOf }),
  };
  if (paths.length > 0) refuseWithFiles(flags);
  else if (flags.job !== undefined)
    throw new UserError("--job has no effect without a job's files", "give the files as well", 2);
  if (paths.length === 0)
    return await tell(io, mitigationOf(await readPlaced(flags), options), flags, []);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const asked = { paths, ...(flags.job === undefined ? {} : { jobFile: flags.job }) };
  const { job, verdict } = await diagnose(asked, env).finally(done);
  const { microBatches } = flags;
  const plan = planForVerdict(job, verdict, {
    ...options,
    ...(microBatches === undefined ? {} : { microBatches }),
  });
  if (isPlan(plan)) return await tell(io, plan, flags, [verdict.summary]);
  const why = plan?.why ?? `the verdict is "${verdict.kind}", not a slowdown with a suspect`;
  const document = { schema: "faultline.plan/1", steps: [], why };
  return await answer(io, flags, document, [verdict.summary, `nothing to plan: ${why}`]);
}

async function tell(
  io: Io,
  plan: Mitigation,
  flags: PlanOutput,
  head: readonly string[],
): Promise<number> {
  const bound = `however long the fault lasts, this loses at most ${plan.bound.toFixed(1)} times as much as knowing its length from the start`;
  return await answer(io, flags, { schema: "faultline.plan/1", ...plan }, [
    ...head,
    ...planLines(plan),
    ...(plan.steps.length > 0 ? [bound] : []),
    ...plan.assumes.map((assumption) => `assuming ${assumption}`),
  ]);
}

async function readPlaced(flags: PlacedFlags): Promise<PlacedJob> {
  if (flags.file === undefined) return placedJob(flags, null);
  let text: string;
  try {
    text = await readFile(flags.file, "utf8");
  } catch (error) {
    throw new UserError(`cannot read ${flags.file}: ${errorText(error)}`, "give a JSON file", 3);
  }
  return placedJob(flags, text);
}

async function answer(
  io: Io,
  { json, out }: PlanOutput,
  document: unknown,
  lines: readonly string[],
): Promise<number> {
  const text = JSON.stringify(document, null, 2);
  if (out !== undefined) {
    const { renderPlanPage } = await import("../report/html/plan-page.ts");
    await writeReport(out, text, renderPlanPage(lines));
  }
  io.out.write(json ? `${text}\n` : `${lines.map(harmless).join("\n")}\n`);
  return 0;
}

function number(value: number): string {
  return String(Number(value.toPrecision(6)));
}
