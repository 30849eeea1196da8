import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMPLETED, SCHEDULED, STARTED } from "../model/operators.ts";
import type { OperatorLog } from "../model/operators.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { clusterGroups } from "../simulate/cluster/groups.ts";
import { COMPUTE } from "../simulate/cluster/program.ts";
import { completeSpec, type ClusterSpec } from "../simulate/cluster/spec.ts";
import { jobs } from "../simulate/cluster/test-jobs.ts";
import { memoryOutput } from "../simulate/emit/memory-output.ts";
import { runSimulation } from "../simulate/run.ts";
import { recognise } from "./formats.ts";
import { operatorsFile } from "./operators-file.ts";
import { CHUNK_SIZES, readBytes, sniffs } from "./reader-contract.ts";

const FILE = "operators/operators.flop";

interface Expected {
  readonly created: number[];
  readonly started: number[];
  readonly completed: number[];
  readonly group: string[];
}

/** The file, and what the first rank of each stage did according to the simulation itself. */
function simulated(given: Partial<ClusterSpec>): { bytes: Buffer; stages: Expected[] } {
  const spec = completeSpec({ hidden: 1024, sequence: 1024, ...given });
  const output = memoryOutput();
  const simulation = simulate(spec);
  const { programs, lanes } = simulation;
  const groups = clusterGroups(simulation);
  const stages = programs.map((): Expected => ({
    created: [],
    started: [],
    completed: [],
    group: [],
  }));
  runSimulation(spec, ["operators"], output, (times) => {
    times.stages.forEach(({ issueNs, startNs, endNs }, stage) => {
      const { count, kind, role } = programs[stage]!;
      for (let op = 0; op < count; op++) {
        const at = op * lanes.lanes;
        if (kind[op] === COMPUTE || issueNs[at] === Infinity) continue;
        stages[stage]!.created.push(issueNs[at]!);
        stages[stage]!.started.push(startNs[at] === Infinity ? NaN : startNs[at]!);
        stages[stage]!.completed.push(endNs[at] === Infinity ? NaN : endNs[at]!);
        const group = groups.groups[groups.groupOf(stage * lanes.lanes, role[op]!)];
        stages[stage]!.group.push(group ? `${group.name} ${group.ranks.join()}` : "");
      }
    });
  });
  return { bytes: output.bytes.get(FILE)!, stages };
}

function expectSame(logs: readonly OperatorLog[], stages: readonly Expected[]): void {
  expect(logs).toHaveLength(stages.length);
  logs.forEach(({ ops, groups }, stage) => {
    const expected = stages[stage]!;
    expect([...ops.createdNs]).toEqual(expected.created);
    expect([...ops.startedNs]).toEqual(expected.started);
    expect([...ops.completedNs]).toEqual(expected.completed);
    [...ops.group].forEach((index, i) => {
      const { name, ranks } = groups[index]!;
      if (expected.group[i] !== "") expect(`${name} ${ranks?.join()}`).toBe(expected.group[i]);
    });
  });
}

const JOB: Partial<ClusterSpec> = { iterations: 3, microBatches: 2, layersPerStage: 1 };
const SMALL: Partial<ClusterSpec> = { ...JOB, iterations: 2, tp: 1, pp: 2, dp: 2 };

describe("operators.flop", () => {
  it("gives the simulation's own times, of each stage's first rank", () => {
    const { bytes, stages } = simulated(JOB);
    const reading = readBytes(operatorsFile, FILE, bytes);
    expect(reading).toMatchObject({
      format: "operators, first rank of each stage",
      rank: null,
      defects: [],
      worldSize: 16,
      records: stages.reduce((sum, { created }) => sum + created.length, 0),
    });
    const logs = reading.operators ?? [];
    expect(logs.map(({ rank, host, pid }) => [rank, host, pid])).toEqual([
      [0, "", null],
      [8, "", null],
    ]);
    expect(logs[0]!.epochNs).toBe(1_794_700_800_000_000_000n);
    expectSame(logs, stages);
    const [{ ops }] = logs as [OperatorLog];
    expect(new Set(ops.state)).toEqual(new Set([COMPLETED]));
    expect(ops.durationMs[5]).toBeCloseTo((ops.completedNs[5]! - ops.startedNs[5]!) / 1e6, 4);
  });

  it("names transfers and their other side, and counts operators in each group", () => {
    const { bytes } = simulated({ ...JOB, pp: 4, gpus: 32 });
    const { operators } = readBytes(operatorsFile, FILE, bytes);
    const second = operators![1]!;
    const { ops, groups } = second;
    const transfers = new Set<string>();
    const collectives = new Map<number, number>();
    for (let i = 0; i < ops.count; i++) {
      const name = ops.names[ops.name[i]!]!;
      if (ops.isP2p[i]) {
        transfers.add(`${name} ${ops.peer[i]} ${ops.isSend[i]}`);
        expect(groups[ops.group[i]!]!.desc).toMatch(/^PIPELINE/);
        expect(ops.seq[i]).toBe(0);
        continue;
      }
      const next = (collectives.get(ops.group[i]!) ?? 0) + 1;
      collectives.set(ops.group[i]!, next);
      expect(ops.seq[i]).toBe(next);
      expect(ops.peer[i]).toBe(-1);
    }
    expect([...transfers].sort()).toEqual([
      "recv 1<-0 0 0",
      "recv 1<-2 2 0",
      "send 1->0 0 1",
      "send 1->2 2 1",
    ]);
    expect(ops.names).not.toContain("compute");
  });

  it("falls back on the role's name where the header does not describe groups", () => {
    const { bytes } = simulated(SMALL);
    const end = bytes.indexOf(10);
    const header = JSON.parse(bytes.subarray(0, end).toString()) as Record<string, unknown>;
    const bare = Buffer.from(`${JSON.stringify({ ...header, groups: [] })}\n`);
    const without = Buffer.concat([bare, bytes.subarray(end + 1)]);
    const [first] = readBytes(operatorsFile, FILE, without).operators!;
    expect(first!.groups.map(({ name, ranks }) => [name, ranks])).toContainEqual(["pp", null]);
    expect(first!.ops.names).toContain("send 0->1");
  });

  it("tells what a hang left: started, waiting, never issued", () => {
    const hang = { ...JOB, faults: [parseFault("gpu-hang:rank=1:from=2")] };
    const { bytes, stages } = simulated(hang);
    const { operators, defects } = readBytes(operatorsFile, FILE, bytes);
    expect(defects).toEqual([]);
    expectSame(operators!, stages);
    const states = new Set<number>();
    for (const { ops } of operators!) {
      for (let i = 0; i < ops.count; i++) {
        states.add(ops.state[i]!);
        expect(Number.isNaN(ops.completedNs[i])).toBe(ops.state[i] !== COMPLETED);
        expect(Number.isNaN(ops.startedNs[i])).toBe(ops.state[i] === SCHEDULED);
      }
    }
    expect(states).toContain(STARTED);
    expect(states).toContain(COMPLETED);
  });

  it("agrees with the simulation for 30 random jobs, in odd chunks", () => {
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 5000 }), (spec, size) => {
        const { bytes, stages } = simulated({ ...spec, iterations: 2 });
        const { operators, defects } = readBytes(operatorsFile, FILE, bytes, size);
        expect(defects).toEqual([]);
        expectSame(operators!, stages);
      }),
      { seed: 11, numRuns: 30 },
    );
  });

  it("reads the same at every chunk size", () => {
    const { bytes } = simulated(SMALL);
    const [first, ...others] = CHUNK_SIZES.map((size) =>
      readBytes(operatorsFile, FILE, bytes, size),
    );
    for (const other of others) expect(other).toEqual(first);
  });

  it("keeps the whole blocks of a file cut anywhere, and says that it is cut", () => {
    const { bytes } = simulated(SMALL);
    const whole = readBytes(operatorsFile, FILE, bytes);
    const body = bytes.indexOf(10) + 1;
    let before = 0;
    for (let end = 0; end < bytes.length; end++) {
      const { records, operators, defects } = readBytes(
        operatorsFile,
        FILE,
        bytes.subarray(0, end),
      );
      expect(records).toBeGreaterThanOrEqual(before);
      before = records;
      if (end > body) expect(defects).toHaveLength(isWhole(bytes, end) ? 0 : 1);
      else expect(operators).toBeUndefined();
      operators?.forEach(({ ops }, stage) => {
        const all = whole.operators![stage]!.ops;
        expect([...ops.completedNs]).toEqual([...all.completedNs.subarray(0, ops.count)]);
      });
    }
  });

  it("stops at a block that is not as the header says", () => {
    const { bytes } = simulated(SMALL);
    const broken = Buffer.concat([bytes, Buffer.from(Float64Array.of(3, 9, 1, 1).buffer), bytes]);
    const reading = readBytes(operatorsFile, FILE, broken);
    expect(reading.records).toBe(readBytes(operatorsFile, FILE, bytes).records);
    expect(reading.defects).toHaveLength(1);
  });

  it("survives random bytes and headers of another shape", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(operatorsFile, "f", b)),
    );
    const odd = fc.tuple(fc.json(), fc.uint8Array({ maxLength: 100 })).map(([j, rest]) => {
      const stage = `{"kind":[0],"role":${j},"bytes":[1],"peerStage":[-1],"peerOp":[${j}]}`;
      const head = `{"schema":"faultline.operators/1","epochNs":"1","gpus":1,"lanes":1,"kinds":["x"],"roles":["tp"],"groups":[${j}],"stages":[${stage}]}\n`;
      return Buffer.concat([Buffer.from(head), rest]);
    });
    fc.assert(fc.property(odd, (bytes) => void readBytes(operatorsFile, "f", bytes)));
  });

  it("recognises its format and nothing else", () => {
    const { bytes } = simulated(SMALL);
    expect(sniffs(operatorsFile, bytes)).toBe(true);
    const text = bytes.toString("latin1");
    expect(recognise({ name: "operators.flop", bytes, text })).toBe(operatorsFile);
    for (const other of ["", "{}", '{"schema":"faultline.operators/2"}', '{"schema":1}'])
      expect(sniffs(operatorsFile, other)).toBe(false);
  });
});

/** Whether a cut falls between two iterations, where nothing shows. */
function isWhole(bytes: Buffer, end: number): boolean {
  const body = bytes.indexOf(10) + 1;
  const perIteration = (bytes.length - body) / 2;
  return (end - body) % perIteration === 0;
}
