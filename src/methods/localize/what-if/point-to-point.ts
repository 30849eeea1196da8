/**
 * Which pass a send or receive belongs to, and who its partner is. Tracers record only the order of sends and
 * receives, so the i-th receive is taken to feed the i-th pass of its direction; the first and last part of the
 * model have nobody to talk to, and what is recorded there did not take place.
 */
import type { Grid, Op } from "./grid.ts";
import type { Kind } from "./kinds.ts";

/** Clocks of one machine's streams agree to this. */
const TOLERANCE_MS = 0.05;

const DIRECTIONS = ["forward", "backward"] as const;
const ENDS = ["send", "recv"] as const;

interface PointToPoint {
  /** Pairs [op, op] that wait for each other. */
  readonly pairs: readonly (readonly [number, number])[];
  /** [before, after]: what in-rank order follows. */
  readonly edges: readonly (readonly [number, number])[];
}

/** What the model's builders need to know of the operations of one stage. */
export interface StageView {
  /** Operation numbers of the kind, in order of their start. */
  of(...kinds: readonly Kind[]): readonly number[];
  startMs(op: number): number;
  endMs(op: number): number;
}

export function pointToPoint(grid: Grid, views: readonly StageView[]): PointToPoint {
  const edges: [number, number][] = [];
  /** "stage kind" → operations that took place, in order. */
  const real = new Map<string, number[]>();
  const parts = grid.stages * (1 + grid.ops.reduce((most, { chunk }) => Math.max(most, chunk), 0));
  views.forEach((view, stage) => {
    for (const direction of DIRECTIONS) {
      for (const end of ENDS) {
        const kind: Kind = `${direction}-${end}`;
        const matched = matchPasses(grid.ops, view, direction, end);
        for (const [comm, pass] of matched) {
          if (end === "send") edges.push([pass, comm]);
          else {
            edges.push([comm, pass]);
            // The receive is launched once the pass before is done.
            const before = passOf(grid.ops, view, direction, grid.ops[pass]!.seq - 1);
            if (before !== undefined) edges.push([before, comm]);
          }
        }
        const ends = matched
          .filter(([, pass]) => hasPartner(grid, grid.ops[pass]!, direction, end, parts))
          .map(([comm]) => comm);
        real.set(`${stage} ${kind}`, ends);
      }
    }
  });
  return { pairs: pairsOf(grid.stages, real), edges };
}

/** [communication, pass] of one stage, direction and end. */
function matchPasses(
  ops: readonly Op[],
  view: StageView,
  direction: (typeof DIRECTIONS)[number],
  end: (typeof ENDS)[number],
): [number, number][] {
  const passes = view.of(`${direction}-compute`);
  if (passes.length === 0) return [];
  const lastStart = Math.max(...passes.map((op) => view.startMs(op)));
  const firstEnd = Math.min(...passes.map((op) => view.endMs(op)));
  // Tracers also note sends before the first result and receives after the last pass: nothing was sent there.
  const comms = view
    .of(`${direction}-${end}`)
    .filter((op) =>
      end === "recv"
        ? view.startMs(op) <= lastStart + TOLERANCE_MS
        : view.endMs(op) >= firstEnd - TOLERANCE_MS,
    );
  // With virtual stages, the very first receive (of what nobody sends) may not be recorded.
  const skipped = end === "recv" && comms.length + 1 === passes.length ? 1 : 0;
  return comms.flatMap((comm, i): [number, number][] => {
    const pass = passOf(ops, view, direction, i + skipped);
    return pass === undefined ? [] : [[comm, pass]];
  });
}

function passOf(
  ops: readonly Op[],
  view: StageView,
  direction: (typeof DIRECTIONS)[number],
  seq: number,
): number | undefined {
  const passes = view.of(`${direction}-compute`);
  // Nearly always in order, and then the number is the place.
  if (passes[seq] !== undefined && ops[passes[seq]]!.seq === seq) return passes[seq];
  return passes.find((op) => ops[op]!.seq === seq);
}

/** Parts of the model go round the stages: part c of stage s is number c * stages + s. */
function hasPartner(
  grid: Grid,
  { chunk, stage }: Op,
  direction: (typeof DIRECTIONS)[number],
  end: (typeof ENDS)[number],
  parts: number,
): boolean {
  const part = chunk * grid.stages + stage;
  const partner = part + ((direction === "forward") === (end === "send") ? 1 : -1);
  return partner >= 0 && partner < parts;
}

function pairsOf(stages: number, real: ReadonlyMap<string, readonly number[]>): [number, number][] {
  const pairs: [number, number][] = [];
  for (let stage = 0; stage < stages; stage++) {
    for (const direction of DIRECTIONS) {
      const next = (stage + (direction === "forward" ? 1 : stages - 1)) % stages;
      const sends = real.get(`${stage} ${direction}-send`) ?? [];
      const receives = real.get(`${next} ${direction}-recv`) ?? [];
      sends.forEach((send, i) => {
        if (receives[i] !== undefined) pairs.push([send, receives[i]]);
      });
    }
  }
  return pairs;
}
