/** Runs against healthy ones, by hand: what is accused, and what must not be. */
import { describe, expect, test } from "vitest";
import { DATA_LOADER, FREE, PYTHON_FUNCTION, SYNCHRONIZE } from "../../model/kernels.ts";
import type { RunProfile } from "../../model/trace-profile.ts";
import { compareRun } from "./compare-run.ts";
import { peerRegressions } from "./peer-regressions.ts";
import { profileRun } from "./profile-run.ts";
import { testTrace, type TestEvent, type TestKernel } from "./test-trace.ts";

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

describe("no false alarm", () => {
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
