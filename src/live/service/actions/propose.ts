/**
 * What could be done about an incident, from its verdict. Machines are only proposed to be taken out where the verdict
 * is sure and blames the machine itself: a drained machine costs a job its place, and the wrong one mends nothing.
 */
import { createHash } from "node:crypto";
import { harmless } from "../../../base/text.ts";
import type { Cause } from "../../../model/cause.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import type { Shares } from "../microbatches/jobs.ts";
import { dueWords } from "./due.ts";
import { canDo } from "./drivers/choose.ts";
import { isPlainHostName } from "./hooks.ts";
import { limitWords, TAKE_OUT } from "./limits.ts";
import type { ActionsConfig } from "./types.ts";

export const LEAST_CONFIDENCE = 0.8;
const LEAST_MACHINE_CONFIDENCE = 0.5;
const MOST_MACHINES = 8;
const MOST_REPLICAS = 32_768;
/** Suspects far behind the first one are not sure, however sure the verdict is. */
const LIKE_THE_FIRST = 0.5;

/** Causes that a machine can have. Others are mended in code, data or configuration, on whatever machine. */
const OF_MACHINES: readonly Cause[] = [
  "gpu-slow",
  "gpu-hang",
  "gpu-error",
  "network-slow",
  "network-hang",
  "process-gone",
  "process-stopped",
  "cpu-stall",
];

/**
 * `taken`: machines of the job that were taken out within the last day. `spares`: those that no other incident has, in
 * order. `shares`: of a job that asks for its micro-batches. Pure: the same record, the same proposals.
 */
export function proposeActions(
  incident: Incident,
  config: ActionsConfig,
  taken: readonly string[] = [],
  spares: readonly string[] = [],
  shares: Shares | null = null,
): IncidentAction[] {
  const { verdict } = incident;
  if (!verdict || incident.state === "suspected") return [];
  const machines = machinesOf(incident, verdict, config, taken, spares);
  return [
    ...machineActions(incident, machines, config, taken),
    ...microBatchActions(incident, verdict, config, shares),
    ...otherActions(incident, verdict, machines, config),
  ];
}

/** A machine to take out, and what drivers need to know of that. */
interface TakenOut {
  readonly machine: string;
  readonly suspect: Suspect;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Each machine gets a spare of its own, the same for all that is proposed for it. */
function machinesOf(
  incident: Incident,
  verdict: Verdict,
  config: ActionsConfig,
  taken: readonly string[],
  spares: readonly string[],
): TakenOut[] {
  const own = spareOf(incident.actions);
  const inUse = new Set([...taken, ...own.values()]);
  const free = spares.filter((name) => !inUse.has(name));
  return suspectsToTakeOut(verdict, config).map(({ machine, suspect }) => {
    const replacement = own.get(machine) ?? free.shift() ?? null;
    const data = {
      machine,
      rank: suspect.ranks[0] ?? null,
      cause: suspect.cause,
      exclude: [...new Set([...taken, machine])],
      ...((config.spares ?? []).length === 0 ? {} : { replacement }),
    };
    return { machine, suspect, data };
  });
}

/** By machine: the spare that an earlier proposal of the incident named, as long as nobody gave it back. */
function spareOf(actions: readonly IncidentAction[]): ReadonlyMap<string, string> {
  const named = actions.flatMap(({ state, data }) => {
    const { machine, replacement } = data as { machine?: unknown; replacement?: unknown };
    if (state === "dismissed" || state === "undone") return [];
    if (typeof machine !== "string" || typeof replacement !== "string") return [];
    return [[machine, replacement] as const];
  });
  return new Map(named);
}

function machineActions(
  incident: Incident,
  machines: readonly TakenOut[],
  config: ActionsConfig,
  taken: readonly string[],
): IncidentAction[] {
  const gone = new Set(taken);
  return machines.flatMap(({ machine, suspect, data }) => {
    const isPlain = isPlainHostName(machine);
    const limit = limitWords(machine, [...gone], incident.job, config);
    if (limit === null) gone.add(machine);
    const remark = isPlain ? limit : "its name is no plain host name, so no hook gets it";
    const both = ["cordon-node", "exclude-node"].map((word) => {
      const why = `${suspect.why}${replacementWords(data)}${dueWords(incident, word)}`;
      const action = actionOf(incident, word, machine, why, data);
      return { action, canBe: canDo(action, config) };
    });
    // A cluster has Kubernetes or Slurm: the one that nothing does is only worth showing where nothing does either.
    const shown = both.some(({ canBe }) => canBe) ? both.filter((one) => one.canBe) : both;
    return shown.map(({ action, canBe }) => ({
      ...action,
      canRun: canBe && remark === null,
      why: remark === null ? action.why : `${action.why}; ${remark}`,
    }));
  });
}

function replacementWords({ machine, replacement }: Readonly<Record<string, unknown>>): string {
  if (replacement === undefined) return "";
  return typeof replacement === "string"
    ? `; replace ${String(machine)} by ${replacement}`
    : "; no spare machine is free";
}

/** Each machine once, with the suspect that stands for it. */
export function suspectsToTakeOut(
  verdict: Verdict,
  config: ActionsConfig,
): { machine: string; suspect: Suspect }[] {
  if (verdict.confidence < leastConfidence(verdict, config)) return [];
  const victims = new Set(verdict.victims);
  const first = verdict.suspects[0]?.score ?? 0;
  const found = new Map<string, Suspect>();
  for (const suspect of verdict.suspects) {
    const { machine, ranks, score } = suspect;
    if (machine === null || found.has(machine) || found.size >= MOST_MACHINES) continue;
    const isLike = score >= LIKE_THE_FIRST * first;
    const waits = ranks.some((rank) => victims.has(rank));
    if (isLike && !waits && isMachineAtFault(suspect, verdict)) found.set(machine, suspect);
  }
  return [...found].map(([machine, suspect]) => ({ machine, suspect }));
}

/**
 * Monitoring alone is seldom surer than 0.65, and still right more often than not: a person is asked, and reads the
 * confidence beside it. Nothing is done by itself below leastConfidence.
 */
function leastConfidence({ kind }: Verdict, config: ActionsConfig): number {
  const { leastConfidence: least = LEAST_CONFIDENCE, leastMachineConfidence } = config;
  return kind === "faulty-machine"
    ? Math.min(least, leastMachineConfidence ?? LEAST_MACHINE_CONFIDENCE)
    : least;
}

/**
 * A GPU error may be the program's own (an illegal access), a stuck CPU a deadlock: there the verdict's advice decides,
 * which names taking the machine out only where that mends it.
 */
function isMachineAtFault({ type, cause, machine }: Suspect, verdict: Verdict): boolean {
  if (type !== "rank" && type !== "gpu" && type !== "machine" && type !== "nic") return false;
  const isKnown = OF_MACHINES.includes(cause);
  const isUnlikePeers = verdict.kind === "faulty-machine" && cause === "unknown";
  if (!isKnown && !isUnlikePeers) return false;
  if (verdict.actions.some((action) => action.do === "replace-machine")) return true;
  if (cause === "gpu-hang" || cause === "gpu-slow") return true;
  return (verdict.mitigation?.steps ?? []).some(
    ({ exclude }) => exclude?.some((name) => name === machine) ?? false,
  );
}

function microBatchActions(
  incident: Incident,
  verdict: Verdict,
  config: ActionsConfig,
  shares: Shares | null,
): IncidentAction[] {
  if (shares?.isAllowed) return [];
  if (shares && verdict.kind === "fail-slow" && isOfCompute(verdict)) {
    const planned = verdict.mitigation?.steps.find(({ strategy }) => strategy === "S2")?.why;
    const why = planned ?? "replicas that compute slowly take fewer micro-batches, the others more";
    // Counts follow the replicas' speeds, so they are no part of what is approved.
    const data = { asks: true, suits: shares.best, taken: shares.taken };
    const action = actionOf(incident, "micro-batches", incident.job, why, data);
    return [{ ...action, canRun: canDo(action, config) }];
  }
  const step = verdict.mitigation?.steps.find(({ microBatches }) => microBatches !== undefined);
  const counts = step?.microBatches;
  if (!step || !counts || counts.length > MOST_REPLICAS) return [];
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0)) return [];
  // A step that only swaps machines leaves the shares equal.
  if (counts.every((count) => count === counts[0])) return [];
  const data = { counts, weights: step.gradientWeights ?? null };
  const action = actionOf(incident, "micro-batches", incident.job, step.why, data);
  return [{ ...action, canRun: canDo(action, config) }];
}

/** A slow network is no reason to compute elsewhere. */
function isOfCompute({ suspects }: Verdict): boolean {
  return suspects.some(({ cause }) => cause !== "network-slow");
}

/** Further words of the verdict, where somebody has configured what they mean. */
function otherActions(
  incident: Incident,
  verdict: Verdict,
  [best]: readonly TakenOut[],
  config: ActionsConfig,
): IncidentAction[] {
  const [suspect] = verdict.suspects;
  const { swaps, placement } = verdict.mitigation?.steps.find((step) => step.swaps) ?? {};
  const data = {
    machine: null,
    rank: suspect?.ranks[0] ?? null,
    cause: suspect?.cause ?? null,
    ...best?.data,
    ...(swaps === undefined ? {} : { swaps }),
    ...(placement === undefined ? {} : { placement }),
  };
  const words = new Set<string>(["cordon-node", "exclude-node", "micro-batches"]);
  return verdict.actions.flatMap(({ do: word, target, why }) => {
    if (words.has(word)) return [];
    words.add(word);
    if (TAKE_OUT.includes(word) && !best) return [];
    const isOut = TAKE_OUT.includes(word);
    const action = actionOf(
      incident,
      word,
      target,
      `${why}${isOut ? replacementWords(data) : ""}${dueWords(incident, word)}`,
      data,
    );
    return canDo(action, config) ? [{ ...action, canRun: true }] : [];
  });
}

/** The id follows from what is to be done, so that the same proposal is found again after a restart. */
function actionOf(
  incident: Incident,
  word: string,
  target: string,
  why: string,
  data: Readonly<Record<string, unknown>>,
): IncidentAction {
  const what = JSON.stringify([target, data["machine"], data["counts"]]);
  const hash = createHash("sha256").update(what).digest("hex").slice(0, 8);
  return {
    id: `${word.replace(/[^A-Za-z0-9-]/g, "-")}-${hash}`,
    do: word,
    target: harmless(target),
    why: harmless(why),
    state: "proposed",
    canRun: false,
    changedMs: incident.changedMs,
    outcome: "",
    data,
  };
}

/**
 * Proposals of a new record beside what was done about the old one. What was decided or run stays; a proposal that no
 * longer follows from the verdict goes.
 */
export function mergeActions(
  existing: readonly IncidentAction[],
  proposed: readonly IncidentAction[],
): IncidentAction[] {
  const byId = new Map(proposed.map((action) => [action.id, action]));
  const kept = existing.flatMap((action) => {
    const again = byId.get(action.id);
    byId.delete(action.id);
    if (action.state !== "proposed")
      return again ? [{ ...action, canRun: again.canRun }] : [action];
    return again ? [{ ...again, changedMs: action.changedMs, outcome: action.outcome }] : [];
  });
  return [...kept, ...byId.values()];
}
