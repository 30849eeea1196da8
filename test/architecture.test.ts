/** ARCHITECTURE.md is true: what it names exists, and its walks follow imports. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

const WALKS = [
  ...text.matchAll(/<!-- walk: (\w+) -->\n\n((?:\d+\. [^\n]+\n(?: +[^\n]+\n)*)+)/g),
].map(([, name, list]) => ({
  name: name!,
  files: [...list!.matchAll(/^\d+\. `(src\/[^`]+)`/gm)].map(([, file]) => file!),
}));

/** Files that a module names in an import or starts as a worker. */
function importsOf(file: string): string[] {
  const source = readFileSync(join(root, file), "utf8");
  return [...source.matchAll(/(?:from |import\(\s*|import |new URL\(\s*)"(\.[^"]+)"/g)].map(
    ([, to]) => join(dirname(file), to!),
  );
}

describe("ARCHITECTURE.md", () => {
  it("is short, and names folders and files that exist", () => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(10_240);
    const named = [
      ...text.matchAll(/`((?:src|web|probe|eval|bench|test|scripts|docs|fixtures)\/[\w./-]*)`/g),
    ];
    for (const [, path] of named)
      expect([path, existsSync(join(root, path!))]).toEqual([path, true]);
    for (const [, path] of text.matchAll(/\]\(([\w./-]+\.md)\)/g))
      expect([path, existsSync(join(root, path!))]).toEqual([path, true]);
  });

  it("walks from a dump to the sentence in 15 files, and from an iteration to an incident in 20", () => {
    expect(WALKS.map(({ name }) => name)).toEqual(["dump", "live"]);
    expect(WALKS[0]!.files.length).toBeLessThanOrEqual(15);
    expect(WALKS[1]!.files.length).toBeLessThanOrEqual(20);
  });

  it.each(WALKS)("walks by imports: $name", ({ files }) => {
    expect(files.every((file) => statSync(join(root, file)).isFile())).toBe(true);
    const imported = new Set(importsOf(files[0]!));
    const strangers: string[] = [];
    for (const file of files.slice(1)) {
      // A command begins a process of its own, which the one before reaches over the network.
      if (!imported.has(file) && !file.startsWith("src/cli/")) strangers.push(file);
      for (const next of importsOf(file)) imported.add(next);
    }
    expect(strangers).toEqual([]);
  });
});
