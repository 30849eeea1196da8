/** Where a fault of a family sits, how strong it is, and what is therefore true. */
import { pick, randomInt, type Random } from "../../../src/base/random.ts";
import type { SuspectType } from "../../../src/model/finding.ts";
import { parseFault, type FaultSpec } from "../../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../../src/simulate/cluster/spec.ts";
import { makeTopology } from "../../../src/simulate/cluster/topology.ts";
import { magnitude } from "./draw-shape.ts";
import { RECIPES, type Faulty, type Recipe } from "./recipes.ts";
import type { Family, Truth } from "./scenario.ts";
import { costing, type Bounds, type Costed } from "./severity.ts";

export interface DrawnFault {
  readonly family: Family;
  readonly fault: FaultSpec;
  readonly truth: Truth;
  readonly growth: number;
}

const TRIES = 8;
export interface CostRange {
  /** As shares of an iteration. */
  readonly least: number;
  readonly most: number;
}

/**
 * Greyhound Table 1 and §3.4: slow-downs of up to more than half; here by order of magnitude. From a tenth on they count as
 * one: below that Greyhound takes a change for jitter (§4.2), and Holmes calls no iteration irregular (δ = 1.1). What is
 * drawn is without noise; noise makes healthy iterations longer than slow ones, so that 0.13 is seen as a tenth.
 */
export const USUAL_COST: CostRange = { least: 0.13, most: 0.9 };
/** What nobody calls a slow-down, for a table of its own. */
export const FAINT_COST: CostRange = { least: 0.03, most: 0.13 };

/** `not`: machines that another fault has. */
export function drawFault(
  family: Faulty,
  spec: ClusterSpec,
  from: number,
  random: Random,
  not: readonly string[] = [],
  cost: CostRange = USUAL_COST,
): DrawnFault {
  const recipe = RECIPES[family];
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const placed = drawPlace(recipe, spec, random, not);
    const fault = parseFault(`${recipe.core(random)}:${placed.words}:from=${from}`);
    const truth: Truth = {
      kind: recipe.kind,
      type: typeOf(recipe, placed.ranks.length),
      ranks: placed.ranks,
      machine: placed.machine,
      link: placed.link,
      name: placed.name,
      cause: recipe.cause,
      fromIteration: from,
    };
    if (recipe.most === undefined) return { family, fault, truth, growth: 0 };
    const wanted = magnitude(random, cost.least, cost.most);
    const costed = tryCosting(spec, fault, wanted, { least: cost.least, most: recipe.most });
    if (costed !== null) return { family, ...costed, truth };
  }
  // A job in which nothing of the kind can be slow: its GPUs always can.
  return drawFault("gpu-slow", spec, from, random, not, cost);
}

/** What may sit on a machine or on one of its ranks is what it was drawn to be. */
function typeOf({ type, place }: Recipe, ranks: number): SuspectType {
  if (place !== "rank or machine") return type;
  return ranks > 1 ? "machine" : "rank";
}

/** A link that nothing passes is refused by the engine. */
function tryCosting(
  spec: ClusterSpec,
  fault: FaultSpec,
  wanted: number,
  within: Bounds,
): Costed | null {
  try {
    return costing(spec, fault, wanted, within);
  } catch {
    return null;
  }
}

interface Placed {
  readonly words: string;
  readonly ranks: readonly number[];
  readonly machine: string | null;
  readonly link: readonly [string, string] | null;
  readonly name: string | null;
}

function drawPlace(
  recipe: Recipe,
  spec: ClusterSpec,
  random: Random,
  not: readonly string[],
): Placed {
  const topology = makeTopology(spec);
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  const nameOf = (rank: number): string => topology.machineName(topology.machineOf(rank));
  // A switch may serve every machine: then a second fault has to share one with it.
  const freeOf = (some: readonly number[]): readonly number[] => {
    const free = some.filter((rank) => !not.includes(nameOf(rank)));
    return free.length > 0 ? free : some;
  };
  const lanes = spec.gpus / spec.pp;
  const one = (rank: number): Placed => ({
    words: `rank=${rank}`,
    ranks: [rank],
    machine: nameOf(rank),
    link: null,
    name: null,
  });
  const rank = pick(random, freeOf(all));
  switch (recipe.place) {
    case "rank":
      return one(rank);
    case "loading rank":
      return one(pick(random, freeOf(all.slice(0, lanes))));
    case "machine":
      return wholeMachine(
        nameOf(rank),
        all.filter((other) => nameOf(other) === nameOf(rank)),
      );
    case "rank or machine":
      // Contention is the machine's (Greyhound §3.2, case 1); a badly pinned process is one rank's.
      return random() < 0.6
        ? wholeMachine(
            nameOf(rank),
            all.filter((other) => nameOf(other) === nameOf(rank)),
          )
        : one(rank);
    case "link": {
      const a =
        spec.pp > 1 ? randomInt(random, spec.gpus - lanes) : randomInt(random, spec.gpus - 8);
      const b = spec.pp > 1 ? a + lanes : a + 8;
      return {
        words: `link=${a}-${b}`,
        ranks: [a, b],
        machine: null,
        link: [`rank:${a}`, `rank:${b}`],
        name: null,
      };
    }
    case "switch": {
      const leaf = topology.leafOf(rank);
      const name = topology.leafName(leaf);
      return {
        words: `switch=${name}`,
        ranks: all.filter((other) => topology.leafOf(other) === leaf),
        machine: null,
        link: null,
        name,
      };
    }
  }
}

function wholeMachine(machine: string, ranks: readonly number[]): Placed {
  return { words: `machine=${machine}`, ranks, machine, link: null, name: null };
}
