/** The judge of slowness on a kept job. */
import { judge, type Hypothesis } from "../../src/methods/slow/posterior.ts";
import type { Answer } from "./answer.ts";
import { accountOf } from "./job-account.ts";
import { operatorsOf, transfersOf, type KeptJob } from "./kept-job.ts";

export interface Ours extends Answer {
  /** That nobody is slow. */
  readonly healthy: number;
  readonly probability: number;
}

/** `numbers`: the iterations to compare, in order; which of them are slow it finds out. */
export function ours(job: KeptJob, numbers: readonly number[]): Ours {
  const { topology, spec } = job.simulation;
  const account = accountOf(job, numbers);
  const where = account.ranks.map((rank) => ({
    machine: topology.machineName(topology.machineOf(rank)),
    leaf: topology.leafName(topology.leafOf(rank)),
  }));
  const { healthy, hypotheses } = judge(account, where, 0);
  const [best] = hypotheses;
  const isAccused = best !== undefined && best.probability > healthy && best.kind !== "all";
  if (!isAccused)
    return { cause: "compute", ranks: [], share: 0, healthy, probability: best?.probability ?? 0 };
  const isNetwork = best.wire !== null;
  const groups = isNetwork
    ? best.wire.wires.map((w) => account.wires[w]!)
    : job.groups
        .filter(
          ({ ranks }) => ranks.length < spec.gpus && best.places.some((p) => ranks.includes(p)),
        )
        .map(({ id, ranks }) => ({ group: id, places: ranks }));
  return {
    cause: isNetwork ? "network" : "compute",
    ranks: best.places,
    name: nameOf(best),
    share: shareOf(job, groups),
    healthy,
    probability: best.probability,
  };
}

/** As cases.ts names what it breaks. */
function nameOf({ device, places, kind }: Hypothesis): string {
  if (device?.kind === "leaf") return device.name.replace(/^leaf/, "leaf ");
  if (device?.kind === "nic") return `nic of rank ${places[0]}`;
  if (device?.kind === "link" || (kind === "wire" && places.length === 2))
    return `link ${places.join("–")}`;
  if (device) return `${device.kind} ${device.name}`;
  return `${kind === "wire" ? "group of ranks" : "rank"} ${places.join(", ")}`;
}

/** What single operators of these groups are of all. Two ranks with transfers between them are a group of those. */
function shareOf(
  job: KeptJob,
  groups: readonly { readonly group: number; readonly places: readonly number[] }[],
): number {
  const { shown, simulation } = job;
  const { lanes } = simulation.lanes;
  let records = 0;
  for (const { group, places } of groups)
    for (const rank of places) {
      const isTransfers = group < 0 || job.groups[group]!.carriesP2p;
      records += (isTransfers ? transfersOf(job, rank) : operatorsOf(job, rank, group)).length;
    }
  const all = shown.reduce((sum, ops) => sum + ops.length * lanes, 0);
  return records / all;
}
