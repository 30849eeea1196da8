/** One case: a job, healthy runs of it, and the run in question. The same seed, the same case. */
import { pick, randomInt, seeded } from "../../src/base/random.ts";
import type { Cause } from "../../src/model/cause.ts";
import { severitiesFromCosts } from "../../src/simulate/cluster/costs.ts";
import { UserError } from "../../src/base/errors.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { drawJob, drawJobKind, STEPS, tracedRanks, type JobKind } from "./jobs.ts";
import type { RegressionKind } from "./regressions.ts";
import { profileOf } from "./traced-run.ts";
import type { RunProfile } from "../../src/model/trace-profile.ts";

export interface Case {
  readonly seed: number;
  readonly job: JobKind;
  /** null for a healthy one. */
  readonly regression: RegressionKind | null;
  readonly cause: Cause | null;
  readonly fault: string;
  readonly culprits: readonly number[];
  readonly run: ClusterSpec;
  readonly healthy: readonly ClusterSpec[];
  readonly ranks: readonly number[];
}

export function drawCase(
  seed: number,
  regression: RegressionKind | null,
  job: JobKind | null = null,
): Case {
  const random = seeded(seed);
  const kind = job ?? (regression ? pick(random, regression.jobs) : drawJobKind(random));
  const spec = {
    ...drawJob(
      random,
      kind,
      regression?.leastGpus,
      regression?.mostGpus,
      regression?.needs?.gpusPerMachine,
    ),
    ...regression?.needs,
  };
  const drawn = regression?.draw(random, spec) ?? { text: "", culprits: [] };
  const reseeded = (): ClusterSpec => ({ ...spec, seed: randomInt(random, 2 ** 31) });
  const healthy = Array.from({ length: pick(random, [2, 3]) }, reseeded);
  const unbroken = reseeded();
  const own =
    drawn.text === "" ? unbroken : broken(regression!.change?.(unbroken) ?? unbroken, drawn.text);
  return {
    seed,
    job: kind,
    regression,
    cause: regression?.cause ?? null,
    fault: drawn.text,
    culprits: drawn.culprits,
    run: own,
    healthy,
    ranks: tracedRanks(spec, drawn.culprits, regression?.isWholeJob ?? false),
  };
}

/** Where a fault cannot cost as little as asked for (a wait undoes what overlaps), it costs what it must. */
function broken(spec: ClusterSpec, text: string): ClusterSpec {
  const fault = parseFault(text);
  try {
    const { faults } = severitiesFromCosts({ ...spec, faults: [fault] });
    return { ...spec, faults: faults.map((each) => ({ ...each, cost: 0 })) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...spec, faults: [{ ...fault, cost: 0, severity: 2 }] };
  }
}

export function profilesOf(one: Case): { run: RunProfile; healthy: RunProfile[] } {
  return {
    run: profileOf(one.run, one.ranks, STEPS, "run"),
    healthy: one.healthy.map((spec, i) => profileOf(spec, one.ranks, STEPS, `healthy ${i + 1}`)),
  };
}
