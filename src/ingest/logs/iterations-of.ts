/** The rows of all streams, taken apart. */
import type { LogIterations } from "../../model/log-digest.ts";
import type { IterationTable } from "./iteration-table.ts";

export function iterationsOf(table: IterationTable): LogIterations[] {
  const { count, stream, iteration, line, timeMs, sequence } = table;
  const rows = new Map<number, number>();
  for (let row = 0; row < count; row++) rows.set(stream[row]!, (rows.get(stream[row]!) ?? 0) + 1);
  const of = new Map<number, LogIterations & { next: number }>();
  for (const [key, length] of [...rows].sort(([x], [y]) => x - y)) {
    of.set(key, {
      stream: key,
      iteration: new Float64Array(length),
      line: new Uint32Array(length),
      timeMs: new Float64Array(length),
      sequence: new Int32Array(length),
      next: 0,
    });
  }
  for (let row = 0; row < count; row++) {
    const to = of.get(stream[row]!)!;
    const at = to.next++;
    to.iteration[at] = iteration[row]!;
    to.line[at] = line[row]!;
    to.timeMs[at] = timeMs[row]!;
    to.sequence[at] = sequence[row]!;
  }
  return [...of.values()].map(({ next: _next, ...iterations }) => iterations);
}
