/**
 * ② FLOPS of matrix operators by shape (FLARE §5.2.2). Kernels that run while a communication kernel runs share the
 * GPU's cores and memory with it, and are slow for that reason only; they are counted apart and accuse nobody.
 */
import { overlapWith } from "../../maths/intervals.ts";
import { median } from "../../maths/robust.ts";
import type { FlopsRow } from "../../model/trace-profile.ts";
import { flopsOf, gemmOf, shapeWords, type Gemm } from "./gemm-shape.ts";
import { MATRIX } from "./instrumented.ts";
import type { Measured } from "./measured.ts";

/** Of a kernel's time: less overlap than this changes its duration by less than clocks vary. */
export const OVERLAPS = 0.1;
const MOST_ROWS = 64;

export function flopsRows(measured: Measured): FlopsRow[] {
  const { trace, classes, step, communication } = measured;
  const { gpu, matrixOps, shapes, names } = trace;
  /** By operator: how long all its kernels ran, and whether something overlapped them. */
  const ranNs = new Map<number, { ns: number; isOverlapped: boolean }>();
  for (let i = 0; i < gpu.count; i++) {
    const op = gpu.matrixOp[i]!;
    if (op < 0 || classes[i] !== MATRIX || step[i]! < 0) continue;
    const from = gpu.startNs[i]!;
    const ns = gpu.durNs[i]!;
    const over = overlapWith(communication, from, from + ns) > OVERLAPS * ns;
    const known = ranNs.get(op) ?? { ns: 0, isOverlapped: false };
    ranNs.set(op, { ns: known.ns + ns, isOverlapped: known.isOverlapped || over });
  }
  const byShape = new Map<string, { name: string; shape: string; gemm: Gemm; ran: Ran[] }>();
  for (const [op, { ns, isOverlapped }] of ranNs) {
    const shape = matrixOps.shape[op]!;
    if (shape < 0 || ns <= 0) continue;
    const name = names[matrixOps.name[op]!]!;
    const key = `${matrixOps.name[op]} ${shape}`;
    const known = byShape.get(key);
    if (known) {
      known.ran.push({ ns, isOverlapped });
      continue;
    }
    const gemm = gemmOf(name, shapes[shape]!);
    if (gemm)
      byShape.set(key, {
        name,
        shape: shapeWords(shapes[shape]!),
        gemm,
        ran: [{ ns, isOverlapped }],
      });
  }
  const totalNs = measured.steps.startNs.reduce(
    (sum, at, i) => sum + measured.steps.endNs[i]! - at,
    0,
  );
  return [...byShape.values()]
    .map(({ name, shape, gemm, ran }): FlopsRow => {
      const alone = ran.filter(({ isOverlapped }) => !isOverlapped);
      const counted = (alone.length > 0 ? alone : ran).map(({ ns }) => flopsOf(gemm) / ns / 1e3);
      return {
        kernel: name,
        shape,
        bmkn: [gemm.batch, gemm.m, gemm.k, gemm.n],
        elementBytes: gemm.elementBytes,
        tflops: median(counted),
        count: ran.length,
        overlapped: ran.length - alone.length,
        share: ran.reduce((sum, { ns }) => sum + ns, 0) / totalNs,
      };
    })
    .toSorted((a, b) => b.share - a.share)
    .slice(0, MOST_ROWS);
}

interface Ran {
  readonly ns: number;
  readonly isOverlapped: boolean;
}
