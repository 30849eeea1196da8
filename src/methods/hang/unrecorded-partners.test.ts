import { describe, expect, it } from "vitest";
import { jobOf, quietEnv } from "../../../test/support/in-memory.ts";
import type { NewFinding } from "../../model/finding.ts";
import { waitGraph } from "./wait-graph-method.ts";

const RANKS = [0, 1, 2, 3];
const START_NS = 1_700_000_000e9;
type State = "started" | "scheduled" | "completed";

/** Two all-reduces of all ranks; the second has this state. Pairs of ranks have a group in which nothing is recorded. */
function dump(rank: number, state: State | null) {
  const entry = (seq: number, of: State): object => ({
    record_id: seq,
    pg_id: 0,
    process_group: ["0", "default_pg"],
    collective_seq_id: seq,
    p2p_seq_id: 0,
    op_id: seq,
    profiling_name: "nccl:all_reduce",
    time_created_ns: START_NS + seq * 1e6,
    ...(of === "completed" ? { duration_ms: 1 } : {}),
    input_sizes: [[4]],
    input_dtypes: ["Float"],
    output_sizes: [[4]],
    output_dtypes: ["Float"],
    state: of,
    // Of what is pending, the dump itself asks: a minute later.
    time_discovered_started_ns:
      of === "scheduled" ? null : START_NS + (of === "started" ? 60e9 : seq * 2e6),
    time_discovered_completed_ns: of === "completed" ? START_NS + seq * 2e6 : null,
    retired: of === "completed",
    timeout_ms: 600_000,
    is_p2p: false,
    frames: [],
  });
  const entries = [entry(1, "completed"), ...(state ? [entry(2, state)] : [])];
  const pair = rank < 2 ? [0, 1] : [2, 3];
  const pg_config = {
    "0": { name: "0", desc: "default_pg", ranks: JSON.stringify(RANKS) },
    [`${pair[0]}a`]: { name: `${pair[0]}a`, desc: "mesh_tp", ranks: JSON.stringify(pair) },
  };
  const text = JSON.stringify({ version: "2.10", pg_config, pg_status: {}, entries, rank });
  return { name: `flight-recorder/nccl_trace_rank_${rank}.json`, bytes: Buffer.from(text) };
}

function told(states: readonly (readonly [rank: number, state: State | null])[]) {
  const job = jobOf(states.map(([rank, state]) => dump(rank, state)));

  const found = [...(waitGraph.run(job, quietEnv) as Iterable<NewFinding>)];
  return {
    accused: found.flatMap(({ accuses }) =>
      accuses.map(({ ranks, cause }) => `${ranks.join()} ${cause}`),
    ),
    most: Math.max(...found.flatMap(({ accuses }) => accuses.map(({ weight }) => weight))),
    cleared: new Set(found.flatMap(({ clears }) => clears)),
  };
}

describe("a GPU that starts nothing any more, in a job with a group that leaves no records", () => {
  const others = [
    [0, "started"],
    [1, "started"],
  ] as const;

  it("waits for a partner in that group whose CPU stopped", () => {
    const { accused, cleared } = told([...others, [2, null], [3, "scheduled"]]);
    expect(accused).toEqual(["2 cpu-stall"]);
    expect(cleared).toContain(3);
  });

  it("may wait for a partner that left no dump", () => {
    const { accused, most } = told([...others, [3, "scheduled"]]);
    expect(accused).toEqual(["3 gpu-hang"]);
    expect(most).toBeLessThan(0.5);
  });

  it("is accused where its partner waits like all others", () => {
    expect(told([...others, [2, "started"], [3, "scheduled"]]).accused).toEqual(["3 gpu-hang"]);
  });
});
