import { describe, expect, it } from "vitest";
import { jobOf, quietEnv } from "../../../test/support/in-memory.ts";
import type { NewFinding } from "../../model/finding.ts";
import { watchdog } from "./watchdog.ts";

const RANKS = Array.from({ length: 16 }, (_, rank) => rank);
const at = (rank: number, ms: number): string =>
  `[rank${rank}]:[E1115 00:42:01.${ms}000000 ProcessGroupNCCL`;
const STARTED = "initializing torch distributed, world size 16";

type Said = "nothing" | "dumps" | "times out";

function log(rank: number, said: Said): { name: string; bytes: Uint8Array } {
  const lines = [`2026-11-15 00:41:37.409 [INFO] [rank${rank}] ${STARTED}`];
  if (said === "times out")
    lines.push(
      `${at(rank, 742)}.cpp:689] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=12000) ran for 12007 milliseconds before timing out.`,
      `${at(rank, 743)}.cpp:2303] [PG ID 1 PG GUID 5(TENSOR_PARALLEL_0) Rank ${rank}]  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40`,
    );
  if (said === "dumps")
    lines.push(
      `${at(rank, 744)}.cpp:1628] [PG ID 0 PG GUID 0(default_pg) Rank ${rank}] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0`,
    );
  return { name: `logs/rank${rank}.log`, bytes: Buffer.from(`${lines.join("\n")}\n`) };
}

/** 16 ranks, four a machine; null where there is no log. */
function accused(
  said: (rank: number) => Said | null,
  more: readonly { name: string; bytes: Uint8Array }[] = [],
): string[] {
  const ranks = RANKS.map((rank) => ({ rank, machine: `node${rank >> 2}`, gpu: rank % 4 }));
  const file = Buffer.from(JSON.stringify({ worldSize: 16, ranks }));
  const logs = RANKS.flatMap((rank) => {
    const what = said(rank);
    return what === null ? [] : log(rank, what);
  });
  const job = jobOf([{ name: "job.json", bytes: file }, ...logs, ...more]);
  const findings = [...(watchdog.run(job, quietEnv) as Iterable<NewFinding>)];
  return findings.flatMap(({ accuses }) =>
    accuses.map(({ type, ranks: of, cause }) => `${type} ${of.join()} ${cause}`),
  );
}

describe("without dumps, hang/watchdog accuses", () => {
  it("the rank that wrote nothing more, though one time-out had all others dump", () => {
    expect(
      accused((rank) => (rank === 9 ? "times out" : rank === 3 ? "nothing" : "dumps")),
    ).toEqual(["rank 3 process-stopped"]);
  });

  it("nobody, where many wrote nothing more", () => {
    expect(accused((rank) => (rank === 9 ? "times out" : rank < 5 ? "nothing" : "dumps"))).toEqual(
      [],
    );
    expect(accused((rank) => (rank === 9 ? "times out" : "dumps"))).toEqual([]);
  });

  it("the machine, where none of its ranks left a log", () => {
    expect(accused((rank) => (rank >> 2 === 2 ? null : "times out"))).toEqual([
      "machine 8,9,10,11 process-gone",
    ]);
    expect(accused((rank) => (rank === 8 || rank === 9 ? null : "times out"))).toEqual([
      "rank 8 unknown",
      "rank 9 unknown",
    ]);
  });

  it("nobody for a log that is not here, where the stack waits like the others'", () => {
    const text = `Current thread 0x00007f0000000000 (most recent call first):
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 5030 in barrier
`;
    const stacks = RANKS.map((rank) => ({
      name: `stacks/rank${rank}.txt`,
      bytes: Buffer.from(text),
    }));
    const said = (rank: number): Said | null => (rank === 8 ? null : "times out");
    expect(accused(said)).toEqual(["rank 8 unknown"]);
    expect(accused(said, stacks)).toEqual([]);
  });
});
