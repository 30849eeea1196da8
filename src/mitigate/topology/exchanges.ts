/**
 * What the gradient exchanges of all stages take, and what they would take after a swap. A group loses one slot and
 * gains another: only their own ways are looked at, unless the one that leaves is the one that holds it up.
 */
import { groupFactor, memberFactor, type JobTables } from "./cost-model.ts";
import type { Work } from "./work.ts";

export interface Exchanges {
  /** By stage. */
  readonly ms: Float64Array;
  /** To be called when a slot or its links have become slower. */
  slower(slot: number): void;
  /** To be called before a and b change places. */
  swap(a: number, b: number): void;
  /** Sets `askedA` and `askedB`: for the stages where a and b sit now, if these changed places. */
  ask(a: number, b: number): void;
  readonly askedA: number;
  readonly askedB: number;
}

export function makeExchanges(
  job: JobTables,
  placeOf: Int32Array,
  slotAt: Int32Array,
  work: Work,
): Exchanges {
  const { replicas, stages, network, links, gradientMs } = job;
  const ms = new Float64Array(stages);
  const factors = new Float64Array(stages);
  /** By stage: the slot last left out, and the factor of the others. */
  const leftOut = new Int32Array(stages);
  const ofOthers = new Float64Array(stages);
  const stageSteps =
    Math.min(job.networkSlots.length, replicas) + (2 * links.factor.length) / stages;
  /** Only then may a stage come to sit in one machine. */
  const mayBeLocal = job.slotsPerMachine >= replicas;

  const refresh = (stage: number): void => {
    work.spent += stageSteps;
    factors[stage] = groupFactor(job, placeOf, slotAt, stage);
    ms[stage] = gradientMs[stage]! * factors[stage];
    leftOut[stage] = -1;
  };
  const take = (stage: number, exchangeMs: number, factor: number): void => {
    ms[stage] = exchangeMs;
    factors[stage] = factor;
    leftOut[stage] = -1;
  };
  const isHealthy = (slot: number): boolean =>
    network[slot] === 1 && links.from[slot] === links.from[slot + 1];

  const withoutSlot = (stage: number, slot: number): number => {
    const own = memberFactor(job, placeOf, slot, stage * replicas);
    if (own <= 1 || own < factors[stage]!) return factors[stage]!;
    if (leftOut[stage] !== slot) {
      work.spent += stageSteps;
      leftOut[stage] = slot;
      ofOthers[stage] = groupFactor(job, placeOf, slotAt, stage, slot);
    }
    return ofOthers[stage]!;
  };
  /** Of a stage where `goes` is replaced by `comes`. */
  const replaced = (stage: number, goes: number, comes: number): number => {
    const others = withoutSlot(stage, goes);
    const group = { oneMachine: false, leftOut: goes };
    const own = memberFactor(job, placeOf, comes, stage * replicas, group);
    return Math.max(others, own);
  };
  const swapPlaces = (a: number, b: number): void => {
    const place = placeOf[a]!;
    placeOf[a] = placeOf[b]!;
    placeOf[b] = place;
    slotAt[placeOf[a]] = a;
    slotAt[place] = b;
  };

  for (let s = 0; s < stages; s++) refresh(s);
  let factorA = 0;
  let factorB = 0;
  const exchanges = {
    ms,
    askedA: 0,
    askedB: 0,
    slower(slot: number): void {
      const stage = Math.floor(placeOf[slot]! / replicas);
      if (mayBeLocal) return refresh(stage);
      const own = memberFactor(job, placeOf, slot, stage * replicas);
      const factor = Math.max(factors[stage]!, own);
      take(stage, gradientMs[stage]! * factor, factor);
    },
    swap(a: number, b: number): void {
      const stageA = Math.floor(placeOf[a]! / replicas);
      const stageB = Math.floor(placeOf[b]! / replicas);
      exchanges.ask(a, b);
      if (stageA === stageB) return;
      take(stageA, exchanges.askedA, factorA);
      take(stageB, exchanges.askedB, factorB);
    },
    ask(a: number, b: number): void {
      const stageA = Math.floor(placeOf[a]! / replicas);
      const stageB = Math.floor(placeOf[b]! / replicas);
      exchanges.askedA = ms[stageA]!;
      exchanges.askedB = ms[stageB]!;
      factorA = factors[stageA]!;
      factorB = factors[stageB]!;
      if (stageA === stageB || replicas === 1) return;
      if (mayBeLocal) {
        work.spent += 2 * stageSteps + 2 * replicas;
        swapPlaces(a, b);
        factorA = groupFactor(job, placeOf, slotAt, stageA);
        factorB = groupFactor(job, placeOf, slotAt, stageB);
        swapPlaces(a, b);
      } else if (isHealthy(a) && isHealthy(b)) return;
      else {
        factorA = replaced(stageA, a, b);
        factorB = replaced(stageB, b, a);
      }
      exchanges.askedA = gradientMs[stageA]! * factorA;
      exchanges.askedB = gradientMs[stageB]! * factorB;
    },
  };
  return exchanges;
}
