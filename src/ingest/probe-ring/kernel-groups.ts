/** The members of a ring's communicators, once build-job knows them, for whoever measures bandwidth. */
import type { Rank } from "../../model/ids.ts";
import type { RankDump } from "../../model/job.ts";
import type { RankKernels, TraceGroup } from "../../model/kernels.ts";

export function withMembers(kernels: RankKernels, dumps: ReadonlyMap<Rank, RankDump>): RankKernels {
  const dump = kernels.rank === null ? undefined : dumps.get(kernels.rank)?.dump;
  if (kernels.coverage !== "instrumented" || dump?.file !== kernels.file) return kernels;
  const groups = kernels.groups.map((group, index): TraceGroup => {
    const known = dump.groups[index];
    const isWhole = known?.ranks && known.ranks.length === known.own?.size;
    return isWhole ? { ...group, ranks: known.ranks } : group;
  });
  const { collectives } = kernels;
  const peer = collectives.peer.map((place, row) =>
    place < 0 ? place : (groups[collectives.group[row]!]?.ranks?.[place] ?? -1),
  );
  return { ...kernels, groups, collectives: { ...collectives, peer } };
}
