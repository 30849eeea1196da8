import { expect, test } from "vitest";
import { mergeDigests } from "./merge-digests.ts";
import type { PartialDigest } from "./partial-digest.ts";
import { LogEngine } from "./scanner.ts";

function digested(file: number, text: string): PartialDigest {
  const engine = new LogEngine({ isTelling: () => false });
  engine.begin(file);
  engine.push(Buffer.from(text));
  engine.end();
  return engine.digest();
}

const letters = (i: number): string =>
  String(i).replace(/\d/g, (digit) => "qrstuvwxyz"[Number(digit)]!);

test("files keep apart, shapes are the same in all", () => {
  const files = ["x 1\ndisk 1 failed\n", "y 1\ndisk 3 failed\n"].map((text, i) =>
    digested(i, text),
  );
  const digest = mergeDigests(["a", "b"], files);
  expect(digest.files.map(({ lines }) => lines)).toEqual([2, 2]);
  expect(digest.kept.map(({ file, line, text }) => [file, line, text])).toEqual([
    [0, 2, "disk 1 failed"],
    [1, 2, "disk 3 failed"],
  ]);
  expect(digest.shapes.map(({ text, file, line, count }) => [text, file, line, count])).toEqual([
    ["x 1", 0, 1, 1],
    ["disk 1 failed", 0, 2, 2],
    ["y 1", 1, 1, 1],
  ]);
});

test("of ever new shapes only so many stay, with every line counted", () => {
  const files = [0, 1, 2].map((p) =>
    digested(
      p,
      Array.from(
        { length: 100 },
        (_, i) => `same first words of it all ${letters(p * 100 + i)}\n`,
      ).join(""),
    ),
  );
  const digest = mergeDigests(["a", "b", "c"], files, { shapes: 120 });
  expect(digest.shapes.length).toBeLessThan(125);
  expect(digest.shapes.reduce((sum, { count }) => sum + count, 0)).toBe(300);
  expect(digest.missing[0]).toMatch(/^179 lines came/);
});

test("too many cells, kept lines, blocks and reports are left out and said so", () => {
  const text = Array.from(
    { length: 100 },
    (_, i) =>
      `[rank${i % 2}]: step: ${i}  loss: 1.0\n[rank${i % 2}]: Traceback (most recent call last):\n` +
      `[rank${i % 2}]:   File "/w/a.py", line 3, in f\n[rank${i % 2}]: ValueError: bad ${i}\n`,
  ).join("");
  const once =
    "[rank7]: Traceback (most recent call last):\n" +
    '[rank7]:   File "/w/b.py", line 4, in g\n[rank7]: KeyError: 3\n';
  const digest = mergeDigests(["a"], [digested(0, once + text)], {
    cells: 9,
    kept: 5,
    blocks: 50,
    iterations: 40,
  });
  expect(digest.cells.count).toBe(9);
  expect(digest.kept.length).toBeLessThanOrEqual(5);
  expect(digest.missing).toHaveLength(4);
  // The rare one, the first and the last stay.
  const texts = digest.blocks.map(({ text: said }) => said);
  expect(texts.length).toBeLessThanOrEqual(50);
  for (const said of ["KeyError: 3", "ValueError: bad 0", "ValueError: bad 99"])
    expect(texts).toContain(said);
  const numbers = digest.iterations.flatMap(({ iteration }) => [...iteration]);
  expect(numbers.length).toBeLessThanOrEqual(40);
  expect(numbers).toEqual(expect.arrayContaining([0, 1, 98, 99]));
});
