/** Runs against healthy ones, by hand: what is accused, and what must not be. */
import { describe, expect, test } from "vitest";
import { DATA_LOADER, FREE, PYTHON_FUNCTION, SYNCHRONIZE } from "../../model/kernels.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import type { CollectTimes } from "./collect-time.ts";
import { compareRun } from "./compare-run.ts";
import { peerRegressions } from "./peer-regressions.ts";
import { profileRun } from "./profile-run.ts";
import {
  testTrace,
  type TestEvent,
  type TestKernel,
} from "../../../test/support/methods/kernel-trace.ts";

interface Layer {
  /** Microseconds of one matrix kernel. */
  readonly gemm?: number;
  /** Microseconds that the CPU adds after each layer's launches, and the event that it is in. */
  readonly stall?: number;
  readonly by?: { readonly name: string; readonly kind: number };
  readonly isCall?: boolean;
  readonly load?: number;
  readonly small?: number;
  readonly lead?: number;
}

const LAYERS = 20;
const STEPS = 4;

/** A rank whose CPU runs ahead by `lead`; a stall lets the stream run empty before the next launch. */
function rankTrace(rank: number, layerOf: (step: number) => Layer) {
  const kernels: TestKernel[] = [];
  const host: TestEvent[] = [];
  const calls: TestEvent[] = [];
  const steps: [number, number][] = [];
  let gpu = 0;
  for (let step = 0; step < STEPS; step++) {
    const {
      gemm = 400,
      stall = 0,
      by,
      isCall = false,
      load = 20,
      small = 1,
      lead = 300,
    } = layerOf(step);
    const start = gpu;
    host.push({ name: "enumerate(DataLoader)", kind: DATA_LOADER, at: gpu + 5, dur: load });
    gpu += load + 30;
    for (let layer = 0; layer < LAYERS; layer++) {
      const isLate = layer > 0 && stall > 0;
      if (isLate && by) (isCall ? calls : host).push({ ...by, at: gpu - 1, dur: stall });
      if (isLate) gpu += stall + 10;
      // The first launches of a step have no lead yet.
      const issued = isLate || layer === 0 ? gpu - 6 : gpu - Math.min(lead, layer * 50);
      kernels.push({
        name: "nvjet_gemm",
        at: gpu,
        dur: gemm,
        issued,
        dims: [
          [512, 512],
          [512, 512],
        ],
      });
      gpu += gemm;
      for (let k = 0; k < small; k++) {
        kernels.push({ name: "gelu_kernel", at: gpu, dur: 20, issued: issued + 1 });
        gpu += 20;
      }
      const collective = {
        operation: "allreduce",
        ranks: [0, 1, 2, 3],
        numel: 1e6,
        seq: step * LAYERS + layer,
      };
      kernels.push({
        name: "ncclDevKernel_AllReduce",
        at: gpu,
        dur: 50,
        issued: issued + 2,
        collective,
      });
      gpu += 50;
    }
    steps.push([start, gpu - start]);
  }
  return testTrace({ rank, kernels, host, calls, steps });
}

function run(layerOf: (rank: number, step: number) => Layer, source = "run"): RunProfile {
  const traces = [0, 1, 2, 3].map((rank) => rankTrace(rank, (step) => layerOf(rank, step)));
  return profileRun(traces, source)!;
}

const healthy = run(() => ({}), "healthy");
const causes = (profile: RunProfile, baseline = [healthy]) =>
  compareRun(profile, baseline).regressions.map(({ cause, ranks, owner }) => ({
    cause,
    ranks,
    owner,
  }));
const ALL = [0, 1, 2, 3];

describe("against a healthy run", () => {
  test("the same run is no regression", () => {
    expect(causes(healthy)).toEqual([]);
  });

  test("a synchronisation in every layer is the algorithm team's", () => {
    const by = { name: "cudaDeviceSynchronize", kind: SYNCHRONIZE };
    const [found, ...more] = compareRun(
      run(() => ({ stall: 30, by, isCall: true })),
      [healthy],
    ).regressions;
    expect(more).toEqual([]);
    expect(found).toMatchObject({
      cause: "synchronization",
      owner: "algorithm",
      ranks: ALL,
      metric: "issueLatency",
    });
    expect(found!.why).toContain("cudaDeviceSynchronize");
    expect(found!.threshold).toContain("halves of the one baseline run");
    expect(found!.value).toBeGreaterThan(found!.baseline);
  });

  test("a synchronisation that costs 2.7 % is found (FLARE §7.3.1)", () => {
    const by = { name: "cudaDeviceSynchronize", kind: SYNCHRONIZE };
    expect(causes(run(() => ({ stall: 4, by, isCall: true })))).toMatchObject([
      { cause: "synchronization" },
    ]);
  });

  test("freeing memory in every layer is infrastructure's", () => {
    const by = { name: "cudaFree", kind: FREE };
    expect(causes(run(() => ({ stall: 60, by, isCall: true })))).toEqual([
      { cause: "memory-management", ranks: ALL, owner: "infrastructure" },
    ]);
  });

  test("a Python function between launches, such as a package check, is named and the algorithm team's", () => {
    const by = { name: "importlib/metadata.py(980): version", kind: PYTHON_FUNCTION };
    const { regressions } = compareRun(
      run(() => ({ stall: 120, by })),
      [healthy],
    );
    expect(regressions).toMatchObject([{ cause: "user-program", owner: "algorithm", ranks: ALL }]);
    expect(regressions[0]!.why).toContain("importlib/metadata.py(980): version");
  });

  test("a CPU that is late without a reason in the trace goes to infrastructure", () => {
    expect(causes(run(() => ({ stall: 120 })))).toEqual([
      { cause: "cpu-stall", ranks: ALL, owner: "infrastructure" },
    ]);
  });

  test("a loader that became slow on two ranks is told of these two", () => {
    const slow = run((rank) => (rank < 2 ? { load: 3000 } : {}));
    expect(causes(slow)).toEqual([{ cause: "dataloader", ranks: [0, 1], owner: "algorithm" }]);
  });

  test("more small kernels are minority kernels, by name", () => {
    const { regressions } = compareRun(
      run(() => ({ small: 4 })),
      [healthy],
    );
    expect(regressions).toMatchObject([
      { cause: "minority-kernels", owner: "infrastructure", metric: "vMinority" },
    ]);
    expect(regressions[0]!.why).toMatch(/gelu_kernel .*20 → 80 launches/);
  });

  test("a GPU whose kernels all take longer is slow; the same everywhere is a library", () => {
    expect(causes(run((rank) => (rank === 2 ? { gemm: 480 } : {})))).toMatchObject([
      { cause: "gpu-slow", ranks: [2], owner: "operations" },
    ]);
    expect(causes(run(() => ({ gemm: 480 })))).toMatchObject([
      { cause: "slow-kernel", ranks: ALL },
    ]);
  });
});

describe("what no GPU of the traced ranks shows alone", () => {
  const collecting = (share: number): RunProfile => ({
    ...healthy,
    ranks: healthy.ranks.map((profile) => ({
      ...profile,
      collectShares: profile.stepMs.map(() => share),
    })),
  });
  const longer = (profile: RunProfile, times: number): RunProfile => ({
    ...profile,
    ranks: profile.ranks.map((rank) => ({ ...rank, stepMs: rank.stepMs.map((ms) => times * ms) })),
  });

  test("garbage collection in all ranks, and a longer step: each waits for the others (FLARE §6.4)", () => {
    const usual = [collecting(0), collecting(0.005)];
    expect(causes(longer(collecting(0.15), 1.2), usual)).toMatchObject([
      { cause: "garbage-collection", ranks: ALL, owner: "algorithm" },
    ]);
    expect(causes(collecting(0.15), usual)).toEqual([]);
    expect(causes(longer(collecting(0.005), 1.2), usual)).toEqual([]);
    // Baselines stored earlier do not say how long they collected.
    const earlier = healthy.ranks.map((profile) => {
      const { collectShares: _, ...rest } = profile as RankProfile & CollectTimes;
      return rest;
    });
    expect(causes(longer(collecting(0.15), 1.2), [{ ...healthy, ranks: earlier }])).toEqual([]);
  });

  const moving = (profile: RunProfile, times: number, isWhole: boolean): RunProfile => ({
    ...profile,
    ranks: profile.ranks.map((rank) => ({
      ...rank,
      bandwidth: ["allreduce", "_allgather_base"].map((collective) => ({
        collective,
        group: "DATA_PARALLEL_GROUP_0",
        groupRanks: [0, 1, 2, 3],
        bytes: 1e8,
        busGBps: 40 / times,
        stepGBps: [39.5 / times, 40.5 / times],
        count: 40,
        isWhole,
        meanMs: 0.3 * times,
        msPerStep: 3 * times,
        leastMs: [0.29 * times, 0.31 * times],
      })),
    })),
  });

  test("a network beyond what its healthy steps vary by is slow, a tenth if these lie close together", () => {
    const usual = [moving(healthy, 1, true), moving(healthy, 1.01, true)];
    expect(causes(moving(healthy, 1.15, true), usual)).toMatchObject([
      { cause: "network-slow", ranks: ALL, owner: "operations" },
    ]);
    expect(causes(moving(healthy, 1.15, true), [...usual, moving(healthy, 1.1, true)])).toEqual([]);
  });

  test("of groups not traced whole only what stretches all transfers alike is, with little weight", () => {
    const usual = [moving(healthy, 1, false), moving(healthy, 1.01, false)];
    const { regressions } = compareRun(longer(moving(healthy, 3, false), 1.3), usual);
    expect(regressions).toMatchObject([{ cause: "network-slow" }]);
    expect(regressions[0]!.weight).toBeLessThanOrEqual(0.5);
    expect(regressions[0]!.why).toContain("not all members left traces");
    expect(causes(longer(moving(healthy, 1.3, false), 1.3), usual)).toEqual([]);
  });

  test("small kernels that communication hides are told by their launches and summed time", () => {
    const hidden = (profile: RunProfile): RunProfile => ({
      ...profile,
      ranks: profile.ranks.map((rank) => ({ ...rank, vMinority: rank.stepMs.map(() => 0.02) })),
    });
    expect(causes(hidden(run(() => ({ small: 4 }))), [hidden(healthy)])).toMatchObject([
      { cause: "minority-kernels", ranks: ALL },
    ]);
    // The same kernels with less communication beside them.
    const exposed = healthy.ranks.map((rank) => ({
      ...rank,
      vMinority: rank.vMinority.map((share) => share + 0.1),
    }));
    expect(causes({ ...healthy, ranks: exposed })).toEqual([]);
  });
});

describe("no false alarm", () => {
  const waiting = (share: number, calls: number): RunProfile => ({
    ...healthy,
    ranks: healthy.ranks.map((profile) => ({
      ...profile,
      calls: { ...profile.calls, synchronization: profile.stepMs.map(() => calls) },
      intraStalls: { ...profile.intraStalls, synchronization: profile.stepMs.map(() => share) },
    })),
  });

  test("for what follows a synchronisation that was always there", () => {
    expect(causes(waiting(0.06, 1), [waiting(0.02, 1)])).toEqual([]);
    expect(causes(waiting(0.06, 4), [waiting(0.02, 1)])).toMatchObject([
      { cause: "synchronization" },
    ]);
  });

  test("for element-wise kernels where the products' shapes are others: longer sequences", () => {
    const reshaped = (profile: RunProfile, times: number, shape: string): RunProfile => ({
      ...profile,
      ranks: profile.ranks.map((rank) => ({
        ...rank,
        kernels: rank.kernels.map((row) => ({
          ...row,
          medianUs: times * row.medianUs,
          stepUs: [times * row.stepUs[0], times * row.stepUs[1]],
          shape: row.kind === "matrix" ? shape : "",
        })),
      })),
    });
    expect(causes(reshaped(healthy, 2, "[2×2]"), [reshaped(healthy, 1, "[1×1]")])).toEqual([]);
    expect(causes(reshaped(healthy, 2, "[1×1]"), [reshaped(healthy, 1, "[1×1]")])).not.toEqual([]);
  });

  test("for images of unequal size: ranks compute unequally long, and their CPUs are not late (FLARE §7.3)", () => {
    const size = (rank: number, step: number): number => 300 + 60 * ((rank * 7 + step * 5) % 6);
    const imbalanced = run((rank, step) => ({ gemm: size(rank, step), lead: 80 }));
    expect(causes(imbalanced)).toEqual([]);
    const other = run((rank, step) => ({ gemm: size(rank + 1, step + 2) }), "other");
    expect(causes(imbalanced, [other])).toEqual([]);
  });

  test("for embeddings on the CPU: the void between steps has no name (FLARE §7.3)", () => {
    // The loader returns at once, then the CPU looks embeddings up: nothing that is recorded.
    const embeddings = run(() => ({ load: 1, gemm: 400 }));
    const late = {
      ...embeddings,
      ranks: embeddings.ranks.map((profile) => ({
        ...profile,
        vInter: profile.vInter.map(() => 0.3),
        interStalls: { ...profile.interStalls, host: profile.stepMs.map(() => 0.3) },
      })),
    };
    expect(causes(late)).toEqual([]);
  });

  test("for another model: it is said that nothing was compared (FLARE §8.4)", () => {
    const other = { ...healthy, mix: { "aten::convolution": 1 } };
    const { regressions, notes } = compareRun(
      run(() => ({ stall: 120 })),
      [other],
    );
    expect(regressions).toEqual([]);
    expect(notes[0]).toContain("another model or backend");
  });
});

describe("without a baseline", () => {
  test("one rank that waits for its loader in every step, while its peers do not, is accused", () => {
    const found = peerRegressions(run((rank) => (rank === 3 ? { load: 3000 } : {})));
    expect(found).toMatchObject([{ cause: "dataloader", ranks: [3] }]);
    expect(found[0]!.why).toContain("3 peers");
  });

  test("a loader that is slow everywhere may be how the job is", () => {
    expect(peerRegressions(run(() => ({ load: 3000 })))).toEqual([]);
  });

  test("a rank that waits in one step only is not accused", () => {
    expect(
      peerRegressions(run((rank, step) => (rank === 3 && step === 1 ? { load: 3000 } : {}))),
    ).toEqual([]);
  });

  test("one GPU slower than the others that do the same is", () => {
    const found = peerRegressions(run((rank) => (rank === 1 ? { gemm: 500 } : {})));
    expect(found).toMatchObject([{ cause: "gpu-slow", ranks: [1] }]);
  });
});
