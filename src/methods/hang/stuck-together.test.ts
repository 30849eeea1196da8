import { describe, expect, it } from "vitest";
import { jobOf, quietEnv } from "../../../test/support/in-memory.ts";
import type { NewFinding } from "../../model/finding.ts";
import { waitGraph } from "./wait-graph-method.ts";

const RANKS = [0, 1, 2, 3];
const START_NS = 1_700_000_000e9;
const TORCH = "/opt/venv/lib/python3.12/site-packages/torch";
const WAITS = `  File "${TORCH}/distributed/distributed_c10d.py", line 5030 in barrier\n`;
const COMPUTES = `  File "${TORCH}/nn/modules/linear.py", line 125 in forward\n`;

interface File {
  readonly name: string;
  readonly bytes: Uint8Array;
}
const file = (name: string, text: string): File => ({ name, bytes: Buffer.from(text) });

/** A collective that was issued and did not complete; no operator timing. */
function dump(rank: number): File {
  const entry = {
    record_id: 0,
    pg_id: 0,
    process_group: ["0", "default_pg"],
    collective_seq_id: 7,
    p2p_seq_id: 0,
    op_id: 7,
    profiling_name: "nccl:all_reduce",
    time_created_ns: START_NS,
    input_sizes: [[4]],
    input_dtypes: ["Float"],
    output_sizes: [[4]],
    output_dtypes: ["Float"],
    state: "scheduled",
    time_discovered_started_ns: null,
    time_discovered_completed_ns: null,
    retired: false,
    timeout_ms: 600_000,
    is_p2p: false,
    frames: [],
  };
  const groups = { "0": { name: "0", desc: "default_pg", ranks: JSON.stringify(RANKS) } };
  const text = { version: "2.10", pg_config: groups, pg_status: {}, entries: [entry], rank };
  return file(`flight-recorder/nccl_trace_rank_${rank}.json`, JSON.stringify(text));
}

const stack = (rank: number, frames: string): File =>
  file(
    `stacks/rank${rank}.txt`,
    `Current thread 0x00007f0000000000 (most recent call first):\n${frames}`,
  );

/** `perMachine` ranks on each. */
function accused(perMachine: number, files: readonly File[]): string[] {
  const ranks = RANKS.map((rank) => ({
    rank,
    machine: `node${Math.floor(rank / perMachine)}`,
    gpu: rank % perMachine,
  }));
  const job = jobOf([file("job.json", JSON.stringify({ worldSize: 4, ranks })), ...files]);
  return [...(waitGraph.run(job, quietEnv) as Iterable<NewFinding>)].flatMap(({ accuses }) =>
    accuses.map(({ type, ranks: of, cause }) => `${type} ${of.join()} ${cause}`),
  );
}

describe("an operator that all have issued and none completes, without timing", () => {
  it("is the network's between machines, and a GPU's within one", () => {
    expect(accused(2, RANKS.map(dump))).toEqual(["link 0,1,2,3 network-hang"]);
    expect(accused(4, RANKS.map(dump))).toEqual(["gpu 0,1,2,3 gpu-hang"]);
  });
});

describe("a rank without a dump", () => {
  const others = RANKS.slice(0, 3).map(dump);

  it("is accused, where nothing shows that it lives and waits", () => {
    expect(accused(2, others)).toEqual(["rank 3 process-gone"]);
  });

  it("is not gone where the launcher that started it goes on and says nothing of it", () => {
    const line = (rank: number): string =>
      `[default${rank}]:[rank${rank}]:[E1117 19:45:28.733045111 ProcessGroupNCCL.cpp:1628] [PG ID 0 PG GUID 0(default_pg) Rank ${rank}] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0\n`;
    const log = (ranks: readonly number[]): File => file("torchrun.log", ranks.map(line).join(""));
    const without = (rank: number): File[] => RANKS.filter((one) => one !== rank).map(dump);
    expect(accused(2, [...without(1), log([0, 2, 3])])).toEqual(["rank 1 process-stopped"]);
    // The last one may have been another launcher's.
    expect(accused(2, [...without(3), log([0, 1, 2])])).toEqual(["rank 3 process-gone"]);
  });

  it("is not gone where its stack was read", () => {
    const stands = RANKS.map((rank) => stack(rank, rank === 3 ? COMPUTES : WAITS));
    expect(accused(2, [...others, ...stands])).toEqual(["rank 3 cpu-stall"]);
  });

  it("is as the others, where its stack waits as theirs do", () => {
    const stands = RANKS.map((rank) => stack(rank, WAITS));
    expect(accused(2, [...others, ...stands])).toEqual(["link 0,1,2,3 network-hang"]);
  });
});
