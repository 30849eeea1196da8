/** `faultline trace --perfetto FILE`: writes the merged trace, compressed if the name ends in .gz. */
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, resolve, sep } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { UserError, errorText } from "../base/errors.ts";
import { count, harmless, rankWords, ranges } from "../base/text.ts";
import type { Rank } from "../model/ids.ts";
import type { RankKernels } from "../model/kernels.ts";
import type { RankClock } from "../model/trace-picture.ts";
import { micros, perfettoPieces } from "../report/perfetto.ts";
import { refuseKernelFolder } from "./folder-output.ts";

const MOST_SHOWN = 16;
const HINT = "give --perfetto a writable file";

/** Before anything is read: never over what it is made from, nor beside it, where the next run would read it. */
export function refuseInput(file: string, paths: readonly string[]): void {
  const target = resolve(file);
  const over = paths.find((path) => {
    const input = resolve(path);
    return target === input || target.startsWith(input + sep);
  });
  if (over === undefined) return;
  throw new UserError(
    `${file} is one of the inputs (${over})`,
    "give --perfetto a file outside the inputs",
    2,
  );
}

export async function writePerfetto(
  file: string,
  traces: readonly (readonly [Rank, RankKernels])[],
  clocks: readonly RankClock[],
): Promise<void> {
  refuseKernelFolder(dirname(resolve(file)));
  try {
    await mkdir(dirname(resolve(file)), { recursive: true });
    const pieces = Readable.from(perfettoPieces(traces, clocks));
    const out = createWriteStream(file);
    // Level 1: names repeat so much that the next levels save little and take three times as long.
    if (file.endsWith(".gz")) await pipeline(pieces, createGzip({ level: 1 }), out);
    else await pipeline(pieces, out);
  } catch (error) {
    throw new UserError(`cannot write ${file}: ${errorText(error)}`, HINT);
  }
}

/** What was done to the clocks, for people. */
export function perfettoWords(file: string, clocks: readonly RankClock[]): string {
  const sorted = clocks.toSorted((a, b) => a.rank - b.rank);
  const shown = sorted
    .slice(0, MOST_SHOWN)
    .map(({ rank, aheadNs }) => `${rank} ${micros(aheadNs)}`)
    .join(", ");
  const more = sorted.length > MOST_SHOWN ? `, … (${sorted.length} in all)` : "";
  const lines = [
    `perfetto: ${harmless(file)} (${count(sorted.length, "rank")}; open it at ui.perfetto.dev)`,
    `clocks aligned; they were ahead by (µs): rank ${shown}${more}`,
  ];
  const parts = new Map<Rank, Rank[]>();
  for (const { rank, component } of sorted)
    parts.set(component, [...(parts.get(component) ?? []), rank]);
  if (parts.size > 1)
    lines.push(
      `no traced communication connects ${[...parts.values()]
        .slice(0, 6)
        .map((one) => (one.length > 2 ? `ranks ${ranges(one, 6)}` : rankWords(one)))
        .join(" with ")}; their clocks are not aligned with each other`,
    );
  return lines.join("\n");
}
