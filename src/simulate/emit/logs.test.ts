import { describe, expect, it } from "vitest";
import { simulate } from "../cluster/engine.ts";
import { parseFault } from "../cluster/fault-spec.ts";
import { TP } from "../cluster/program.ts";
import { completeSpec, type ClusterSpec } from "../cluster/spec.ts";
import { emitLogs, type LogOptions } from "./logs.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";

const SMALL: Partial<ClusterSpec> = { gpus: 16, tp: 2, pp: 2, iterations: 6, microBatches: 4 };

function logsOf(
  faults: readonly string[],
  given: Partial<ClusterSpec> = {},
  options: LogOptions = {},
): ReadonlyMap<string, string> {
  const spec = completeSpec({ ...SMALL, ...given, faults: faults.map(parseFault) });
  const simulation = simulate(spec);
  const output = memoryOutput();
  const emitter = emitLogs(simulation, output, options);
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  return output.files;
}

/** Ranks whose log has the text. */
function ranksWith(files: ReadonlyMap<string, string>, text: string): number[] {
  return [...files]
    .filter(([path, log]) => path.startsWith("logs/rank") && log.includes(text))
    .map(([path]) => Number(/\d+/.exec(path)![0]))
    .sort((a, b) => a - b);
}

const OTHERS = (...culprits: number[]): number[] =>
  Array.from({ length: 16 }, (_, rank) => rank).filter((rank) => !culprits.includes(rank));

describe("a healthy job", () => {
  it("prints Megatron's iteration line on the last rank only, by its format", () => {
    const files = logsOf([]);
    expect(ranksWith(files, "elapsed time per iteration")).toEqual([15]);
    const lines = files.get("logs/rank15.log")!.match(/^.*elapsed time.*$/gm)!;
    expect(lines).toHaveLength(6);
    expect(lines[2]).toMatch(
      /^ \[2026-11-15 00:00:0\d\.\d{6}\] iteration {8}3\/ {7}6 \| consumed samples: {11}\d\d \| elapsed time per iteration \(ms\): \d+\.\d \| throughput per GPU \(TFLOP\/s\/GPU\): \d+\.\d \| learning rate: \d\.\d{6}E-\d\d \| global batch size: {4}16 \| lm loss: \d\.\d{6}E\+\d\d \| loss scale: 1\.0 \| grad norm: \d+\.\d{3} \| number of skipped iterations: {3}0 \| number of nan iterations: {3}0 \|$/,
    );
  });

  it("writes a log for every rank, with its groups, and the same bytes again for the same seed", () => {
    const files = logsOf([]);
    expect([...files.keys()].filter((path) => path.startsWith("logs/rank"))).toHaveLength(16);
    expect(files.get("logs/rank5.log")).toContain("global rank: 5");
    expect([...logsOf([])]).toEqual([...files]);
    expect([...logsOf([], { seed: 2 })]).not.toEqual([...files]);
  });

  it("says on rank 0 that training is done, and saves and validates now and then", () => {
    const files = logsOf([], {}, { checkpointEvery: 2, validateEvery: 3 });
    expect(ranksWith(files, "[after training is done]")).toEqual([0]);
    expect(files.get("logs/rank0.log")!.match(/saving checkpoint at iteration/g)).toHaveLength(3);
    expect(files.get("logs/rank15.log")!.match(/validation loss at iteration/g)).toHaveLength(2);
  });
});

describe("a job that hangs", () => {
  it("has timeouts on every rank but the stopped one, whose log just ends", () => {
    const files = logsOf(["process-stopped:rank=6:from=4"]);
    expect(ranksWith(files, "Watchdog caught collective operation timeout")).toEqual(OTHERS(6));
    expect(files.get("logs/rank6.log")).not.toMatch(/ERROR|\[E\d|dump/);
  });

  it("lets a rank with a stuck CPU answer the call for dumps", () => {
    const files = logsOf(["cpu-stall:rank=2:from=3:severity=inf"]);
    expect(ranksWith(files, "Watchdog caught")).toEqual(OTHERS(2));
    expect(files.get("logs/rank2.log")).toContain("Observed flight recorder dump signal");
  });

  it("counts operators as the simulation runs them", () => {
    const spec = completeSpec({ ...SMALL, faults: [parseFault("process-stopped:rank=6:from=4")] });
    const tpOps = simulate(spec).programs[0]!.role.filter((role) => role === TP).length;
    const log = logsOf(["process-stopped:rank=6:from=4"]).get("logs/rank7.log")!;
    const line =
      /TENSOR_MODEL_PARALLEL_GROUP_3\) Rank 1\] {2}failure detected by watchdog at work sequence id: (\d+) PG status: last enqueued work: (\d+), last completed work: (\d+)/.exec(
        log,
      )!;
    const [seq, enqueued, completed] = line.slice(1).map(Number) as [number, number, number];
    expect(seq).toBe(completed + 1);
    expect(seq).toBeGreaterThan(3 * tpOps);
    expect(seq).toBeLessThanOrEqual(4 * tpOps);
    // Rank 7 is alive: it has issued everything of its fourth iteration.
    expect(enqueued).toBe(4 * tpOps);
    expect(log).toContain(`WorkNCCL(SeqNum=${seq}, OpType=`);
  });

  it("reports ten minutes after the operator was issued", () => {
    const log = logsOf(["gpu-hang:rank=6:from=4"]).get("logs/rank6.log")!;
    expect(log).toMatch(/Timeout\(ms\)=600000\) ran for 600\d\d\d milliseconds/);
    expect(log).toMatch(/\[rank6\]:\[E1115 00:10:0\d\.\d{9} ProcessGroupNCCL\.cpp:689\]/);
  });
});

describe("a job that crashes", () => {
  it("leaves closed connections after a process is gone, and no timeouts", () => {
    const files = logsOf(["process-gone:rank=3:from=5"]);
    expect(files.get("logs/rank3.log")).not.toMatch(/ERROR|\[E\d|dump/);
    expect(ranksWith(files, "Connection closed by remote peer")).toContain(2);
    expect(ranksWith(files, "dump signal")).toEqual(OTHERS(3));
    expect(ranksWith(files, "Watchdog caught")).toEqual([]);
    expect(files.get("logs/rank2.log")).toContain("c10::DistBackendError");
  });

  it.each([
    ["gpu-memory:rank=5:from=4", "torch.OutOfMemoryError: CUDA out of memory"],
    ["numerical:rank=5:from=4", "RuntimeError: Rank 5, node node000, device 5, iteration 4"],
    ["user-program:rank=5:from=4", "KeyError: 'books-v2'"],
    ["gpu-error:rank=5:from=4:signature=ecc", "CUDA error: uncorrectable ECC error"],
  ])("%s prints its error on the culprit alone", (fault, text) => {
    expect(ranksWith(logsOf([fault]), text)).toEqual([5]);
  });

  it("prints a loss that is not a number before it gives up", () => {
    const log = logsOf(["numerical:rank=5:from=4"]).get("logs/rank15.log")!;
    expect(log).toMatch(
      /iteration {8}4\/ {7}6 .* lm loss: NAN .* number of nan iterations: {3}1 \|/,
    );
  });

  it.each([
    ["ecc", /Xid \(PCI:0000:c3:00\): 48.*\n.*: 63.*\n.*: 94/],
    ["nvlink", /Xid \(PCI:0000:c3:00\): 74/],
    ["card-drop", /: 79, .*fallen off the bus/],
    ["pcie", /mlx5_core .* limited by 2\.5 GT\/s/],
    ["nic-drop", /mlx5_core .*health compromised/],
  ])("leaves the kernel's lines of %s", (signature, lines) => {
    const files = logsOf([`gpu-error:rank=5:from=4:signature=${signature}`]);
    expect(files.get("logs/dmesg.node000.log")).toMatch(lines);
    expect(files.has("logs/dmesg.node001.log")).toBe(false);
  });
});

it("writes only telling logs of a large job", () => {
  const files = logsOf(["process-gone:rank=1003:from=2"], {
    gpus: 2048,
    tp: 8,
    pp: 4,
    iterations: 2,
    layersPerStage: 1,
  });
  const ranks = ranksWith(files, "training starts");
  expect(ranks).toContain(2047);
  expect(ranks).toContain(1003);
  expect(ranks.filter((rank) => rank % 8 === 0)).toHaveLength(256);
  expect(ranks.length).toBeLessThan(400);
  expect(ranksWith(files, "Connection closed by remote peer").length).toBeGreaterThan(0);
});
