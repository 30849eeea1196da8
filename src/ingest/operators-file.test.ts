import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMPLETED, SCHEDULED, STARTED } from "../model/operators.ts";
import type { OperatorLog } from "../model/operators.ts";
import { simulate, type SimulateOptions } from "../simulate/cluster/engine.ts";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { clusterGroups } from "../simulate/cluster/groups.ts";
import { COMPUTE, RECV, SEND } from "../simulate/cluster/program.ts";
import { completeSpec, type ClusterSpec } from "../simulate/cluster/spec.ts";
import type { Steer } from "../simulate/cluster/steering.ts";
import type { IterationTimes } from "../simulate/cluster/times.ts";
import { emitOperators } from "../simulate/emit/operators.ts";
import { jobs } from "../../test/support/simulate/jobs.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { recognise } from "./formats.ts";
import { operatorsFile, operatorsSink } from "./operators-file.ts";
import { CHUNK_SIZES, readBytes, sniffs } from "../../test/support/ingest/reader-contract.ts";
import { runs } from "../../test/support/cases.ts";

const FILE = "operators/operators.flop";

interface Expected {
  readonly created: number[];
  readonly started: number[];
  readonly completed: number[];
  readonly group: string[];
  /** Rank of the other side of a transfer; -1 for collectives. */
  readonly peer: number[];
}

/** The file, and what each rank did according to the simulation itself. */
function simulated(
  given: Partial<ClusterSpec>,
  control: SimulateOptions & { readonly steer?: Steer } = {},
): {
  bytes: Buffer;
  ranks: Expected[];
  lanes: number;
} {
  const spec = completeSpec({ hidden: 1024, sequence: 1024, ...given });
  const output = memoryOutput();
  const simulation = simulate(spec, control);
  const { programs, lanes } = simulation;
  const groups = clusterGroups(simulation);
  const ranks = Array.from({ length: spec.gpus }, (): Expected => {
    return { created: [], started: [], completed: [], group: [], peer: [] };
  });
  const receiverOf = (stage: number, op: number): number =>
    programs.findIndex(({ peerStage, peerOp }) =>
      peerStage.some((from, recv) => from === stage && peerOp[recv] === op),
    );
  const peers = programs.map(({ kind, peerStage }, stage) =>
    Array.from(kind, (each, op) =>
      each === SEND ? receiverOf(stage, op) : each === RECV ? peerStage[op]! : -1,
    ),
  );
  const keep = (times: IterationTimes): void => {
    times.stages.forEach(({ issueNs, startNs, endNs }, stage) => {
      const { count, kind, role } = programs[stage]!;
      for (let lane = 0; lane < lanes.lanes; lane++) {
        const rank = stage * lanes.lanes + lane;
        const expected = ranks[rank]!;
        for (let op = 0; op < count; op++) {
          const at = op * lanes.lanes + lane;
          if (kind[op] === COMPUTE || !Number.isFinite(issueNs[at])) continue;
          expected.created.push(issueNs[at]!);
          expected.started.push(startNs[at] === Infinity ? NaN : startNs[at]!);
          expected.completed.push(endNs[at] === Infinity ? NaN : endNs[at]!);
          const group = groups.groups[groups.groupOf(rank, role[op]!)];
          expected.group.push(group ? `${group.name} ${group.ranks.join()}` : "");
          const peer = peers[stage]![op]!;
          expected.peer.push(peer < 0 ? -1 : peer * lanes.lanes + lane);
        }
      }
    });
  };
  const emitter = emitOperators(simulation, output);
  for (const times of simulation.iterations(control.steer)) {
    emitter.iteration(times);
    keep(times);
  }
  emitter.end();
  return { bytes: output.bytes.get(FILE)!, ranks, lanes: lanes.lanes };
}

/** Logs of every `step`th rank. */
function expectSame(logs: readonly OperatorLog[], ranks: readonly Expected[], step = 1): void {
  expect(logs.map(({ rank }) => rank)).toEqual(
    ranks.flatMap((_, rank) => (rank % step === 0 ? [rank] : [])),
  );
  for (const { rank, ops, groups } of logs) {
    const expected = ranks[rank!]!;
    expect([...ops.createdNs]).toEqual(expected.created);
    expect([...ops.startedNs]).toEqual(expected.started);
    expect([...ops.completedNs]).toEqual(expected.completed);
    const isKnown = (i: number): boolean => expected.group[i] !== "";
    const found = Array.from(ops.group, (index, i) => {
      const { name, ranks: members } = groups[index]!;
      const peer = ops.isP2p[i] === 1 ? members?.[ops.peer[i]!] : -1;
      return isKnown(i) ? `${name} ${members?.join()} ${peer}` : "";
    });
    const wanted = expected.group.map((group, i) =>
      isKnown(i) ? `${group} ${expected.peer[i]}` : "",
    );
    expect(found).toEqual(wanted);
  }
}

function countOf(ranks: readonly Expected[]): number {
  return ranks.reduce((sum, { created }) => sum + created.length, 0);
}

const JOB: Partial<ClusterSpec> = { iterations: 3, microBatches: 2, layersPerStage: 1 };
const SMALL: Partial<ClusterSpec> = { ...JOB, iterations: 2, tp: 1, pp: 2, dp: 2 };

describe("operators.flop", () => {
  it("gives the simulation's own times, groups and peers, of every rank", () => {
    const { bytes, ranks } = simulated(JOB);
    const reading = readBytes(operatorsFile, FILE, bytes);
    expect(reading).toMatchObject({
      format: "operators",
      rank: null,
      defects: [],
      worldSize: 16,
      records: countOf(ranks),
    });
    const logs = reading.operators ?? [];
    expect(logs[9]).toMatchObject({ rank: 9, host: "", pid: null, hasSequence: true });
    expect(logs[0]!.epochNs).toBe(1_794_700_800_000_000_000n);
    expectSame(logs, ranks);
    const [{ ops }] = logs as [OperatorLog];
    expect(new Set(ops.state)).toEqual(new Set([COMPLETED]));
    expect(ops.durationMs[5]).toBeCloseTo((ops.completedNs[5]! - ops.startedNs[5]!) / 1e6, 4);
  });

  it("leaves out what a replica with fewer micro-batches does not run", () => {
    const microBatches = (iteration: number): number[] => (iteration === 2 ? [1, 3] : [2, 2]);
    const { bytes, ranks } = simulated(
      { ...JOB, tp: 2, pp: 2, dp: 2 },
      { mostMicroBatches: 3, steer: (iteration) => ({ microBatches: microBatches(iteration) }) },
    );
    const reading = readBytes(operatorsFile, FILE, bytes);
    expect(reading).toMatchObject({ defects: [], records: countOf(ranks) });
    expectSame(reading.operators!, ranks);
    // Of each stage, first replica and second.
    const sends = (log: OperatorLog): number => log.ops.isSend.reduce((a, b) => a + b, 0);
    expect([0, 2, 4, 6].map((rank) => sends(reading.operators![rank]!))).toEqual([5, 7, 5, 7]);
    for (const { ops } of reading.operators!) expect([...ops.startedNs]).not.toContain(NaN);
  });

  it("gives members of a group one list of them, and the same numbers to its collectives", () => {
    const { bytes } = simulated(JOB);
    const logs = readBytes(operatorsFile, FILE, bytes).operators!;
    const lists = new Map<string, readonly number[] | null>();
    const ends = new Map<string, Set<number>>();
    for (const { ops, groups } of logs) {
      for (const { name, ranks } of groups) {
        expect(lists.get(name) ?? ranks).toBe(ranks);
        lists.set(name, ranks);
      }
      for (let i = 0; i < ops.count; i++) {
        if (ops.isP2p[i] === 1) continue;
        const key = `${groups[ops.group[i]!]!.name} ${ops.seq[i]}`;
        ends.set(key, (ends.get(key) ?? new Set()).add(ops.completedNs[i]!));
      }
    }
    for (const [key, times] of ends) expect([key, times.size]).toEqual([key, 1]);
  });

  describe("of a job too large to keep every rank", () => {
    const DEFECT = "too large to keep every rank; of each stage the first is used";
    const { bytes, ranks, lanes } = simulated(JOB);
    const all = countOf(ranks);
    const read = (most: number, size?: number) =>
      readBytes({ ...operatorsFile, open: (file) => operatorsSink(file, most) }, FILE, bytes, size);
    const first = countOf(ranks.filter((_, rank) => rank % lanes === 0));

    it.each([
      ["from its header", 100],
      ["in its second iteration", Math.ceil(all / 3)],
      ["in its last block", all - 1],
    ])("keeps the first rank of each stage, known %s", (_, most) => {
      const reading = read(most);
      expect(reading).toMatchObject({
        format: "operators, first rank of each stage",
        defects: [{ file: FILE, what: DEFECT }],
        records: first,
        worldSize: 16,
      });
      expectSame(reading.operators!, ranks, lanes);
      for (const size of [1, 7, 64]) expect(read(most, size)).toEqual(reading);
    });

    it("keeps all where they just fit", () => {
      expect(read(all)).toEqual(readBytes(operatorsFile, FILE, bytes));
    });

    it("keeps all of a job whose stages have one rank each, whatever the bound", () => {
      const thin = simulated({ ...JOB, gpus: 4, tp: 1, pp: 4, dp: 1 });
      const sink = operatorsSink(FILE, 1);
      sink.push(thin.bytes);
      const reading = sink.end();
      expect([reading.format, reading.defects]).toEqual(["operators", []]);
      expectSame(reading.operators!, thin.ranks);
    });
  });

  it("names transfers and their other side, and counts operators in each group", () => {
    const { bytes } = simulated({ ...JOB, pp: 4, gpus: 32 });
    const { operators } = readBytes(operatorsFile, FILE, bytes);
    const second = operators!.find(({ rank }) => rank === 11)!;
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
    const { bytes, ranks } = simulated(hang);
    const { operators, defects } = readBytes(operatorsFile, FILE, bytes);
    expect(defects).toEqual([]);
    expectSame(operators!, ranks);
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

  it("agrees with the simulation for random jobs, in odd chunks", () => {
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 5000 }), (spec, size) => {
        const { bytes, ranks } = simulated({ ...spec, iterations: 2 });
        const { operators, defects } = readBytes(operatorsFile, FILE, bytes, size);
        expect(defects).toEqual([]);
        expectSame(operators!, ranks);
      }),
      { seed: 11, numRuns: runs(10, 30) },
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
    for (let end = 0; end < bytes.length; end += runs(5, 1)) {
      const { records, operators, defects } = readBytes(
        operatorsFile,
        FILE,
        bytes.subarray(0, end),
      );
      expect(records).toBeGreaterThanOrEqual(before);
      before = records;
      if (end > body) expect(defects).toHaveLength(isWhole(bytes, end) ? 0 : 1);
      else expect(operators).toBeUndefined();
      operators?.forEach(({ ops }, rank) => {
        const all = whole.operators![rank]!.ops;
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
