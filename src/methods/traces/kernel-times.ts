/** Durations of kernels by name and shape: which kernel is slower than it was (FLARE §5.2.3), and who fills V_minority. */
import { overlapWith } from "../../maths/intervals.ts";
import { median } from "../../maths/robust.ts";
import type { KernelRow } from "../../model/trace-profile.ts";
import { OVERLAPS } from "./flops.ts";
import { shapeWords } from "./gemm-shape.ts";
import { COLLECTIVE, MATRIX } from "./instrumented.ts";
import type { Measured } from "./measured.ts";

const MOST_ROWS = 96;
const KINDS = ["matrix", "communication", "minority"] as const;

export function kernelRows({ trace, steps, classes, step, communication }: Measured): KernelRow[] {
  const { gpu, matrixOps, shapes, names } = trace;
  const groups = new Map<
    string,
    { name: string; shape: number; kind: number; aloneNs: number[][]; overNs: number[][] }
  >();
  const bySteps = (): number[][] => steps.startNs.map(() => []);
  for (let i = 0; i < gpu.count; i++) {
    if (step[i]! < 0) continue;
    const op = classes[i] === MATRIX ? gpu.matrixOp[i]! : -1;
    const shape = op < 0 ? -1 : matrixOps.shape[op]!;
    const key = `${gpu.name[i]} ${shape}`;
    let group = groups.get(key);
    if (!group) {
      group = {
        name: names[gpu.name[i]!]!,
        shape,
        kind: classes[i]!,
        aloneNs: bySteps(),
        overNs: bySteps(),
      };
      groups.set(key, group);
    }
    const from = gpu.startNs[i]!;
    const ns = gpu.durNs[i]!;
    const isOver =
      classes[i] !== COLLECTIVE && overlapWith(communication, from, from + ns) > OVERLAPS * ns;
    (isOver ? group.overNs : group.aloneNs)[step[i]!]!.push(ns);
  }
  const totalNs = steps.startNs.reduce((sum, at, i) => sum + steps.endNs[i]! - at, 0);
  return [...groups.values()]
    .map(({ name, shape, kind, aloneNs, overNs }): KernelRow => {
      const isOverlapped = aloneNs.every((list) => list.length === 0);
      const counted = (isOverlapped ? overNs : aloneNs).filter((list) => list.length > 0);
      const medians = counted.map((list) => median(list) / 1e3);
      const all = [...aloneNs, ...overNs].flat();
      return {
        name,
        shape: shape < 0 ? "" : shapeWords(shapes[shape]!),
        kind: KINDS[kind]!,
        medianUs: median(counted.flat()) / 1e3,
        stepUs: [Math.min(...medians), Math.max(...medians)],
        perStep: all.length / steps.startNs.length,
        isOverlapped,
        overlapped: overNs.flat().length / all.length,
        share: all.reduce((a, b) => a + b, 0) / totalNs,
      };
    })
    .toSorted((a, b) => b.share - a.share)
    .slice(0, MOST_ROWS);
}
