/** The machines of a job, with what the job's layout says of them. */
import { groupBy } from "../../base/group-by.ts";
import { ranges } from "../../base/text.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { MetricSet } from "../../model/metrics.ts";
import { shortName } from "../../model/machine-names.ts";
import { alignFleet, type AlignOptions } from "./align.ts";
import { joinSets, type JoinHints } from "./names/join-names.ts";

export function jobFleet(job: Job): Fleet | null {
  const sets = job.metrics ?? [];
  if (sets.length === 0) return null;
  const names = joinSets(sets, nameHints(job));
  const machines = [...new Set(sets.flatMap((set) => set.machines.map(names.nameOf)))];
  const hints = jobHints(job, machines);
  const only = hints.only && withNamelessGpus(hints.only, sets, names.nameOf);
  const fleet = alignFleet(sets, { names, ...hints, ...(only ? { only } : {}) });
  return only === hints.only ? fleet : { ...fleet, isJob: false };
}

/**
 * Where the GPUs' exporters are known by names that nothing joins with the job's machines (their pods'), leaving them out
 * would leave no GPUs at all: then all of them stay.
 */
function withNamelessGpus(
  only: ReadonlySet<string>,
  sets: readonly MetricSet[],
  nameOf: (machine: string) => string,
): ReadonlySet<string> {
  const withGpus = new Set(
    sets.flatMap(({ machines, samples }) =>
      samples
        .filter(({ name }) => IS_OF_GPUS.test(name))
        .flatMap(({ machine }) => [...new Set(machine)].map((m) => nameOf(machines[m]!))),
    ),
  );
  const known = [...only].filter((name) => withGpus.has(name)).length;
  const nameless = [...withGpus].filter((name) => !only.has(name));
  if (2 * known >= only.size || 2 * nameless.length < only.size) return only;
  return new Set([...only, ...nameless]);
}

const IS_OF_GPUS = /^(?:dcgm|nvidia|gpu-)/i;

export function nameHints(job: Job): JoinHints {
  const jobNames = new Set([...job.ranks.values()].flatMap(({ machine }) => machine ?? []));
  return { jobNames, ...(job.machineNames ? { table: job.machineNames } : {}) };
}

/** Fewer are no job to compare; the names are then likely to be others than the monitoring's. */
const LEAST_KNOWN = 3;

/** What the job's layout says of the machines that are monitored. */
export function jobHints(job: Job, names: readonly string[]): AlignOptions {
  const ranks = ranksByMachine(job, names);
  const known = names.filter((name) => ranks.get(name)!.length > 0);
  const stageOf = stagesOf(job, names);
  return known.length >= LEAST_KNOWN ? { stageOf, only: new Set(known) } : { stageOf };
}

/** Machine, as the monitoring names it → "stage 2", "stages 0–1". */
function stagesOf(job: Job, names: readonly string[]): Map<string, string> {
  const stages = new Map<string, string>();
  for (const [name, ranks] of ranksByMachine(job, names)) {
    // A rank whose log is lost tells no stage; those beside it do.
    const seen = ranks.flatMap((rank) => job.ranks.get(rank)?.stage ?? []);
    if (seen.length === 0 || seen.length * 2 < ranks.length) continue;
    const distinct = [...new Set(seen)];
    stages.set(name, `${distinct.length > 1 ? "stages" : "stage"} ${ranges(distinct)}`);
  }
  return stages;
}

/** Which ranks run on a machine; monitoring often says "node003" where the job says "node003.cluster.local". */
export function ranksByMachine(job: Job, names: readonly string[]): Map<string, Rank[]> {
  const byMachine = groupBy(
    [...job.ranks.values()].filter(({ machine }) => machine !== null),
    ({ machine }) => machine!,
  );
  const byShortName = new Map(
    [...byMachine].map(([machine, ranks]) => [shortName(machine), ranks]),
  );
  return new Map(
    names.map((name) => {
      const found = byMachine.get(name) ?? byShortName.get(shortName(name)) ?? [];
      return [name, found.map(({ rank }) => rank)];
    }),
  );
}
