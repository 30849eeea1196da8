/**
 * What must be over before an operation can begin, within a rank (the paper's §3; the published analyzer's
 * dependency_model.py has the order of what follows the last backward pass). Defined once for all replicas and steps,
 * from the times of the first complete step of the first replica.
 */
import type { Grid } from "./grid.ts";
import { KINDS, spansReplicas, type Kind } from "./kinds.ts";
import { pointToPoint, type StageView } from "./point-to-point.ts";

export interface Dependencies {
  /** For each operation, those that it follows in its own rank. */
  readonly before: readonly (readonly number[])[];
  /** Operations that begin together, when the last of them is ready; every operation is in one. */
  readonly groups: readonly (readonly number[])[];
  /** Whether the group's operations also wait for those of other replicas. */
  readonly synced: readonly boolean[];
  /** Whether an operation waits for partners at all: then its own time is what comes after the last arrival. */
  readonly isShared: readonly boolean[];
  /** Sends whose receive was found. */
  readonly pairs: number;
}

export function dependenciesOf(grid: Grid): Dependencies {
  const before: number[][] = grid.ops.map(() => []);
  const follow = (first: number | undefined, second: number | undefined): void => {
    if (first !== undefined && second !== undefined) before[second]!.push(first);
  };
  const chain = (ops: readonly number[]): void => {
    ops.forEach((op, i) => follow(ops[i - 1], op));
  };
  const views = Array.from({ length: grid.stages }, (_, stage) => viewOf(grid, stage));
  const { pairs, edges } = pointToPoint(grid, views);
  for (const [first, second] of edges) follow(first, second);
  // Gradients are reduced during the backward passes where a job also reduces some separately.
  const overlaps = grid.ops.some(({ kind }) => kind === "separate-grads-all-reduce");
  for (const view of views) {
    // One stream for passes, one for each kind of point-to-point, one for parameters and gradients.
    chain(view.of("forward-compute", "backward-compute"));
    for (const kind of P2P) chain(view.of(kind));
    firstBackward(grid, view, follow);
    chain(view.of("params-all-gather", "grads-reduce-scatter"));
    afterGather(grid, view, follow);
    if (overlaps) beforeReduce(grid, view, follow);
    afterPasses(view, overlaps, follow);
  }
  return { before, pairs: pairs.length, ...groupsOf(grid, pairs) };
}

const P2P: readonly Kind[] = ["forward-send", "forward-recv", "backward-send", "backward-recv"];
type Follow = (first: number | undefined, second: number | undefined) => void;

/** The first backward send and receive are launched with the pass before the last warm-up pass. */
function firstBackward(grid: Grid, view: StageView, follow: Follow): void {
  const passes = view.of("forward-compute", "backward-compute");
  const first = passes.findIndex((op) => grid.ops[op]!.kind === "backward-compute");
  if (first < 2) return;
  for (const kind of ["backward-send", "backward-recv"] as const) {
    follow(
      passes[first - 2],
      view.of(kind).find((op) => grid.ops[op]!.seq === 0),
    );
  }
}

/** The first forward pass of a part of the model needs that part's parameters: its last gather. */
function afterGather(grid: Grid, view: StageView, follow: Follow): void {
  const seen = new Set<number>();
  for (const gather of [...view.of("params-all-gather")].reverse()) {
    const { chunk } = grid.ops[gather]!;
    if (seen.has(chunk)) continue;
    seen.add(chunk);
    follow(
      gather,
      view.of("forward-compute").find((op) => grid.ops[op]!.chunk === chunk),
    );
  }
}

/** The first reduction of a part follows that part's last backward pass. */
function beforeReduce(grid: Grid, view: StageView, follow: Follow): void {
  const seen = new Set<number>();
  for (const reduce of view.of("grads-reduce-scatter")) {
    const { chunk } = grid.ops[reduce]!;
    if (seen.has(chunk)) continue;
    seen.add(chunk);
    const passes = view.of("backward-compute").filter((op) => grid.ops[op]!.chunk === chunk);
    follow(latest(view, passes), reduce);
  }
}

/** What comes after the passes, in order; kinds that a job does not have are skipped. */
function afterPasses(view: StageView, overlaps: boolean, follow: Follow): void {
  const passes = view.of("forward-compute", "backward-compute");
  const collected = view.of("gc");
  follow(latest(view, passes), collected[0]);
  const kinds: Kind[] = [
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    overlaps ? "separate-grads-all-reduce" : "grads-reduce-scatter",
    "optimizer-clip-main-grad",
    "optimizer",
  ];
  const ops = kinds.flatMap((kind) => view.of(kind));
  follow(collected.at(-1) ?? latest(view, passes), ops[0]);
  if (overlaps) follow(view.of("grads-reduce-scatter").at(-1), ops[0]);
  ops.forEach((op, i) => follow(ops[i - 1], op));
}

function latest(view: StageView, ops: readonly number[]): number | undefined {
  return ops.reduce<number | undefined>(
    (best, op) => (best === undefined || view.endMs(op) > view.endMs(best) ? op : best),
    undefined,
  );
}

function groupsOf(
  grid: Grid,
  pairs: readonly (readonly [number, number])[],
): Pick<Dependencies, "groups" | "synced" | "isShared"> {
  const across = (kind: Kind): number[] =>
    grid.ops.flatMap((op, at) => (op.kind === kind ? [at] : []));
  const groups: (readonly number[])[] = [
    ...pairs,
    ...[across("embedding-grads-all-reduce"), across("optimizer-clip-main-grad")].filter(
      (ops) => ops.length > 0,
    ),
  ];
  const grouped = new Set(groups.flat());
  grid.ops.forEach((_, op) => {
    if (!grouped.has(op)) groups.push([op]);
  });
  return {
    groups,
    synced: groups.map((ops) => spansReplicas(grid.ops[ops[0]!]!.kind)),
    isShared: grid.ops.map(({ kind }, op) => grouped.has(op) || spansReplicas(kind)),
  };
}

function viewOf(grid: Grid, stage: number): StageView {
  const startMs = (op: number): number => grid.startMs[op * grid.lanes]!;
  const endMs = (op: number): number => startMs(op) + grid.durationMs[op * grid.lanes]!;
  const byKind = new Map<string, readonly number[]>();
  const inOrder = (kinds: readonly Kind[]): number[] =>
    grid.ops
      .flatMap((op, at) => (op.stage === stage && kinds.includes(op.kind) ? [at] : []))
      .sort(
        (a, b) =>
          startMs(a) - startMs(b) ||
          grid.ops[a]!.seq - grid.ops[b]!.seq ||
          KINDS.indexOf(grid.ops[a]!.kind) - KINDS.indexOf(grid.ops[b]!.kind),
      );
  return {
    of(...kinds) {
      const key = kinds.join();
      const known = byKind.get(key) ?? inOrder(kinds);
      byKind.set(key, known);
      return known;
    },
    startMs,
    endMs,
  };
}
