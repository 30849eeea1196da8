import { describe, expect, it } from "vitest";
import { jobOf, quietEnv } from "../../../test/support/in-memory.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import { fuse } from "../../verdict/fuse.ts";
import { stacks } from "./stacks.ts";

const TORCH = "/opt/venv/lib/python3.12/site-packages/torch";
const WAITS = `  File "${TORCH}/distributed/distributed_c10d.py", line 5030 in barrier
  File "/srv/job/train.py", line 181 in train_step
`;
const COMPUTES = `  File "${TORCH}/nn/modules/linear.py", line 125 in forward
  File "/srv/job/train.py", line 164 in train_step
`;
const LOADS = `  File "${TORCH}/utils/data/dataloader.py", line 1251 in _try_get_data
  File "/srv/job/train.py", line 150 in train_step
`;
const RANKS = Array.from({ length: 16 }, (_, rank) => rank);
const START_S = 1_700_000_000;

interface File {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const file = (name: string, text: string): File => ({ name, bytes: Buffer.from(text) });

/** 16 ranks, two a machine; those that `outside` names stand there. */
function stackFiles(outside: Readonly<Record<number, string>>): File[] {
  const ranks = RANKS.map((rank) => ({ rank, machine: `node${rank >> 1}`, gpu: rank & 1 }));
  return [
    file("job.json", JSON.stringify({ worldSize: 16, ranks })),
    ...RANKS.map((rank) =>
      file(
        `stacks/rank${rank}.txt`,
        `Current thread 0x00007f0000000000 (most recent call first):\n${outside[rank] ?? WAITS}`,
      ),
    ),
  ];
}

/** A dump with one collective, ended or not. */
function dumpFile(rank: number, state: "completed" | "scheduled"): File {
  const entry = {
    record_id: 0,
    pg_id: 0,
    process_group: ["0", "default_pg"],
    collective_seq_id: 7,
    p2p_seq_id: 0,
    op_id: 7,
    profiling_name: "nccl:all_reduce",
    time_created_ns: START_S * 1e9,
    input_sizes: [[4]],
    input_dtypes: ["Float"],
    output_sizes: [[4]],
    output_dtypes: ["Float"],
    state,
    time_discovered_started_ns: null,
    time_discovered_completed_ns: state === "completed" ? START_S * 1e9 + 1e6 : null,
    retired: state === "completed",
    timeout_ms: 600_000,
    is_p2p: false,
    frames: [],
  };
  const dump = {
    version: "2.10",
    pg_config: { "0": { name: "0", desc: "default_pg", ranks: JSON.stringify(RANKS) } },
    pg_status: {},
    entries: [entry],
    rank,
  };
  return file(`flight-recorder/nccl_trace_rank_${rank}.json`, JSON.stringify(dump));
}

const stamp = (seconds: number): string =>
  new Date((START_S + seconds) * 1000).toISOString().replace("T", " ").slice(0, 23);

/** Rank 15 reports an iteration every 5 s for 100 s. */
function logFile(): File {
  const lines = Array.from(
    { length: 20 },
    (_, i) =>
      ` [${stamp(5 * (i + 1))}] iteration ${i + 1}/ 400 | consumed samples: ${i} | elapsed time per iteration (ms): 5000.0 | learning rate: 3.0E-04 |`,
  );
  return file("logs/rank15.log", `${lines.join("\n")}\n`);
}

/** A GPU's utilisation every 10 s, up to a time. */
function metricsFile(untilS: number): File {
  const lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"];
  for (let s = 0; s <= untilS; s += 10)
    lines.push(`DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="node0"} 98 ${START_S + s}`);
  return file("metrics/metrics.om", `${lines.join("\n")}\n# EOF\n`);
}

function findingsOf(job: Job): NewFinding[] {
  return stacks.applies(job) ? [...(stacks.run(job, quietEnv) as Iterable<NewFinding>)] : [];
}

function accusedIn(files: readonly File[]): string[] {
  return findingsOf(jobOf(files)).flatMap(({ accuses }) =>
    accuses.map(({ kind, ranks, cause, weight }) => `${kind} ${ranks.join()} ${cause} ${weight}`),
  );
}

describe("a rank whose stack stands outside communication", () => {
  it("is accused where nothing tells that the job runs", () => {
    expect(accusedIn(stackFiles({ 3: COMPUTES }))).toEqual(["hang 3 cpu-stall 0.7"]);
  });

  it("is accused where the others' operators are pending", () => {
    const dumps = RANKS.map((rank) => dumpFile(rank, rank === 3 ? "completed" : "scheduled"));
    const job = jobOf([...stackFiles({ 3: COMPUTES }), ...dumps]);
    expect(job.dumps.size).toBe(16);
    expect(findingsOf(job)[0]!.accuses).toMatchObject([{ kind: "hang", ranks: [3] }]);
  });

  it("is accused where only its own dump is here, in which nothing is pending", () => {
    const files = [...stackFiles({ 3: COMPUTES }), dumpFile(3, "completed")];
    expect(accusedIn(files)).toEqual(["hang 3 cpu-stall 0.7"]);
  });

  it("is not accused where no operator is pending on those that seem to wait for it", () => {
    const dumps = RANKS.map((rank) => dumpFile(rank, "completed"));
    expect(accusedIn([...stackFiles({ 3: COMPUTES }), ...dumps])).toEqual([]);
    // One dump of a rank that seems to wait is enough.
    expect(accusedIn([...stackFiles({ 3: COMPUTES }), dumpFile(9, "completed")])).toEqual([]);
  });

  it("is not accused where all logs say that training finished", () => {
    const logs = RANKS.map((rank) =>
      file(`logs/rank${rank}.log`, `${stamp(1)} [INFO] [rank${rank}] training finished\n`),
    );
    expect(accusedIn([...stackFiles({ 3: COMPUTES }), ...logs])).toEqual([]);
    expect(accusedIn([...stackFiles({ 3: COMPUTES }), ...logs.slice(0, 8), logFile()])).toEqual([
      "hang 3 cpu-stall 0.7",
    ]);
  });

  it("is not accused where iterations went on as long as anything was monitored", () => {
    const files = [...stackFiles({ 3: COMPUTES }), logFile()];
    expect(accusedIn([...files, metricsFile(100)])).toEqual([]);
    // Monitoring goes on in a hang; and where it ended long before, it does not tell.
    expect(accusedIn([...files, metricsFile(700)])).toEqual(["hang 3 cpu-stall 0.7"]);
    expect(accusedIn([...files, metricsFile(40)])).toEqual(["hang 3 cpu-stall 0.7"]);
  });

  it("is accused where nearly all others stand in one line of the script, which waits in C++", () => {
    const asks = `  File "/srv/job/train.py", line 176 in reduce_loss\n  File "/srv/job/train.py", line 181 in train_step\n`;
    const all = (of: string) => Object.fromEntries(RANKS.map((rank) => [rank, of]));
    expect(accusedIn(stackFiles({ ...all(asks), 3: COMPUTES }))).toEqual([
      "hang 3 cpu-stall 0.595",
    ]);
    expect(accusedIn(stackFiles(all(asks)))).toEqual([]);
    // Half of them are no crowd, and data that hardly anybody gets are no wait for the GPU.
    const half = Object.fromEntries(RANKS.slice(8).map((rank) => [rank, COMPUTES]));
    expect(accusedIn(stackFiles({ ...all(asks), ...half }))).toEqual([]);
    expect(accusedIn(stackFiles({ ...all(LOADS), 3: COMPUTES }))).toEqual([]);
  });

  it("is hardly accused where ranks of many machines stand there", () => {
    const spread = { 1: COMPUTES, 4: COMPUTES, 8: COMPUTES, 13: COMPUTES };
    expect(accusedIn(stackFiles(spread))[0]).toBe("hang 1 cpu-stall 0.15");
    expect(accusedIn(stackFiles({ 2: COMPUTES, 3: COMPUTES }))[0]).toBe("hang 2 cpu-stall 0.7");
    // A file system holds many machines at once.
    const held = { 1: LOADS, 4: LOADS, 8: LOADS, 13: LOADS };
    expect(accusedIn(stackFiles(held))[0]).toBe("hang 1 dataloader 0.7");
  });

  it("explains in a job that runs why it is late, but does not accuse it by itself", () => {
    const dumps = RANKS.map((rank) => dumpFile(rank, "completed"));
    const job = jobOf([...stackFiles({ 3: COMPUTES, 6: LOADS }), ...dumps]);
    const found = findingsOf(job);
    expect(found.flatMap(({ accuses }) => accuses)).toMatchObject([
      { kind: "fail-slow", ranks: [6], cause: "dataloader" },
    ]);
    const findings = found.map((one, i) => ({
      ...one,
      id: `f${i}`,
      method: "hang/stacks" as const,
    }));
    expect(fuse(job, findings, []).suspects).toEqual([]);
  });
});
