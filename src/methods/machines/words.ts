/** Deviations in words. */
import type { Deviation } from "../../model/machine-report.ts";
import { isHealthCounter, measuredWords } from "../../model/deviation-words.ts";

/** "gpu3: GPU power 71 W, peers 512 W"; a counter that names the cause by itself says since when. */
export function deviationWords(deviation: Deviation): string {
  const words = measuredWords(deviation);
  if (!isHealthCounter(deviation)) return words;
  const since = new Date(Math.round(1000 * deviation.fromS)).toISOString().slice(11, 16);
  return `${words} since ${since}`;
}

export function tidySeconds(seconds: number): string {
  if (seconds >= 90) return `${Math.round(seconds / 6) / 10} min`;
  return seconds >= 10 ? `${Math.round(seconds)} s` : `${Math.round(seconds * 10) / 10} s`;
}

const MOST_NAMED = 4;

/** "node1, node2, node3, node4, …" */
export function listed(names: readonly string[]): string {
  return names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? ", …" : "");
}
