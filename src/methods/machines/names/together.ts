/**
 * The last resort, where no label and no info metric tells who is who: names of GPUs and names of hosts that came, were
 * gone and went at the same times, and nobody else did. Machines that were there all the time cannot be told apart so.
 */
import type { MetricSet } from "../../../model/metrics.ts";

export interface Presence {
  readonly name: string;
  readonly isGpu: boolean;
  readonly isHost: boolean;
  /** Times of its first and last sample, and the edges of long gaps. */
  readonly edgesS: readonly number[];
}

const GAP_STEPS = 4;
const SLACK_STEPS = 1.5;

/** Pairs of [GPU's name, host's name]. */
export function cameAndWentTogether(
  sets: readonly MetricSet[],
  nameOf: (name: string) => string,
): (readonly [string, string])[] {
  const { seen, stepS } = presences(sets, nameOf);
  const ends = [...seen.values()];
  const firstS = Math.min(...ends.map(({ edgesS }) => edgesS[0]!));
  const lastS = Math.max(...ends.map(({ edgesS }) => edgesS.at(-1)!));
  const slackS = SLACK_STEPS * stepS;
  // Only what differs from having been there all the time tells anything.
  const odd = ends
    .map((one) => ({
      ...one,
      edgesS: one.edgesS.filter(
        (atS) => atS > firstS + GAP_STEPS * stepS && atS < lastS - GAP_STEPS * stepS,
      ),
    }))
    .filter(({ edgesS, isGpu, isHost }) => edgesS.length > 0 && isGpu !== isHost);
  const isAlike = (a: Presence, b: Presence): boolean =>
    a.isGpu !== b.isGpu &&
    a.edgesS.length === b.edgesS.length &&
    a.edgesS.every((atS, i) => Math.abs(atS - b.edgesS[i]!) <= slackS);
  return odd
    .filter(({ isGpu }) => isGpu)
    .flatMap((gpu) => {
      const alike = odd.filter((other) => isAlike(gpu, other));
      if (alike.length !== 1) return [];
      const back = odd.filter((other) => isAlike(other, alike[0]!));
      return back.length === 1 ? [[gpu.name, alike[0]!.name] as const] : [];
    });
}

function presences(
  sets: readonly MetricSet[],
  nameOf: (name: string) => string,
): { seen: Map<string, Presence>; stepS: number } {
  const seen = new Map<string, Presence>();
  let stepS = 0;
  for (const { samples, machines } of sets) {
    for (const { name, machine, start, timeS } of samples) {
      const isGpu = /^(dcgm|nvidia)/i.test(name);
      for (let s = 0; s + 1 < start.length; s++) {
        const who = nameOf(machines[machine[s]!]!);
        const known = seen.get(who);
        if (start[s + 1]! - start[s]! < 2 || (known && (isGpu ? known.isGpu : known.isHost)))
          continue;
        const times = timeS.subarray(start[s], start[s + 1]);
        const usualS = (times.at(-1)! - times[0]!) / (times.length - 1);
        stepS = Math.max(stepS, Math.min(usualS, 60));
        const edgesS = [times[0]!];
        for (let i = 1; i < times.length; i++)
          if (times[i]! - times[i - 1]! > GAP_STEPS * Math.max(1, usualS))
            edgesS.push(times[i - 1]!, times[i]!);
        edgesS.push(times.at(-1)!);
        seen.set(who, {
          name: who,
          isGpu: isGpu || known?.isGpu === true,
          isHost: !isGpu || known?.isHost === true,
          edgesS,
        });
      }
    }
  }
  return { seen, stepS };
}
