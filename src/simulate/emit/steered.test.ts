/** What emitters write of a job whose replicas take different numbers of micro-batches and whose ranks move. */
import { describe, expect, test } from "vitest";
import { flightRecorder } from "../../ingest/flight-recorder/reader.ts";
import { operatorsFile } from "../../ingest/operators-file.ts";
import { readBytes } from "../../../test/support/ingest/reader-contract.ts";
import type { DumpGroup, OperatorTable } from "../../model/operators.ts";
import { simulate } from "../cluster/engine.ts";
import { parseFault } from "../cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../cluster/spec.ts";
import type { Steering } from "../cluster/steering.ts";
import type { Emitter } from "./emitter.ts";
import { emitFlightRecorder } from "./flight-recorder.ts";
import { emitKineto } from "./kineto.ts";
import { emitLogs } from "./logs.ts";
import { memoryOutput, type MemoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { emitMetrics } from "./metrics.ts";
import { emitOperators } from "./operators.ts";

/** Two machines, one a stage. */
const JOB: Partial<ClusterSpec> = {
  tp: 2,
  pp: 2,
  dp: 2,
  gpusPerMachine: 4,
  microBatches: 4,
  iterations: 5,
  layersPerStage: 2,
  placement: 1,
};
const EXCHANGED = Int32Array.of(4, 5, 6, 7, 0, 1, 2, 3);
const RING = 50;
const STEPS = [2, 3, 4, 5];

function steer(iteration: number): Steering | null {
  if (iteration === 2) return { microBatches: [1, 7] };
  if (iteration === 3) return { seats: EXCHANGED, pauseNs: 1e9 };
  return iteration === 5 ? { microBatches: [6, 2] } : null;
}

function emitted(given: Partial<ClusterSpec> = {}, steered = steer): MemoryOutput {
  const simulation = simulate(completeSpec({ ...JOB, ...given }), { mostMicroBatches: 7 });
  const output = memoryOutput();
  const ranks = Array.from({ length: simulation.spec.gpus }, (_, rank) => rank);
  const emitters: Emitter[] = [
    emitOperators(simulation, output),
    emitFlightRecorder(simulation, output, { ringSize: RING }),
    emitKineto(simulation, output, { ranks, steps: STEPS }),
    emitLogs(simulation, output),
    emitMetrics(simulation, output),
  ];
  for (const times of simulation.iterations(steered))
    for (const emitter of emitters) emitter.iteration(times);
  for (const emitter of emitters) emitter.end();
  return output;
}

/** "group seq name" of each operator, P2P operators by their own numbers. */
function numbered(ops: OperatorTable, groups: readonly DumpGroup[]): string[] {
  return Array.from({ length: ops.count }, (_, i) => {
    const seq = ops.isP2p[i] === 1 ? ops.p2pSeq[i] : ops.seq[i];
    return `${groups[ops.group[i]!]!.name} ${seq}`;
  });
}

interface TraceEvent {
  readonly name: string;
  readonly cat?: string;
  readonly ts: number;
  readonly args?: Readonly<Record<string, unknown>>;
}

describe("a steered job's files", () => {
  const { files, bytes } = emitted();
  const flop = readBytes(operatorsFile, "o", bytes.get("operators/operators.flop")!).operators!;

  test("have no number that is none", () => {
    expect(files.size).toBe(8 + 8 + 8 + 2);
    for (const [path, text] of files)
      if (!/operators|flight/.test(path)) expect(/\bNaN\b/.test(text) ? path : "").toBe("");
  });

  test("number the operators of a rank alike in dumps as in operators.flop", () => {
    for (const { rank, ops, groups } of flop) {
      const dump = bytes.get(`flight-recorder/nccl_trace_rank_${rank}`)!;
      const [found] = readBytes(flightRecorder, `nccl_trace_rank_${rank}`, dump).dumps!;
      expect(found!.ops.count).toBe(RING);
      expect(numbered(found!.ops, found!.groups)).toEqual(numbered(ops, groups).slice(-RING));
    }
  });

  test("number the operators of a rank alike in traces as in operators.flop", () => {
    for (const { rank, ops, groups } of flop) {
      const trace = JSON.parse(files.get(`kineto/kineto.rank${rank}.json`)!) as {
        traceEvents: TraceEvent[];
      };
      const found = trace.traceEvents
        .filter(({ name }) => name === "record_param_comms")
        .map(({ args }) => `${args!["Process Group Name"] as string} ${args!["Seq"] as number}`);
      expect(found.length).toBeGreaterThan(60);
      expect(found).toEqual(numbered(ops, groups).slice(-found.length));
    }
  });
});

describe("a job that stops after it was steered", () => {
  test("says in logs how far it was, and who was on the broken GPU", () => {
    // Physical GPU 2: rank 6 sits there from the third iteration on.
    const faults = [parseFault("process-gone:rank=2:from=5")];
    const { files, bytes } = emitted({ faults, noise: 0, placement: 0 });
    expect([...bytes.keys()].filter((path) => path.startsWith("flight"))).toHaveLength(7);
    expect(bytes.has("flight-recorder/nccl_trace_rank_6")).toBe(false);
    const flop = readBytes(operatorsFile, "o", bytes.get("operators/operators.flop")!).operators!;
    const { ops, groups } = flop[7]!;
    const told = [...files.get("logs/rank7.log")!.matchAll(/last enqueued work: (\d+)/g)];
    expect(told.length).toBeGreaterThan(0);
    const most = groups.map((_, group) =>
      Math.max(
        0,
        ...Array.from(ops.group, (of, i) =>
          of === group ? Math.max(ops.seq[i]!, ops.p2pSeq[i]!) : 0,
        ),
      ),
    );
    for (const [, enqueued] of told) expect(most).toContain(Number(enqueued));
  });
});

describe("metrics of a steered job", () => {
  test("show a GPU's work where its rank sits", () => {
    // One replica has seven times the other's work; the two change places in the middle.
    const job = { tp: 1, pp: 1, dp: 2, gpusPerMachine: 1, iterations: 40, noise: 0, placement: 0 };
    const { files } = emitted({ ...job, hidden: 8192 }, (iteration) => {
      if (iteration === 1) return { microBatches: [1, 7] };
      return iteration === 21 ? { seats: Int32Array.of(1, 0) } : null;
    });
    const active = (host: string): number[] =>
      files
        .get("metrics/metrics.prom")!
        .split("\n")
        .filter(
          (line) => line.startsWith("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{") && line.includes(host),
        )
        .map((line) => Number(line.split(" ").at(-2)));
    const [first, second] = [active("10.40.0.2:"), active("10.40.0.3:")];
    expect(first.length).toBeGreaterThan(6);
    expect(second[1]! / first[1]!).toBeGreaterThan(4);
    expect(first.at(-2)! / second.at(-2)!).toBeGreaterThan(4);
  });
});
