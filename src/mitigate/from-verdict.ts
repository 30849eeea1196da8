/**
 * A verdict as a job whose faults can be planned for. Costs that the inputs do not tell are set so that the model gives
 * the times that were seen; what is taken for granted is said.
 */
import type { Job } from "../model/job.ts";
import type { Mitigation, PlacedJob, SlowLink } from "../model/mitigation.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";
import { placesOf, type PlacesOfRanks } from "./layout.ts";
import { mitigationOf } from "./mitigation.ts";
import type { RemedyOptions } from "./remedies.ts";
import { identity, iterationMs } from "./topology/cost-model.ts";

export interface VerdictPlanOptions extends RemedyOptions {
  /** Micro-batches of a replica in an iteration. */
  readonly microBatches?: number;
}

/** Where nothing tells how many micro-batches an iteration has. */
const USUAL_MICRO_BATCHES = 8;
/** How far a congested link is taken to be slowed, where only its cost is known. */
const USUAL_CONGESTION = 4;
const COMPUTE = ["gpu-slow", "cpu-stall", "gpu-memory", "dataloader", "garbage-collection"];

/** Null where there is nothing to plan, and why where there might be. */
export function planForVerdict(
  job: Job,
  verdict: Verdict,
  options: VerdictPlanOptions = {},
): Mitigation | { readonly why: string } | null {
  if (verdict.kind !== "fail-slow" || verdict.suspects.length === 0) return null;
  const { suspects, findings } = verdict;
  const places = placesOf(job);
  if ("why" in places) return places;
  const slowDown = findings.find(
    ({ data }) => typeof data["beforeMs"] === "number" && typeof data["afterMs"] === "number",
  );
  if (!slowDown)
    return { why: "how long iterations take before and during the slow-down is not known" };
  const beforeMs = slowDown.data["beforeMs"] as number;
  const afterMs = slowDown.data["afterMs"] as number;
  const assumes = [...places.assumes];
  const microBatches =
    options.microBatches ?? countedMicroBatches(job, places) ?? USUAL_MICRO_BATCHES;
  if (options.microBatches === undefined && countedMicroBatches(job, places) === null)
    assumes.push(`${USUAL_MICRO_BATCHES} micro-batches a replica (--micro-batches says how many)`);

  const slots = slotsOf(job, places);
  const slow = suspects.filter(({ cause }) => COMPUTE.includes(cause));
  const network = suspects.filter(({ cause }) => cause === "network-slow");
  const ofRanks = (suspect: Suspect): number[] =>
    [
      ...new Set(suspect.ranks.map((rank) => places.ranks.findIndex((at) => at.includes(rank)))),
    ].filter((place) => place >= 0);
  const slowPlaces = new Set(slow.flatMap(ofRanks));
  const links = network.flatMap((suspect) => linksOf(suspect, job, places));
  const isNamed = network.every(({ type }) => type === "link" || type === "nic" || type === "rank");
  const nicPlaces = new Set(
    network.filter(({ link, ranks }) => !link && ranks.length <= MOST_NICS).flatMap(ofRanks),
  );
  if (slowPlaces.size + links.length + nicPlaces.size === 0)
    return {
      why:
        network.length > 0 && isNamed
          ? "which link of the group is slow is not known: test its links pairwise first"
          : "the cause is none that moving work helps against",
    };
  const total = places.replicas * microBatches;
  if (total < places.replicas) return { why: "there are fewer micro-batches than replicas" };

  const { replicas, stages } = places;
  const growthMs = Math.max(0, afterMs - beforeMs);
  const onNetwork = slowPlaces.size === 0;
  const gradientMs = onNetwork ? growthMs / (USUAL_CONGESTION - 1) : 0;
  if (onNetwork)
    assumes.push(
      `the congested way is ${USUAL_CONGESTION} times slower (only what it costs is known)`,
    );
  const passMs = ownBefore(findings, suspects, beforeMs) / (microBatches + stages - 1);
  const healthy: PlacedJob = {
    replicas,
    stages,
    microBatches: Array.from({ length: replicas }, () => microBatches),
    stageMs: Array.from({ length: stages }, () => passMs),
    gradientMs: Array.from({ length: stages }, () => gradientMs),
    activationMs: 0,
    restMs: 0,
    slots,
    links: [],
  };
  const here = identity(slots.length);
  const restMs = beforeMs - iterationMs(healthy, here);
  const known: PlacedJob = { ...healthy, restMs };
  const withFactor = (factor: number): PlacedJob => ({
    ...known,
    slots: slots.map((slot, place) => ({
      ...slot,
      compute: slowPlaces.has(place) ? factor : 1,
      network: nicPlaces.has(place) ? USUAL_CONGESTION : 1,
    })),
    links,
  });
  const placed = withFactor(
    onNetwork ? 1 : factorFor(afterMs, (f) => iterationMs(withFactor(f), here)),
  );
  if (stages > 1) assumes.push("stages take alike, but for the slow one");
  return mitigationOf(placed, options, assumes);
}

/** More ranks than that are a group, of which it is not known whose NIC is slow. */
const MOST_NICS = 8;
const MOST_FACTOR = 1000;

/** The factor with which the model gives the time that was seen. */
function factorFor(seenMs: number, modelMs: (factor: number) => number): number {
  let [low, high] = [1, MOST_FACTOR];
  for (let i = 0; i < 60; i++) {
    const middle = Math.sqrt(low * high);
    if (modelMs(middle) < seenMs) low = middle;
    else high = middle;
  }
  return high;
}

/** Time that the slow rank itself took before: of that its micro-batches are made. */
function ownBefore(
  findings: Verdict["findings"],
  suspects: readonly Suspect[],
  beforeMs: number,
): number {
  const evidence = new Set(suspects.flatMap((suspect) => suspect.evidence));
  for (const { id, data } of findings) {
    const own = data["ownMs"];
    if (evidence.has(id) && Array.isArray(own) && typeof own[0] === "number" && own[0] > 0)
      return Math.min(own[0], beforeMs);
  }
  return 0.8 * beforeMs;
}

function slotsOf(job: Job, { ranks }: PlacesOfRanks): PlacedJob["slots"] {
  const perMachine = new Map<string, number>();
  const machineAt = ranks.map(([first]) => job.ranks.get(first!)?.machine ?? null);
  for (const machine of machineAt)
    if (machine !== null) perMachine.set(machine, (perMachine.get(machine) ?? 0) + 1);
  return ranks.map((at, place) => {
    const machine = machineAt[place] ?? `rank ${at[0]}`;
    const isWhole = perMachine.get(machine) === 1;
    const span = at.length > 1 ? `ranks ${at[0]}-${at.at(-1)}` : `rank ${at[0]}`;
    const name = machineAt[place] === null ? span : isWhole ? machine : `${machine} (${span})`;
    return { name, machine, compute: 1, network: 1 };
  });
}

/** Links between two ranks or two machines, as links between slots. */
function linksOf({ link }: Suspect, job: Job, { ranks }: PlacesOfRanks): SlowLink[] {
  if (!link) return [];
  const [a, b] = link.map((end) =>
    ranks.flatMap((at, place) =>
      at.some((rank) => `rank:${rank}` === end || job.ranks.get(rank)?.machine === end)
        ? [place]
        : [],
    ),
  ) as [number[], number[]];
  return a.flatMap((from) =>
    b.filter((to) => to !== from).map((to) => ({ a: from, b: to, factor: USUAL_CONGESTION })),
  );
}

/** A stage sends each micro-batch once: what a first stage sends in an iteration tells how many there are. */
function countedMicroBatches(job: Job, { stages, ranks, replicas }: PlacesOfRanks): number | null {
  if (stages === 1) return null;
  const first = ranks[0]?.[0];
  const operators = first === undefined ? null : job.rankOperators.fetch(first);
  if (!operators || operators.from.length === 0) return null;
  const middle = operators.from.length >> 1;
  let sends = 0;
  for (let op = operators.from[middle]!; op < operators.to[middle]!; op++)
    if (operators.ops.isP2p[op] === 1 && operators.ops.isSend[op] === 1) sends++;
  return sends > 0 && replicas > 0 ? sends : null;
}

export function isPlan(plan: ReturnType<typeof planForVerdict>): plan is Mitigation {
  return plan !== null && "steps" in plan;
}
