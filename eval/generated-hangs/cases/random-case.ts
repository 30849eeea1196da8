import type { Random } from "../../../src/base/random.ts";
import { pick, randomInt, seeded } from "../../../src/base/random.ts";
import { FAULT_KINDS } from "./faults.ts";
import type { HangCase, HangOptions } from "./hang-case.ts";
import { tryHangCase } from "./hang-case.ts";
import type { Layout } from "./layout.ts";
import type { Nuisances } from "./nuisance.ts";
import type { ProgramOptions } from "./program.ts";

export interface Bounds {
  readonly minRanks: number;
  readonly maxRanks: number;
}

/** A case whose layout, program, fault and nuisances all come from the seed. */
export function randomHangCase(seed: number, bounds: Bounds): HangCase {
  for (let draw = 0; draw < 50; draw++) {
    const made = tryHangCase(randomHangOptions(seed * 1009 + draw, bounds));
    // Some draws cannot hang, such as a skipped collective where all groups are alike.
    if (made !== null) return made;
  }
  throw new Error(
    `seed ${seed} gives no hang within ${bounds.minRanks} to ${bounds.maxRanks} ranks`,
  );
}

export function randomHangOptions(seed: number, bounds: Bounds): HangOptions {
  const random = seeded(seed);
  const layout = randomLayout(random, bounds);
  const culprits = chance(random, 0.7) ? 1 : 2 + randomInt(random, 2);
  return {
    ...layout,
    seed,
    fault: pick(random, FAULT_KINDS),
    culprits: layout.tp * layout.pp * layout.dp < 8 ? 1 : culprits,
    program: randomProgram(random, layout),
    faultIteration: 2 + randomInt(random, 2),
    eagerSends: chance(random, 0.5),
    unusedGroups: chance(random, 0.3),
    nuisances: randomNuisances(random),
  };
}

function chance(random: Random, probability: number): boolean {
  return random() < probability;
}

function randomLayout(random: Random, { minRanks, maxRanks }: Bounds): Layout {
  for (;;) {
    const tp = pick(random, [1, 2, 2, 4, 8]);
    const pp = pick(random, [1, 2, 2, 4, 8]);
    const least = Math.ceil(minRanks / (tp * pp));
    const most = Math.floor(maxRanks / (tp * pp));
    if (most < 1 || least > most) continue;
    // Small jobs are as likely as large ones.
    const dp = Math.floor(least * Math.pow((most + 1) / least, random()));
    return { tp, pp, dp: Math.min(dp, most) };
  }
}

function randomProgram(random: Random, layout: Layout): Partial<ProgramOptions> {
  const experts = layout.dp > 1 && chance(random, 0.25);
  return {
    // At least as many as stages for 1f1b to alternate, but a few hundred records a rank at most.
    microBatches: Math.max(2, Math.min(layout.pp, 4)) + randomInt(random, 3),
    layers: 1 + randomInt(random, layout.pp > 4 ? 2 : 3),
    schedule: pick(random, ["gpipe", "1f1b"]),
    tensor: pick(random, ["all_reduce", "gather-scatter"]),
    data: pick(random, ["all_reduce", "overlapped", "sharded"]),
    embedding: chance(random, 0.4),
    experts,
    expertSync: experts && chance(random, 0.5),
    world: pick(random, ["none", "none", "barrier", "all_reduce"]),
    loadSync: chance(random, 0.4),
    pipelineWarmUp: chance(random, 0.3),
    sequence: pick(random, [512, 2048, 4096]),
    hidden: pick(random, [1024, 5120]),
  };
}

function randomNuisances(random: Random): Partial<Nuisances> {
  return {
    missing: chance(random, 0.15) ? 1 + randomInt(random, 3) : 0,
    ringSize: chance(random, 0.25) ? 20 + randomInt(random, 150) : Infinity,
    onlyActive: chance(random, 0.15),
    emptied: chance(random, 0.15) ? 1 + randomInt(random, 2) : 0,
    timing: chance(random, 0.75),
    json: chance(random, 0.2) ? pick(random, [0.3, 1]) : 0,
    mixedVersions: chance(random, 0.2),
    duplicate: chance(random, 0.1),
    permutedIds: chance(random, 0.15),
    stacks: chance(random, 0.4),
    batched: chance(random, 0.4),
  };
}
