import { expect, test } from "vitest";
import { logForms } from "../log-engine.ts";
import { rankLog } from "../rank-log.ts";
import { digestOf, type FileDigest } from "./file-digests.ts";

/** Files are read one after the other by one thread, which knows the forms of lines from those before. */
function read(files: readonly (readonly [name: string, text: string])[]): FileDigest[] {
  const forms = logForms();
  return files.map(([file, text]) => {
    const sink = rankLog.open(file, { forms });
    sink.push(Buffer.from(text));
    sink.end();
    return { file, digest: sink.digest! };
  });
}

const FILES = [
  ["a.log", "disk 12 failed\nstep 1 took 20 ms\n"],
  ["b.log", "step 77 took 9 ms\ndisk 4 failed\nstep 78 took 9 ms\n"],
  ["c.log", "[rank3]: disk 9 failed\n"],
] as const;
const byName = (a: FileDigest, b: FileDigest): number => (a.file < b.file ? -1 : 1);

test("a digest does not depend on the order in which a thread came by the files", () => {
  const there = digestOf(read(FILES).sort(byName));
  const back = digestOf(read(FILES.toReversed()).sort(byName));
  expect(back).toEqual(there);
  expect(there.shapes.map(({ text }) => text)).toEqual(["disk 12 failed", "step 1 took 20 ms"]);
});

test("equal lines of two files are one shape of two streams", () => {
  const { streams, shapes, files } = digestOf(read(FILES));
  expect(files.map(({ name, lines }) => [name, lines])).toEqual([
    ["a.log", 2],
    ["b.log", 3],
    ["c.log", 1],
  ]);
  expect(streams.map(({ file, rank }) => [file, rank])).toEqual([
    [0, null],
    [1, null],
    [2, 3],
  ]);
  expect(shapes.map(({ count }) => count)).toEqual([3, 3]);
});
