/**
 * A verdict as a job whose faults can be planned for. Costs that the inputs do not tell are set so that the model gives
 * the times that were seen; what is taken for granted is said.
 */
import { factsOf } from "../model/facts.ts";
import type { Job } from "../model/job.ts";
import type { Mitigation, MitigationStep, PlacedJob, SlowLink } from "../model/mitigation.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";
import { placesOf, type PlacesOfRanks } from "./layout.ts";
import { microBatchesOf } from "./micro-batch-count.ts";
import { mitigationOf } from "./mitigation.ts";
import type { RemedyOptions } from "./remedies.ts";
import { identity, iterationMs } from "./topology/cost-model.ts";

interface VerdictPlanOptions extends RemedyOptions {
  /** Micro-batches of a replica in an iteration. */
  readonly microBatches?: number;
}

/** How far a congested way is taken to be slowed, where only its cost is known. */
const USUAL_CONGESTION = 4;
const COMPUTE = ["gpu-slow", "cpu-stall", "gpu-memory", "dataloader", "garbage-collection"];

/** Null where there is nothing to plan, and why where there might be. */
export function planForVerdict(
  job: Job,
  verdict: Verdict,
  options: VerdictPlanOptions = {},
): Mitigation | { readonly why: string } | null {
  if (verdict.kind !== "fail-slow" || verdict.suspects.length === 0) return null;
  if (verdict.when.to !== null) return { why: "the slowdown is over" };
  const places = placesOf(job);
  if ("why" in places) return places;
  const [slowDown] = factsOf(verdict.findings, "slow-down");
  if (!slowDown) return { why: "iteration times before and during the slowdown are unknown" };
  // The job was slow long before the suspect was: most of it would stay.
  if (verdict.answer?.slower === null && !slowDown.intermittent)
    return { why: "how much of the slowdown is due to the suspect is not known" };
  const trouble = troubleOf(job, verdict, places);
  if ("why" in trouble) return trouble;
  const counted = microBatchesOf(job, places, options.microBatches);
  const multipleOf = options.multipleOf ?? counted.multipleOf;
  const seen = {
    beforeMs: slowDown.beforeMs,
    afterMs: slowDown.afterMs,
    ownMs: ownTimeOf(verdict),
    networkMs: trouble.isNetwork ? networkGrowth(verdict) : 0,
  };
  const assumes = [
    ...places.assumes,
    ...counted.assumes,
    ...(places.mustBeEven === null ? [] : [places.mustBeEven]),
    ...(places.stages > 1 ? ["all stages but the slow one take equal time"] : []),
    ...(trouble.isNetwork
      ? [`the congested path is ${USUAL_CONGESTION} times slower (only its cost is known)`]
      : []),
  ];
  const placed = fitted(slotsOf(job, places), places, counted.microBatches, trouble, seen);
  const mayBeUneven = options.mayBeUneven !== false && places.mustBeEven === null;
  const seats = {
    ranks: places.ranks,
    machineOf: (rank: number) => job.ranks.get(rank)?.machine ?? null,
  };
  const plan = mitigationOf(placed, { ...options, multipleOf, mayBeUneven }, assumes, seats);
  return { ...plan, steps: plan.steps.map((step) => withOwnMachines(step, placed, trouble.own)) };
}

interface PlacedTrouble {
  readonly slow: ReadonlySet<number>;
  readonly nics: ReadonlySet<number>;
  readonly links: readonly SlowLink[];
  readonly isNetwork: boolean;
  /** By place: the machines of the suspects in it. */
  readonly own: ReadonlyMap<number, ReadonlySet<string>>;
}

/** Whose places the suspects are. */
function troubleOf(
  job: Job,
  { suspects }: Verdict,
  places: PlacesOfRanks,
): PlacedTrouble | { readonly why: string } {
  const placesOfSuspect = ({ ranks }: Suspect): number[] =>
    places.ranks.flatMap((at, place) => (at.some((rank) => ranks.includes(rank)) ? [place] : []));
  const slow = new Set(
    suspects.filter(({ cause }) => COMPUTE.includes(cause)).flatMap(placesOfSuspect),
  );
  const network = suspects.filter(({ cause }) => cause === "network-slow");
  const links = network.flatMap((suspect) => linksOf(suspect, job, places));
  // Several machines are a group of which some way is slow; which NIC or link is unknown.
  const isOneMachine = ({ ranks }: Suspect): boolean =>
    new Set(ranks.map((rank) => machineOf(job, rank))).size === 1;
  const alone = network.filter((suspect) => !suspect.link && isOneMachine(suspect));
  const nics = new Set(alone.flatMap(placesOfSuspect));
  if (slow.size + links.length + nics.size > 0)
    return {
      slow,
      nics,
      links,
      isNetwork: links.length + nics.size > 0,
      own: ownMachines(job, suspects, places),
    };
  return {
    why:
      network.length > 0
        ? "it is unknown which link of the group is slow: test its links pairwise first"
        : "moving work does not help against this cause",
  };
}

/** A group that spans machines has one suspect's machine to leave out, not the group's first. */
function ownMachines(
  job: Job,
  suspects: readonly Suspect[],
  { ranks }: PlacesOfRanks,
): ReadonlyMap<number, ReadonlySet<string>> {
  const blamed = new Set(suspects.flatMap((suspect) => suspect.ranks));
  const ends = new Set(suspects.flatMap(({ link }) => link ?? []));
  const own = new Map<number, Set<string>>();
  for (const [place, at] of ranks.entries()) {
    const bad = at.filter((rank) => blamed.has(rank) || isEnd(job, rank, ends));
    if (bad.length > 0) own.set(place, new Set(bad.map((rank) => machineOf(job, rank))));
  }
  return own;
}

function isEnd(job: Job, rank: number, ends: ReadonlySet<string>): boolean {
  return ends.has(`rank:${rank}`) || ends.has(machineOf(job, rank));
}

/** A slot stands for its first rank's machine; whose machine is to be left out, the suspects say. */
function withOwnMachines(
  step: MitigationStep,
  { slots }: PlacedJob,
  own: PlacedTrouble["own"],
): MitigationStep {
  if (!step.exclude) return step;
  const left = new Set(
    step.exclude.flatMap((machine) => {
      const suspects = [...own].filter(([place]) => slots[place]!.machine === machine);
      return suspects.length === 0 ? [machine] : suspects.flatMap(([, machines]) => [...machines]);
    }),
  );
  const exclude = [...left].sort();
  const why = step.why.replace(step.exclude.join(", "), () => exclude.join(", "));
  return { ...step, exclude, why };
}

/** The name that stands for it where its machine is not known. */
function machineOf(job: Job, rank: number): string {
  return job.ranks.get(rank)?.machine ?? `rank ${rank}`;
}

interface Seen {
  readonly beforeMs: number;
  readonly afterMs: number;
  /** What the slow rank itself took before; NaN where unknown. */
  readonly ownMs: number;
  /** What of the growth the network is to blame for; NaN where unknown. */
  readonly networkMs: number;
}

/** Costs and factors with which the model gives the times that were seen. */
function fitted(
  slots: PlacedJob["slots"],
  { replicas, stages }: PlacesOfRanks,
  microBatches: number,
  { slow, nics, links, isNetwork }: PlacedTrouble,
  { beforeMs, afterMs, ownMs, networkMs }: Seen,
): PlacedJob {
  const here = identity(slots.length);
  const growthMs = Math.max(0, afterMs - beforeMs);
  const ofNetwork =
    slow.size === 0 ? growthMs : Math.min(growthMs, Number.isNaN(networkMs) ? 0 : networkMs);
  const gradientMs = isNetwork ? ofNetwork / (USUAL_CONGESTION - 1) : 0;
  // A micro-batch's pass. In a pipeline another stage may be the slowest, so the whole iteration is taken to be passes;
  // without stages the rank's own time tells it, if iterations have room for that.
  const room = (beforeMs - gradientMs) / (microBatches + stages - 1);
  const own = ownMs / microBatches;
  const passMs = Math.max(1e-6, stages === 1 && own > 0 ? Math.min(own, room) : room);
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
  const restMs = beforeMs - iterationMs(healthy, here);
  const withFactor = (factor: number, withNetwork: boolean): PlacedJob => ({
    ...healthy,
    restMs,
    slots: slots.map((slot, place) => ({
      ...slot,
      compute: slow.has(place) ? factor : 1,
      network: withNetwork && nics.has(place) ? USUAL_CONGESTION : 1,
    })),
    links: withNetwork ? links : [],
  });
  if (slow.size === 0) return withFactor(1, true);
  const factor = factorFor(afterMs - ofNetwork, (f) => iterationMs(withFactor(f, false), here));
  return withFactor(factor, true);
}

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

/** A suspect's own time before it became slow, as the evidence says; NaN where it does not. */
function ownTimeOf({ suspects, findings }: Verdict): number {
  const evidence = new Set(suspects.flatMap((suspect) => suspect.evidence));
  const blamed = new Set(suspects.flatMap(({ ranks }) => ranks));
  const said = findings.filter(({ id }) => evidence.has(id));
  const own = factsOf(said, "slow-rank")
    .flatMap(({ judged }) => judged.compared.ranks)
    .map(({ rank, ownMs: [before] }) => (blamed.has(rank) ? before : null));
  return own.find((ms) => ms !== null && ms > 0) ?? NaN;
}

/** Milliseconds an iteration that the first finding says a rank or a device costs. */
function networkGrowth({ suspects, findings }: Verdict): number {
  const ids = new Set(
    suspects.filter(({ cause }) => cause === "network-slow").flatMap(({ evidence }) => evidence),
  );
  const said = findings.filter(({ id }) => ids.has(id));
  return factsOf(said, "slow-rank", "slow-device")[0]?.growthMs ?? NaN;
}

function slotsOf(job: Job, { ranks }: PlacesOfRanks): PlacedJob["slots"] {
  const perMachine = new Map<string, number>();
  const machineAt = ranks.map(([first]) => machineOf(job, first!));
  for (const machine of machineAt) perMachine.set(machine, (perMachine.get(machine) ?? 0) + 1);
  return ranks.map((at, place) => {
    const machine = machineAt[place]!;
    const span = at.length > 1 ? `ranks ${at[0]}-${at.at(-1)}` : `rank ${at[0]}`;
    const isKnown = (job.ranks.get(at[0]!)?.machine ?? null) !== null;
    // Of a group that spans machines the first one's name would say too little.
    const isInside = isKnown && at.every((rank) => machineOf(job, rank) === machine);
    const isWhole = perMachine.get(machine) === 1;
    const name = !isInside ? span : isWhole ? machine : `${machine} (${span})`;
    return { name, machine, compute: 1, network: 1 };
  });
}

/** Links between two ranks or two machines, as links between slots. */
function linksOf({ link }: Suspect, job: Job, { ranks }: PlacesOfRanks): SlowLink[] {
  if (!link) return [];
  const [a, b] = link.map((end) =>
    ranks.flatMap((at, place) =>
      at.some((rank) => isEnd(job, rank, new Set([end]))) ? [place] : [],
    ),
  ) as [number[], number[]];
  return a.flatMap((from) =>
    b.filter((to) => to !== from).map((to) => ({ a: from, b: to, factor: USUAL_CONGESTION })),
  );
}

export function isPlan(plan: ReturnType<typeof planForVerdict>): plan is Mitigation {
  return plan !== null && "steps" in plan;
}
