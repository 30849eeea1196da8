/**
 * Does the simulated job behave like a real one? Three comparisons: the gaps between pipeline stages
 * with one slow link (in the eight runs of links-pipemorph-ae with its plain schedule the minimum jumps
 * from 2 to 25-135 ms on the injected links only, while medians jump by up to 233 ms on others), a slow worker against an independent what-if model (the method of ByteDance's
 * straggler study), and the dumps against a real one, field by field.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readPickle } from "../src/ingest/pickle.ts";
import { openFile } from "../src/ingest/sources.ts";
import { simulate } from "../src/simulate/cluster/engine.ts";
import type { IterationTimes, Simulation } from "../src/simulate/cluster/times.ts";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { COMPUTE, RECV, SEND, type StageProgram } from "../src/simulate/cluster/program.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";
import { runSimulation } from "../src/simulate/run.ts";

function job(given: Partial<ClusterSpec>, ...faults: string[]): Simulation {
  return simulate(completeSpec({ ...given, faults: faults.map(parseFault) }));
}

/**
 * Gaps of one iteration in ms, by link and direction (link · 2 + backward): from the end of a micro-batch
 * on one stage to its begin on the next.
 */
function stageGaps({ programs, lanes }: Simulation, times: IterationTimes): number[][] {
  const gaps: number[][] = Array.from({ length: 2 * (programs.length - 1) }, () => []);
  for (const program of programs) {
    for (let op = 0; op < program.count; op++) {
      if (program.kind[op] !== RECV) continue;
      const from = program.peerStage[op]!;
      const received = times.stages[program.stage]!.endNs[op * lanes.lanes]!;
      const sent = times.stages[from]!.startNs[program.peerOp[op]! * lanes.lanes]!;
      const backward = from > program.stage ? 1 : 0;
      gaps[2 * Math.min(from, program.stage) + backward]!.push((received - sent) / 1e6);
    }
  }
  return gaps;
}

const least = (values: number[]): number => Math.min(...values);
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

describe("a delay on one pipeline link of four stages", () => {
  const shape = {
    gpus: 4,
    tp: 1,
    pp: 4,
    dp: 1,
    microBatches: 12,
    iterations: 4,
    gpusPerMachine: 1,
  };

  it.each([0, 1, 2])(
    "raises the smallest gap on link %i-next and on no other, and medians elsewhere",
    (link) => {
      const simulation = job(shape, `network-slow:link=${link}-${link + 1}:from=3:severity=80`);
      const before: number[][][] = [];
      const after: number[][][] = [];
      for (const times of simulation.iterations()) {
        (times.iteration < 3 ? before : after).push(stageGaps(simulation, times));
      }
      const jump = (of: (gaps: number[]) => number): number[] =>
        before[0]!.map(
          (_, g) => of(after.flatMap((gaps) => gaps[g]!)) - of(before.flatMap((gaps) => gaps[g]!)),
        );
      jump(least).forEach((ms, g) => {
        if (g >> 1 === link) expect(ms).toBeGreaterThan(40);
        else expect(ms).toBeLessThan(10);
      });
      // Propagation: medians change elsewhere too, so that "the largest change" alone would not do.
      const elsewhere = jump(median).filter((ms, g) => g >> 1 !== link && Math.abs(ms) > 10);
      expect(elsewhere.length).toBeGreaterThan(0);
    },
  );
});

describe("one slow worker of sixteen", () => {
  it.each(["1f1b", "gpipe"] as const)(
    "costs what an independent what-if model predicts, within 2 %% (%s)",
    (schedule) => {
      const shape = { gpus: 16, tp: 1, pp: 4, dp: 4, microBatches: 8, schedule, iterations: 1 };
      const healthy = job(shape);
      const [times] = [...healthy.iterations()].map((t) => ({ ...t, stages: copy(t) }));
      for (const severity of [1.5, 2, 3]) {
        const slow = job(shape, `gpu-slow:rank=6:from=1:severity=${severity}`);
        const simulated = slow.iterations().next().value as IterationTimes;
        const predicted = whatIf(healthy, times!, 6, severity);
        expect(simulated.endNs / predicted).toBeGreaterThan(0.98);
        expect(simulated.endNs / predicted).toBeLessThan(1.02);
        expect(predicted / times!.endNs).toBeGreaterThan(1.1);
      }
    },
  );
});

function copy(times: IterationTimes): IterationTimes["stages"] {
  return times.stages.map(({ issueNs, startNs, endNs }) => ({
    issueNs: issueNs.slice(),
    startNs: startNs.slice(),
    endNs: endNs.slice(),
  }));
}

/**
 * From the healthy records alone: the compute before each operator (its start less the end of the one
 * before it on the rank), the transfer of each operator (its end less its latest start); then the
 * rank's compute is stretched and the dependencies are worked off again, rank by rank.
 */
function whatIf(
  { programs, lanes }: Simulation,
  times: IterationTimes,
  slowRank: number,
  severity: number,
): number {
  const width = lanes.lanes;
  const at = (stage: number, op: number, lane: number) => {
    const { startNs, endNs } = times.stages[stage]!;
    return { start: startNs[op * width + lane]!, end: endNs[op * width + lane]! };
  };
  const isAsync = (program: StageProgram, op: number): boolean =>
    program.async[op] === 1 || program.kind[op] === SEND;
  const done = programs.map(({ count }) => new Float64Array(count * width).fill(NaN));
  const begun = programs.map(({ count }) => new Float64Array(count * width).fill(NaN));
  const members = (stage: number, op: number): [number, number][][] => {
    const role = programs[stage]!.role[op]!;
    const every = Array.from({ length: width }, (_, lane): [number, number] => [stage, lane]);
    if (role === 6)
      return [
        programs.flatMap(({ stage: s }) => every.map(([, lane]): [number, number] => [s, lane])),
      ];
    if (role === 5)
      return every.map(([, lane]) => [
        [0, lane],
        [programs.length - 1, lane],
      ]);
    if (role === 2)
      return Array.from({ length: lanes.dp.count }, (_, g) =>
        [...lanes.dp.members.subarray(g * lanes.dp.size, (g + 1) * lanes.dp.size)].map(
          (lane): [number, number] => [stage, lane],
        ),
      );
    return every.map((one) => [one]);
  };
  const sameOp = (stage: number, op: number, other: number): number =>
    programs[stage]!.role[op] === 2 || stage === other
      ? op
      : programs[other]!.role.indexOf(programs[stage]!.role[op]!);
  const next = programs.map(() => new Int32Array(width));
  const free = programs.map(() => new Float64Array(width));
  const healthyFree = programs.map(() => new Float64Array(width));
  const gradients = programs.map(() => new Float64Array(width));
  for (let moved = true; moved;) {
    moved = false;
    for (const program of programs) {
      const s = program.stage;
      for (let lane = 0; lane < width; lane++) {
        for (;;) {
          const op = next[s]![lane]!;
          if (op >= program.count) break;
          const i = op * width + lane;
          const record = at(s, op, lane);
          if (Number.isNaN(begun[s]![i]!)) {
            const work = Math.max(0, record.start - healthyFree[s]![lane]!);
            const factor = s * width + lane === slowRank ? severity : 1;
            let start = free[s]![lane]! + work * factor;
            if (program.role[op] === 6 || program.role[op] === 5)
              start = Math.max(start, gradients[s]![lane]!);
            begun[s]![i] = start;
            moved = true;
          }
          if (isAsync(program, op) || program.kind[op] === COMPUTE) {
            if (program.kind[op] !== SEND && program.async[op]) {
              const group = members(s, op).find((g) => g.some(([, l]) => l === lane))!;
              const starts = group.map(([, l]) => begun[s]![op * width + l]!);
              if (!starts.some(Number.isNaN)) {
                const latest = Math.max(...group.map(([, l]) => at(s, op, l).start));
                const end = Math.max(...starts) + (record.end - latest);
                for (const [, l] of group) gradients[s]![l] = Math.max(gradients[s]![l]!, end);
              }
            }
            free[s]![lane] = begun[s]![i]!;
            healthyFree[s]![lane] = record.start;
            next[s]![lane]!++;
            moved = true;
            continue;
          }
          let end = NaN;
          if (program.kind[op] === RECV) {
            const sent = begun[program.peerStage[op]!]![program.peerOp[op]! * width + lane]!;
            const healthySent = at(program.peerStage[op]!, program.peerOp[op]!, lane).start;
            end =
              Math.max(sent, begun[s]![i]!) + (record.end - Math.max(healthySent, record.start));
          } else {
            const group = members(s, op).find((g) =>
              g.some(([stage, l]) => stage === s && l === lane),
            )!;
            const starts = group.map(
              ([stage, l]) => begun[stage]![sameOp(s, op, stage) * width + l]!,
            );
            const latest = Math.max(
              ...group.map(([stage, l]) => at(stage, sameOp(s, op, stage), l).start),
            );
            end = Math.max(...starts) + (record.end - latest);
            if (starts.some(Number.isNaN)) end = NaN;
          }
          if (Number.isNaN(end)) break;
          done[s]![i] = end;
          free[s]![lane] = end;
          healthyFree[s]![lane] = record.end;
          next[s]![lane]!++;
          moved = true;
        }
      }
    }
  }
  return Math.max(...free.flatMap((lane) => [...lane]));
}

describe("a simulated dump", () => {
  it("has the fields, and the types in them, of a real one", async () => {
    const real = await realDump();
    const files = new Map<string, Buffer>();
    runSimulation(
      completeSpec({ gpus: 8, tp: 2, pp: 2, dp: 2, iterations: 3 }),
      ["flight-recorder"],
      {
        open: (path) => {
          const chunks: Uint8Array[] = [];
          return {
            write: (chunk) =>
              chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk.slice()),
            end: () => files.set(path, Buffer.concat(chunks)),
          };
        },
      },
    );
    const simulated = shapeOf(files.get("flight-recorder/nccl_trace_rank_3")!);
    expect(simulated.top).toEqual(shapeOf(real).top);
    expect(simulated.entry).toEqual(shapeOf(real).entry);
  });
});

async function realDump(): Promise<Buffer> {
  const archive = fileURLToPath(new URL("../fixtures/recordings/hang3.tar.gz", import.meta.url));
  let bytes = Buffer.alloc(0);
  await openFile(
    archive,
    async (file) => {
      if (!file.path.endsWith("/fr_timeout_rank_0")) return;
      const chunks: Uint8Array[] = [];
      for await (const chunk of file.chunks) chunks.push(chunk);
      bytes = Buffer.concat(chunks);
    },
    () => undefined,
  );
  return bytes;
}

/** Keys in order with the kind of their values, of the dump and of its first (completed) entry. */
function shapeOf(bytes: Buffer): { top: [string, number][]; entry: [string, number][] } {
  const data = readPickle(bytes);
  const pairs = (dict: number): [string, number][] => {
    const list: [string, number][] = [];
    data.forEachItem(dict, 2, (item) =>
      list.push([data.text(data.items.num[item]!), data.items.kind[item + 1]!]),
    );
    return list;
  };
  const entries = data.items.num[data.lookup(data.rootNum, "entries")]!;
  let first = -1;
  data.forEachItem(entries, 1, (item) => {
    if (first < 0) first = data.items.num[item]!;
  });
  return { top: pairs(data.rootNum), entry: pairs(first) };
}
