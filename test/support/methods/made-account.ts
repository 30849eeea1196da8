/** Accounts of made jobs: a few noisy ranks in groups, in which somebody may wait less than the others. */
import type { Account, AccountGroup } from "../../../src/methods/slow/account.ts";
import { seeded } from "../../../src/base/random.ts";
import type { Wire } from "../../../src/methods/slow/wire-times.ts";

export interface MadeJob {
  readonly seed: number;
  readonly ranks: number;
  readonly blocks: number;
  /** Ranks of a tensor-parallel group, next to each other; the same places of all groups are a data-parallel group. */
  readonly tensor?: number;
  /** Deviation of a rank's time inside operators, shares of a block. */
  readonly noise?: number;
  /** What the others wait for a rank in a block, shares of a block. */
  readonly costs?: (rank: number, block: number) => number;
  /** Times as long as usual over the wire of a group (its number) in a block. */
  readonly slower?: (group: number, block: number) => number;
}

export function madeAccount(job: MadeJob): Account {
  const { seed, ranks, blocks, tensor = 2, noise = 0.01, costs = () => 0, slower = () => 1 } = job;
  const random = seeded(seed);
  const normal = (): number => random() + random() + random() + random() - 2;
  const places = Array.from({ length: ranks }, (_, rank) => rank);
  const tp = Array.from({ length: ranks / tensor }, (_, g) =>
    places.filter((rank) => Math.floor(rank / tensor) === g),
  );
  const dp = Array.from({ length: tensor }, (_, g) => places.filter((r) => r % tensor === g));
  const groups: AccountGroup[] = [places, ...tp, ...dp]
    .filter((own, g) => own.length > 1 && (g === 0 || own.length < ranks))
    .map((own, g) => ({ id: g - 1, places: Int32Array.from(own) }));
  const inside = new Float64Array(ranks * blocks);
  const lengthMs = new Float64Array(blocks);
  for (let k = 0; k < blocks; k++) {
    const most = Math.max(0, ...places.map((rank) => costs(rank, k)));
    lengthMs[k] = 100 * (1 + most + 0.01 * normal());
    for (const rank of places)
      inside[rank * blocks + k] = 0.5 + most - costs(rank, k) + 2 * noise * normal();
  }
  const zero = (): Float64Array => new Float64Array(ranks * blocks);
  const unknown = (): Float64Array => zero().fill(NaN);
  const wires: Wire[] = groups.slice(1).map(({ id, places: own }, g) => ({
    places: [...own],
    isPair: false,
    group: id,
    kind: `${own.length}`,
    least: Float64Array.from(
      { length: blocks },
      (_, k) => 0.1 * slower(g, k) * Math.exp(0.1 * normal()),
    ),
  }));
  return {
    ranks: places,
    blocks,
    numbers: Float64Array.from({ length: blocks }, (_, k) => k + 3),
    areIterations: true,
    unitMs: 100,
    lengthMs,
    inside,
    issuing: zero(),
    groups,
    roles: new Int32Array(ranks),
    besideUnseen: new Uint8Array(ranks),
    calls: {
      behind: unknown(),
      behindRole: unknown(),
      firstBehind: unknown(),
      waited: zero(),
      waitedGpu: zero(),
    },
    wires,
  };
}

/** Every so many ranks on a machine, each machine under a leaf of its own. */
export function onMachines(
  ranks: number,
  each: number,
): { machine: string; leaf: string | null }[] {
  return Array.from({ length: ranks }, (_, rank) => ({
    machine: `node${Math.floor(rank / each)}`,
    leaf: null,
  }));
}
