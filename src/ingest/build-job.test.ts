import { describe, expect, it } from "vitest";
import type { DumpGroup, OperatorLog } from "../model/operators.ts";
import type { Reading } from "../model/reading.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { clusterGroups } from "../simulate/cluster/groups.ts";
import { completeSpec } from "../simulate/cluster/spec.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../simulate/run.ts";
import { readFiles } from "../../test/support/in-memory.ts";
import { buildJob } from "./build-job.ts";
import { emptyRow, GrowingColumns } from "./operators-file/growing-columns.ts";

const SPEC = completeSpec({ gpus: 16, tp: 2, pp: 2, iterations: 2, layersPerStage: 1 });

function read(emit: string): Reading[] {
  const output = memoryOutput();
  runSimulation(SPEC, [emit], output);
  return readFiles([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
}

/** One operator in each of its groups, those named in `p2p` a transfer. */
function logOf(rank: number | null, groups: [string, number[] | null][], p2p = ""): Reading {
  const columns = new GrowingColumns();
  const row = emptyRow();
  groups.forEach(([name], index) => {
    row.group = index;
    row.isP2p = name === p2p;
    columns.add(row);
  });
  const log: OperatorLog = {
    file: "f",
    format: "kineto",
    rank,
    host: "",
    pid: null,
    groups: groups.map(([name, ranks]): DumpGroup => {
      return { name, desc: "", ranks, enqueued: -1, started: -1, completed: -1 };
    }),
    ops: columns.build(false),
    epochNs: 0n,
    hasSequence: false,
  };
  return { file: "f", format: "kineto", rank, records: 1, defects: [], operators: [log] };
}

describe("a job of which there are only operators", () => {
  it("has the groups that its ranks communicate in, with those that carry transfers marked", () => {
    const job = buildJob(read("operators"), null);
    const key = ({ name, ranks }: { name: string; ranks: readonly number[] }): string =>
      `${name} ${ranks.join()}`;
    const used = clusterGroups(simulate(SPEC)).groups.filter(({ ranks }) => ranks.length > 1);
    expect(job.groups.map(key).sort()).toEqual(used.map(key).sort());
    expect(job.groups.map(({ id }) => id)).toEqual([...job.groups.keys()]);
    for (const { role, carriesP2p } of job.groups)
      expect(carriesP2p).toBe(role === "PIPELINE_MODEL_PARALLEL_GROUP");
  });

  it("has the groups of its flight recorder, whatever operators come on top", () => {
    const recorded = buildJob(read("flight-recorder"), null);
    const both = buildJob([...read("flight-recorder"), ...read("operators")], null);
    expect(both.groups).toEqual(recorded.groups);
  });

  it("has two groups where one name stands for two lists of members", () => {
    const job = buildJob(
      [
        logOf(0, [["tp", [0, 1]]]),
        logOf(1, [["tp", [0, 1]]]),
        logOf(2, [["tp", [2, 3]]]),
        logOf(3, [["?", null]]),
      ],
      null,
    );
    expect(job.groups.map(({ name, ranks }) => [name, ranks])).toEqual([
      ["tp", [0, 1]],
      ["tp", [2, 3]],
    ]);
  });

  it("marks a group that carries transfers without saying so in its name", () => {
    const groups: [string, number[]][] = [
      ["a", [0, 1]],
      ["b", [0, 1, 2]],
    ];
    const job = buildJob([logOf(0, groups, "b")], null);
    expect(job.groups.map(({ carriesP2p }) => carriesP2p)).toEqual([false, true]);
  });

  it("counts ranks that left nothing but operators", () => {
    const job = buildJob([logOf(0, []), logOf(5, [["x", null]]), logOf(null, [])], null);
    expect(job.worldSize).toBe(6);
    expect([...job.ranks.keys()]).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
