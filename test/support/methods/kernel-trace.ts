/** Small traces by hand for the tests of this folder. Times are microseconds, as traces have them. */
import * as K from "../../../src/model/kernels.ts";

export interface TestKernel {
  readonly name: string;
  readonly at: number;
  readonly dur: number;
  /** The launch; 5 µs before the start where not given. */
  readonly issued?: number;
  readonly stream?: number;
  readonly kind?: number;
  /** Input dims of the matrix operator that launched it. */
  readonly dims?: readonly (readonly number[])[];
  readonly op?: string;
  readonly collective?: {
    readonly operation: string;
    readonly ranks: readonly number[];
    readonly numel: number;
    readonly seq?: number;
    readonly peer?: number;
  };
}

export interface TestEvent {
  readonly name: string;
  readonly kind: number;
  readonly at: number;
  readonly dur: number;
}

export interface TestTrace {
  readonly rank?: number | null;
  /** Start and duration. */
  readonly steps?: readonly (readonly [number, number])[];
  readonly kernels: readonly TestKernel[];
  /** CUDA calls that launch nothing. */
  readonly calls?: readonly TestEvent[];
  readonly host?: readonly TestEvent[];
}

const byTime = (a: { readonly at: number }, b: { readonly at: number }): number => a.at - b.at;

export function testTrace({
  rank = 0,
  steps = [],
  kernels,
  calls = [],
  host = [],
}: TestTrace): K.RankKernels {
  const names: string[] = [];
  const nameOf = (text: string): number => {
    const at = names.indexOf(text);
    return at >= 0 ? at : names.push(text) - 1;
  };
  const ns = (values: readonly number[]): Float64Array =>
    Float64Array.from(values, (us) => us * 1000);
  const events = kernels.toSorted(byTime);
  const launches = events.map((kernel, i) => ({
    name: "cudaLaunchKernel",
    kind: K.LAUNCH,
    at: kernel.issued ?? kernel.at - 5,
    dur: 2,
    of: i,
  }));
  const allCalls = [...launches, ...calls.map((call) => ({ ...call, of: -1 }))].toSorted(byTime);
  const launch = new Int32Array(events.length).fill(-1);
  for (const [row, { of }] of allCalls.entries()) if (of >= 0) launch[of] = row;
  const matrix = events.filter(({ dims }) => dims !== undefined);
  const shapes = [...new Set(matrix.map(({ dims }) => JSON.stringify(dims)))];
  const collective = events.filter((kernel) => kernel.collective !== undefined);
  const of = collective.map((kernel) => kernel.collective!);
  const groups = [...new Map(of.map(({ ranks }) => [ranks.join(), ranks])).values()];
  const hostEvents = host.toSorted(byTime);
  return {
    file: `rank${rank}.json`,
    rank,
    worldSize: 0,
    backend: "nccl",
    host: "",
    epochNs: 0n,
    isCut: false,
    devices: [{ name: "NVIDIA H200" }],
    names,
    gpu: {
      count: events.length,
      startNs: ns(events.map(({ at }) => at)),
      durNs: ns(events.map(({ dur }) => dur)),
      name: Int32Array.from(events, ({ name }) => nameOf(name)),
      kind: Uint8Array.from(events, (kernel) =>
        kernel.collective ? K.COMMUNICATION : (kernel.kind ?? K.COMPUTE),
      ),
      device: new Int32Array(events.length),
      stream: Int32Array.from(events, ({ stream = 7 }) => stream),
      launch,
      correlation: new Uint32Array(events.length),
      collective: Int32Array.from(events, (kernel) => collective.indexOf(kernel)),
      matrixOp: Int32Array.from(events, (kernel) => matrix.indexOf(kernel)),
    },
    calls: {
      count: allCalls.length,
      startNs: ns(allCalls.map(({ at }) => at)),
      durNs: ns(allCalls.map(({ dur }) => dur)),
      name: Int32Array.from(allCalls, ({ name }) => nameOf(name)),
      kind: Uint8Array.from(allCalls, ({ kind }) => kind),
      thread: new Int32Array(allCalls.length),
      correlation: new Uint32Array(allCalls.length),
    },
    hostEvents: {
      count: hostEvents.length,
      startNs: ns(hostEvents.map(({ at }) => at)),
      durNs: ns(hostEvents.map(({ dur }) => dur)),
      name: Int32Array.from(hostEvents, ({ name }) => nameOf(name)),
      kind: Uint8Array.from(hostEvents, ({ kind }) => kind),
      thread: new Int32Array(hostEvents.length),
    },
    steps: {
      count: steps.length,
      number: Float64Array.from(steps, (_, i) => i),
      startNs: ns(steps.map(([at]) => at)),
      durNs: ns(steps.map(([, dur]) => dur)),
    },
    matrixOps: {
      count: matrix.length,
      startNs: ns(matrix.map(({ at }) => at)),
      durNs: ns(matrix.map(() => 1)),
      name: Int32Array.from(matrix, ({ op = "aten::mm" }) => nameOf(op)),
      shape: Int32Array.from(matrix, ({ dims }) => shapes.indexOf(JSON.stringify(dims))),
      thread: new Int32Array(matrix.length),
    },
    shapes: shapes.map((text) => {
      const dims = JSON.parse(text) as number[][];
      return { dims, types: dims.map(() => "c10::BFloat16") };
    }),
    collectives: {
      count: of.length,
      operation: Int32Array.from(of, ({ operation }) => nameOf(operation)),
      group: Int32Array.from(of, ({ ranks }) =>
        groups.findIndex((other) => other.join() === ranks.join()),
      ),
      inputNumel: Float64Array.from(of, ({ numel }) => numel),
      outputNumel: Float64Array.from(of, ({ numel }) => numel),
      dtype: Int32Array.from(of, () => nameOf("BFloat16")),
      groupSize: Int32Array.from(of, ({ ranks }) => ranks.length),
      seq: Float64Array.from(of, ({ seq = NaN }) => seq),
      peer: Int32Array.from(of, ({ peer = -1 }) => peer),
    },
    groups: groups.map((ranks, i) => ({ name: String(i), desc: "", ranks })),
  };
}
