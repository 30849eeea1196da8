/** Stacks, profiles and reports that processes leave beside their rings (probe/RING.md, "Where"). */
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { RingFile } from "../rings/ring-file.ts";

/** Paths of those that say something, and what changes when they are written anew. */
export function sidecarsOf(rings: readonly Pick<RingFile, "path">[]): Map<string, string> {
  const own = new Set(rings.map(({ path }) => path));
  const found = new Map<string, string>();
  for (const folder of new Set(rings.map(({ path }) => dirname(path)))) {
    for (const name of namesIn(folder)) {
      const end = name.indexOf(".ring.");
      // Half written: its writer renames it when it is whole.
      if (end < 0 || name.endsWith(".part")) continue;
      if (!own.has(join(folder, name.slice(0, end + ".ring".length)))) continue;
      const mark = markOf(join(folder, name));
      if (mark !== null) found.set(join(folder, name), mark);
    }
  }
  return found;
}

/** Those that are new or were written again, with this ending. */
export function changedSince(
  before: ReadonlyMap<string, string>,
  rings: readonly Pick<RingFile, "path">[],
  ending: RegExp,
): string[] {
  return [...sidecarsOf(rings)].flatMap(([path, mark]) =>
    ending.test(basename(path)) && before.get(path) !== mark ? [path] : [],
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** Null for an empty one: the probe makes the file for stacks before there are any. */
function markOf(path: string): string | null {
  try {
    const { ino, mtimeNs, size } = lstatSync(path, { bigint: true });
    return size === 0n ? null : `${ino} ${mtimeNs} ${size}`;
  } catch {
    return null;
  }
}
