import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seeded } from "../../base/random.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import { findLogFiles, unreadable } from "./files.ts";
import { readLogs } from "./read-logs.ts";
import { few } from "../../../test/support/cases.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-logs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Some thousand lines of four ranks in one file. */
function mergedLog(seed: number, steps: number): string {
  const random = seeded(seed);
  const lines: string[] = [];
  for (let step = 1; step <= steps; step++) {
    const at = new Date(Date.UTC(2026, 4, 20, 8) + step * 2000).toISOString();
    for (let rank = 0; rank < 4; rank++) {
      lines.push(`[rank${rank}]: ${at} INFO step: ${step}  loss: ${random().toFixed(3)}`);
      lines.push(`[rank${rank}]: loaded ${Math.floor(random() * 1000)} samples`);
      if (random() < 0.05) lines.push(`[rank${rank}]: ${at} WARNING slow read of shard ${step}`);
      if (random() < 0.02) lines.push(`[rank${rank}]: RuntimeError: lost sample ${step}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

const USE: { readonly taskBytes: number } = { taskBytes: 20_000 };

test("the digest does not depend on how many threads read it", async () => {
  const paths = [
    file("a.log", mergedLog(1, 400)),
    file("b.log", mergedLog(2, 60)),
    file("c.log", ""),
  ];
  const one = await readLogs(paths, { ...USE, workers: 0 });
  for (const workers of few([3, 1], 1))
    expect(await readLogs(paths, { ...USE, workers })).toEqual(one);
  expect(one.iterations).toHaveLength(8);
}, 60_000);

test("nor does that of text that is new in every line", async () => {
  const word = (i: number): string =>
    String(i).replace(/\d/g, (digit) => "qrstuvwxyz"[Number(digit)]!);
  const lines = Array.from({ length: 16_000 }, (_, i) =>
    i < 3000 ? `warming up ${i}` : `2031-05-06 07:08:09 INFO ${word(i)} ${word(i * 7)}`,
  );
  const path = file("dump.log", `${lines.join("\n")}\n`);
  const one = await readLogs([path], { taskBytes: 250_000, workers: 0 });
  expect(one.missing.join()).toMatch(/too many different/);
  expect(await readLogs([path], { taskBytes: 250_000, workers: 2 })).toEqual(one);
}, 60_000);

test("parts of a file add up to what the whole file says", async () => {
  const path = file("d.log", mergedLog(3, 300));
  const sorted = (digest: LogDigest) => ({
    ...digest,
    // Their numbers depend on which came first; a line without a time has that of the part's last.
    sequences: [],
    cells: { ...digest.cells, firstMs: 0, lastMs: 0 },
    kept: digest.kept.map(({ timeMs, ...rest }) => ({ ...rest, isDated: timeMs > 0 })),
    iterations: digest.iterations.map((one) => ({ ...one, sequence: 0 })),
  });
  const whole = await readLogs([path], { workers: 0 });
  for (const taskBytes of [1000, 7919, 50_000]) {
    const parts = await readLogs([path], { workers: 0, taskBytes });
    expect(sorted(parts)).toEqual(sorted(whole));
    const sequences = (digest: LogDigest) =>
      digest.iterations.map((one) =>
        [...one.sequence].map((id) => [...(digest.sequences[id] ?? [])]),
      );
    expect(sequences(parts)).toEqual(sequences(whole));
  }
});

test("a packed log is read like the log itself", async () => {
  const text = mergedLog(4, 50);
  const plain = await readLogs([file("e.log", text)], { workers: 0 });
  const packed = await readLogs([file("e.log.gz", gzipSync(text))], { workers: 0 });
  expect({ ...packed, files: [] }).toEqual({ ...plain, files: [] });
  expect(packed.files[0]).toMatchObject({ bytes: text.length, defects: [] });
  const broken = await readLogs([file("f.log.gz", gzipSync(text).subarray(0, 900))], {
    workers: 0,
  });
  expect(broken.files[0]!.defects[0]).toMatch(/could not be unpacked to its end/);
});

test("what is no text or not there is said, and the rest is read", async () => {
  const binary = file(
    "core.1234",
    Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) % 256),
  );
  const wide = file("wide.log", Buffer.from("error in utf16\n".repeat(50), "utf16le"));
  const good = file("good.log", "disk failed\n");
  const digest = await readLogs([binary, join(folder, "gone.log"), wide, good], { workers: 0 });
  expect(digest.files.map(({ defects }) => defects.length)).toEqual([1, 1, 1, 0]);
  expect(digest.kept).toMatchObject([{ file: 3, line: 1 }]);
});

test("separate files are streams of their own, each with its own lines", async () => {
  const paths = [0, 1, 2].map((rank) => file(`rank-${rank}.log`, `hello ${rank}\nhello again\n`));
  const digest = await readLogs(paths, { workers: 0 });
  expect(digest.streams.map(({ file: of, lines }) => [of, lines])).toEqual([
    [0, 2],
    [1, 2],
    [2, 2],
  ]);
  expect(digest.shapes.map(({ count }) => count)).toEqual([3, 3]);
  expect(digest.cells.count).toBe(6);
});

test("a file without years takes that of the job", async () => {
  const paths = [
    file("g.log", "I0520 08:00:00.000000 77 a.cpp:1] x\n"),
    file("h.log", "2025-05-20 08:00:00 INFO y\n"),
  ];
  const digest = await readLogs(paths, { workers: 0 });
  expect(digest.streams[0]!.firstMs).toBe(Date.UTC(2025, 4, 20, 8));
});

test("folders give their logs in the order of their numbers", async () => {
  const job = join(folder, "job");
  mkdirSync(join(job, "deep"), { recursive: true });
  for (const name of ["rank10.log", "rank2.log", "train.py", "model.pt", ".hidden", "deep/err"])
    writeFileSync(join(job, name), "x\n");
  const found = await findLogFiles([job]);
  expect(found.map((path) => path.slice(job.length + 1))).toEqual([
    "deep/err",
    "rank2.log",
    "rank10.log",
  ]);
  await expect(findLogFiles([join(job, "none")])).rejects.toThrow(/does not exist/);
});

test("reading can be called off", async () => {
  const path = file("i.log", mergedLog(5, 50));
  const abort = new AbortController();
  const reading = readLogs([path], {
    workers: 0,
    taskBytes: 1000,
    signal: abort.signal,
    onProgress: () => abort.abort(new Error("enough")),
  });
  await expect(reading).rejects.toThrow("enough");
});

test("a link to nothing is told of, not passed by", async () => {
  const job = join(folder, "links");
  mkdirSync(job);
  writeFileSync(join(job, "a.log"), "x\n");
  symlinkSync(join(job, "nowhere"), join(job, "b.log"));
  const digest = await readLogs(await findLogFiles([job]), { workers: 0 });
  expect(digest.files.map(({ defects }) => defects)).toEqual([[], ["it is not there (any more)"]]);
  expect(await unreadable([job])).toEqual([`${join(job, "b.log")}: it is not there (any more)`]);
});

test("what became a folder, or went away, is told of", async () => {
  const digest = await readLogs([folder, file("j.log", "x\n")], { workers: 0 });
  expect(digest.files[0]!.defects).toEqual(["it is a folder that could not be listed"]);
  expect(digest.files[1]).toMatchObject({ lines: 1, defects: [] });
});

test("UTF-16 is read with its mark, and named without it", async () => {
  const text = "disk failed\n".repeat(30);
  const marked = file("k.log", Buffer.from(`\ufeff${text}`, "utf16le"));
  const bare = file("l.log", Buffer.from(text, "utf16le"));
  const packed = file("m.log.gz", gzipSync(Buffer.from(`\ufeff${text}`, "utf16le")));
  const digest = await readLogs([marked, bare, packed], { workers: 0, taskBytes: 100 });
  expect(digest.files.map(({ lines }) => lines)).toEqual([30, 0, 30]);
  expect(digest.files[1]!.defects.join()).toMatch(/iconv -f UTF-16LE -t UTF-8/);
});

test("every part of a file without years takes them from its last change", async () => {
  const day = (i: number): string => (i < 200 ? "Dec 31" : "Jan  1");
  const lines = Array.from({ length: 400 }, (_, i) => `${day(i)} 08:00:00 node1 app: line ${i}`);
  const path = file("n.log", `${lines.join("\n")}\n`);
  utimesSync(path, new Date("2025-06-01"), new Date("2025-06-01"));
  const digest = await readLogs([path], { workers: 0, taskBytes: 2000 });
  expect(digest.streams).toHaveLength(1);
  expect(digest.streams[0]).toMatchObject({
    firstMs: Date.UTC(2024, 11, 31, 8),
    lastMs: Date.UTC(2025, 0, 1, 8),
  });
});

test("a header that the file's beginning shows holds for its later parts", async () => {
  const words = ["opened the door", "closed it", "painted all walls", "swept", "mopped"];
  const lines = Array.from({ length: 900 }, (_, i) => `<trainer ${i % 4}> ${words[i % 5]}`);
  const path = file("o.log", `${lines.join("\n")}\n`);
  const whole = await readLogs([path], { workers: 0 });
  const parts = await readLogs([path], { workers: 0, taskBytes: 3000 });
  expect(whole.streams).toHaveLength(4);
  expect(parts).toEqual(whole);
});
