/** Which ranks run the same program, and where one leaves it. */
import { describe, expect, it } from "vitest";
import { collective, type Fields } from "../../../test/support/ingest/flight-entries.ts";
import { jobOf } from "../../../test/support/in-memory.ts";
import type { Job } from "../../model/job.ts";
import { findOutOfStep } from "./mismatch.ts";

const GROUPS = {
  train: { id: 1, ranks: [0, 1, 2, 3] },
  weights: { id: 2, ranks: [0, 4] },
};
type Name = keyof typeof GROUPS;

/** Iterations of ten all-reduces; rank 0 hands the weights on behind each, to a rank outside. */
function jobWhere(extra: (rank: number, iteration: number) => readonly Name[]): Job {
  const files = [0, 1, 2, 3].map((rank) => {
    const numbers: Record<Name, number> = { train: 0, weights: 0 };
    const entries: Fields[] = [];
    const call = (group: Name, name: string): void => {
      const process_group = [group, group];
      const pg_id = GROUPS[group].id;
      entries.push(
        collective(name, ++numbers[group], { process_group, pg_id, record_id: entries.length }),
      );
    };
    for (let iteration = 1; iteration <= 6; iteration++) {
      for (let k = 0; k < 10; k++) call("train", "all_reduce");
      for (const group of extra(rank, iteration)) call(group, "broadcast");
      call("train", "reduce_scatter");
    }
    const own = Object.entries(GROUPS).filter(([, { ranks }]) => ranks.includes(rank));
    const pg_config = Object.fromEntries(
      own.map(([name, { ranks }]) => [name, { name, desc: name, ranks: JSON.stringify(ranks) }]),
    );
    const dump = { version: "2.10", pg_config, pg_status: {}, entries };
    return { name: `fr_${rank}`, bytes: Buffer.from(JSON.stringify(dump)) };
  });
  return jobOf(files);
}

describe("a rank", () => {
  it("keeps in step although it also calls in a group that its peers are not in", () => {
    const job = jobWhere((rank) => (rank === 0 ? ["weights"] : []));
    expect(findOutOfStep(job, [0, 1, 2, 3], false)).toBeNull();
  });

  it("is out of step where it calls something else in the group of all", () => {
    const job = jobWhere((rank, iteration) => (rank === 0 && iteration === 4 ? ["train"] : []));
    expect(findOutOfStep(job, [0, 1, 2, 3], false)?.ranks).toEqual([0]);
  });
});
