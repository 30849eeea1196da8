/**
 * With less input an answer may be lost, but no wrong one may become surer: files of simulated jobs are taken away or cut
 * off, one kind at a time, and whoever is then named must be the culprit, or be named with less confidence than before.
 */
import { describe, expect, it } from "vitest";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";
import { runSimulation } from "../src/simulate/run.ts";
import { few } from "./support/cases.ts";
import { diagnoseFiles } from "./support/in-memory.ts";
import { memoryOutput } from "./support/simulate/memory-output.ts";

interface File {
  readonly name: string;
  readonly bytes: Buffer;
}

const SMALL = { gpus: 16, iterations: 8, layersPerStage: 2, microBatches: 4 };

function filesOf(shape: Partial<ClusterSpec>, ...faults: string[]): File[] {
  const output = memoryOutput();
  const spec = completeSpec({ ...SMALL, ...shape, faults: faults.map(parseFault) });
  runSimulation(spec, ["flight-recorder", "logs"], output);
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
}

const isDump = ({ name }: File): boolean => name.startsWith("flight-recorder/");
const isLog = ({ name }: File): boolean => name.startsWith("logs/");
const isDumpOf = (rank: number) => (file: File) => file.name.endsWith(`_trace_rank_${rank}`);
const isLogOf = (rank: number) => (file: File) => file.name.endsWith(`/rank${rank}.log`);
const without = (files: readonly File[], ...gone: ((file: File) => boolean)[]): File[] =>
  files.filter((file) => !gone.some((is) => is(file)));
const cut = (files: readonly File[], share: number, is: (file: File) => boolean): File[] =>
  files.map((file) =>
    is(file)
      ? { ...file, bytes: file.bytes.subarray(0, Math.floor(share * file.bytes.length)) }
      : file,
  );

const LESS: [string, (files: readonly File[], culprit: number) => File[]][] = [
  ["no logs", (files) => without(files, isLog)],
  ["no dumps", (files) => without(files, isDump)],
  ["not the culprit's dump", (files, rank) => without(files, isDumpOf(rank))],
  ["nothing of the culprit", (files, rank) => without(files, isDumpOf(rank), isLogOf(rank))],
  ["neither logs nor the culprit's dump", (files, rank) => without(files, isLog, isDumpOf(rank))],
  ["not another rank's dump", (files, rank) => without(files, isDumpOf(rank ^ 1))],
  ["no logs, all dumps cut off", (files) => cut(without(files, isLog), 0.8, isDump)],
  [
    "no logs, the others' dumps cut off",
    (files, rank) =>
      cut(without(files, isLog), 0.7, (file) => isDump(file) && !isDumpOf(rank)(file)),
  ],
  ["the culprit's dump cut off", (files, rank) => cut(files, 0.7, isDumpOf(rank))],
];

const JOBS: [string, number, Partial<ClusterSpec>][] = [
  ["process-gone:rank=9:from=5", 9, { seed: 3 }],
  ["user-program:rank=2:from=5", 2, { seed: 8, tp: 4 }],
  ["gpu-hang:rank=5:from=6", 5, { seed: 1 }],
  ["gpu-memory:rank=3:from=5", 3, { seed: 4 }],
  ["cpu-stall:rank=7:from=5:severity=inf", 7, { seed: 2 }],
  ["process-stopped:rank=11:from=5", 11, { seed: 7, tp: 1, pp: 1 }],
];

describe("with less input", () => {
  it.each(few(JOBS, 1))("%s: no wrong answer is surer", async (fault, culprit, shape) => {
    const files = filesOf(shape, fault);
    const full = await diagnoseFiles(files);
    expect(full.suspects[0]!.ranks).toEqual([culprit]);
    for (const [what, take] of LESS) {
      const { suspects, confidence, victims } = await diagnoseFiles(take(files, culprit));
      const named = suspects.flatMap(({ ranks }) => ranks);
      const isRight = named.length === 0 || named.includes(culprit);
      expect([what, isRight || confidence < 0.3]).toEqual([what, true]);
      expect([what, confidence <= full.confidence]).toEqual([what, true]);
      if (named.length > 0) expect([what, victims.includes(culprit)]).toEqual([what, false]);
    }
  });

  it("ranks that left nothing are named, and nothing wrong in the rest is no all-clear", async () => {
    const files = filesOf({ iterations: 12 });
    const job = files.find(({ name }) => name === "job.json")!;
    const given = JSON.parse(job.bytes.toString()) as Record<string, unknown>;
    const larger = { ...given, worldSize: 64, parallel: undefined, rankOrder: undefined };
    const some = files.map((file) =>
      file === job ? { ...file, bytes: Buffer.from(JSON.stringify(larger)) } : file,
    );
    const part = await diagnoseFiles(without(some, isDump));
    expect(part).toMatchObject({ kind: "undetermined", suspects: [], victims: [] });
    expect(part.confidence).toBeLessThanOrEqual(0.2);
    expect(part.missing).toContain("ranks 16–63 left nothing among these files");
  });
});
