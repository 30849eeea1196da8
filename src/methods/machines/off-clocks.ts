/** Machines whose samples lie in another time than everybody else's: their clock is off, nothing lines up. */
import { median } from "../../maths/robust.ts";
import type { Placed } from "./grid-maker.ts";

export function offClocks(
  machines: readonly string[],
  placed: readonly Placed[],
): { isOff: Uint8Array; missing: string[] } {
  const first = new Float64Array(machines.length).fill(Infinity);
  const last = new Float64Array(machines.length).fill(-Infinity);
  for (const { samples, machine } of placed) {
    const { start, timeS } = samples;
    machine.forEach((m, s) => {
      if (m < 0 || start[s] === start[s + 1]) return;
      first[m] = Math.min(first[m]!, timeS[start[s]!]!);
      last[m] = Math.max(last[m]!, timeS[start[s + 1]! - 1]!);
    });
  }
  const isOff = new Uint8Array(machines.length);
  const missing: string[] = [];
  const seen = machines.map((_, m) => m).filter((m) => last[m]! > -Infinity);
  if (seen.length < 3) return { isOff, missing };
  const usualFirst = median(seen.map((m) => first[m]!));
  const usualLast = median(seen.map((m) => last[m]!));
  for (const m of seen) {
    const apart = last[m]! < usualFirst || first[m]! > usualLast;
    if (!apart && !isShifted(first[m]! - usualFirst, last[m]! - usualLast)) continue;
    isOff[m] = 1;
    const byS = Math.round(Math.abs(first[m]! - usualFirst));
    const way = first[m]! < usualFirst ? "before" : "after";
    missing.push(
      `${machines[m]} is not compared: its samples lie ${byS} s ${way} everybody else's, so its clock or its time zone is off`,
    );
  }
  return { isOff, missing };
}

/** Beginning and end off by the same, to a fifth, and by more than scrapes can blur. A dead machine ends, but began in time. */
function isShifted(firstS: number, lastS: number): boolean {
  const least = Math.min(Math.abs(firstS), Math.abs(lastS));
  return firstS * lastS > 0 && least >= LEAST_SHIFT_S && Math.abs(firstS - lastS) <= 0.2 * least;
}

const LEAST_SHIFT_S = 45;
