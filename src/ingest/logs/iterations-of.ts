/** The rows of all streams, taken apart. */
import type { LogIterations } from "../../model/log-digest.ts";
import type { IterationTable } from "./iteration-table.ts";

export function iterationsOf(table: IterationTable): LogIterations[] {
  const { count, stream, iteration, line, timeMs, sequence } = table;
  // Arrays by stream: a long job has millions of rows.
  const rows: number[] = [];
  for (let row = 0; row < count; row++) rows[stream[row]!] = (rows[stream[row]!] ?? 0) + 1;
  const of: (LogIterations & { next: number })[] = [];
  rows.forEach((length, key) => {
    of[key] = {
      stream: key,
      iteration: new Float64Array(length),
      line: new Uint32Array(length),
      timeMs: new Float64Array(length),
      sequence: new Int32Array(length),
      next: 0,
    };
  });
  for (let row = 0; row < count; row++) {
    const to = of[stream[row]!]!;
    const at = to.next++;
    to.iteration[at] = iteration[row]!;
    to.line[at] = line[row]!;
    to.timeMs[at] = timeMs[row]!;
    to.sequence[at] = sequence[row]!;
  }
  return of.filter(Boolean).map(({ next: _next, ...iterations }) => iterations);
}
