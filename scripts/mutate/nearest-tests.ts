/** Which tests reach a source file, those first that are the fewest imports away. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const FOLDERS = ["src", "test", "web", "eval"];
const SOURCE = /\.tsx?$/;
const UNIT = /^(src\/.*|web\/.*|test\/[^/]*)\.test\.ts$/;
/** Runs the built program, which the copy has not got. */
const BUILT = "test/smoke.test.ts";

export function nearestTests(root: string, file: string, most: number): string[] {
  const importers = importersIn(root);
  const tests: string[] = [];
  const seen = new Set([file]);
  for (let ring = [file]; ring.length > 0 && tests.length < most;) {
    tests.push(...ring.filter((path) => UNIT.test(path) && path !== BUILT).sort());
    ring = ring.flatMap((path) => importers.get(path) ?? []).filter((path) => !seen.has(path));
    ring = [...new Set(ring)];
    for (const path of ring) seen.add(path);
  }
  return tests.slice(0, most);
}

/** By file, who imports it (as a module, or as the program of a worker). */
function importersIn(root: string): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const path of FOLDERS.flatMap((folder) => sourcesIn(root, folder))) {
    const text = readFileSync(join(root, path), "utf8");
    for (const [, target] of text.matchAll(/(?:from|import\(|new URL\()\s*"(\.[^"]+\.tsx?)"/g)) {
      const file = relative(root, join(root, path, "..", target!));
      importers.set(file, [...(importers.get(file) ?? []), path]);
    }
  }
  return importers;
}

export function sourcesIn(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => SOURCE.test(name))
    .map((name) => `${folder}/${name}`)
    .sort();
}
