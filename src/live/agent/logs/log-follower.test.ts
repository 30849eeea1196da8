import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SlowStorage } from "../evidence/slow-storage.ts";
import { expandPattern, LogFollower, type LogTick } from "./log-follower.ts";

let folder: string;
const watches: LogFollower[] = [];
const NOW = Date.UTC(2026, 10, 15, 12, 0, 0);

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-logs-"))));
afterEach(() => {
  for (const watch of watches.splice(0)) watch.close();
  rmSync(folder, { recursive: true, force: true });
});

const path = (name: string): string => join(folder, name);
const megatron = (n: number, ms = 500): string =>
  ` iteration ${n}/ 1000 | consumed samples: 8 | elapsed time per iteration (ms): ${ms.toFixed(1)} | lm loss: 1.0 |\n`;

function follow(...patterns: string[]): (nowMs?: number) => Promise<LogTick> {
  const watch = new LogFollower(
    patterns.map((pattern) => path(pattern)),
    new SlowStorage(),
  );
  watches.push(watch);
  let now = NOW;
  return async (nowMs) => {
    await watch.read((now = nowMs ?? now + 1000));
    return watch.take();
  };
}

async function several<T>(times: number, tick: () => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let i = 0; i < times; i++) all.push(await tick());
  return all;
}

const numbers = ({ rows }: LogTick): number[] => rows.map(({ iteration }) => iteration);
const texts = ({ failures }: LogTick): string[] => failures.map(({ text }) => text);

describe("a log that grows", () => {
  it("is read from its end, and a line when it is whole", async () => {
    writeFileSync(path("rank3.log"), megatron(1) + " iteration 2/ 1000 | con");
    const tick = follow("rank*.log");
    expect(numbers(await tick())).toEqual([]);
    // The rest of a line whose beginning was skipped says nothing.
    appendFileSync(path("rank3.log"), `sumed samples |\n${megatron(3)}${megatron(4).slice(0, 30)}`);
    expect((await tick()).rows).toMatchObject([{ rank: 3, iteration: 3, durationMs: 500 }]);
    appendFileSync(path("rank3.log"), megatron(4).slice(30));
    expect(numbers(await tick())).toEqual([4]);
  });

  it("is followed through rotation and truncation, nothing twice", async () => {
    writeFileSync(path("rank0.log"), "");
    const tick = follow("rank0.log*");
    await tick();
    appendFileSync(path("rank0.log"), megatron(1));
    expect(numbers(await tick())).toEqual([1]);
    appendFileSync(path("rank0.log"), megatron(2));
    renameSync(path("rank0.log"), path("rank0.log.1"));
    writeFileSync(path("rank0.log"), megatron(3));
    const seen = (await several(12, tick)).flatMap(numbers);
    expect(seen).toEqual([2, 3]);
    truncateSync(path("rank0.log"));
    appendFileSync(path("rank0.log"), "x\n");
    await tick();
    appendFileSync(path("rank0.log"), megatron(4));
    expect(numbers(await tick())).toEqual([4]);
  });

  it("that appears later is read from its start", async () => {
    const tick = follow("*/rank*.log");
    expect((await tick()).troubles.join()).toContain("no such file yet");
    mkdirSync(path("a"));
    writeFileSync(path("a/rank1.log"), megatron(1));
    expect((await several(6, tick)).flatMap(numbers)).toEqual([1]);
  });

  it("of binary junk harms nobody", async () => {
    writeFileSync(path("rank0.log"), "");
    const tick = follow("rank0.log");
    await tick();
    const junk = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256));
    appendFileSync(path("rank0.log"), junk);
    appendFileSync(path("rank0.log"), `\n${megatron(5)}`);
    expect(numbers(await tick())).toEqual([5]);
  });

  it("is never a link, a folder or a pipe", async () => {
    writeFileSync(path("secret"), "");
    symlinkSync(path("secret"), path("rank0.log"));
    mkdirSync(path("rank1.log"));
    expect((await follow("rank*.log")()).troubles).toEqual([
      `${path("rank0.log")}: is a link; links are not followed`,
      `${path("rank1.log")}: is not a plain file`,
    ]);
  });
});

describe("iterations in logs", () => {
  const after = async (lines: string, file = "job.log"): Promise<LogTick> => {
    writeFileSync(path(file), "");
    const tick = follow(file);
    await tick(NOW);
    appendFileSync(path(file), lines);
    return await tick(NOW + 4000);
  };

  it("belong to the rank that the line or the file names", async () => {
    const lines = `[rank5]: step: 7  loss: 1.0  tps: 3\n[default2]:${megatron(8)}`;
    expect((await after(lines)).rows).toMatchObject([
      { rank: 5, local: -1, iteration: 7 },
      { rank: -1, local: 2, iteration: 8 },
    ]);
    expect((await after(lines, "rank9.log")).rows).toMatchObject([{ rank: 5 }, { rank: 9 }]);
  });

  it("last as the line says, else by the lines' times, else by when they came", async () => {
    const stamped =
      "2026-11-15 12:00:01,500 step: 1  loss: 1\n2026-11-15 12:00:03,000 step: 3  loss: 1\n";
    const { rows } = await after(stamped, "rank0.log");
    expect(rows[1]).toMatchObject({ iteration: 3, durationMs: 750, endMs: NOW + 3000 });
    writeFileSync(path("rank1.log"), "");
    const tick = follow("rank1.log");
    await tick(NOW);
    appendFileSync(path("rank1.log"), "iter 10: loss 1.0\n");
    await tick(NOW + 1000);
    appendFileSync(path("rank1.log"), "iter 11: loss 1.0\niter 12: loss 1.0\n");
    expect((await tick(NOW + 5000)).rows.map(({ durationMs }) => durationMs)).toEqual([4000, 2000]);
  });
});

describe("failures in logs", () => {
  it("are told by their own words: a traceback's last line, CUDA, NCCL, Xid", async () => {
    writeFileSync(path("rank2.log"), "");
    const tick = follow("rank2.log");
    await tick();
    appendFileSync(
      path("rank2.log"),
      [
        "all is well",
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    step()",
        "ValueError: loss is \u001b[31mnan\u001b[0m",
        "",
      ].join("\n"),
    );
    const seen = (await several(4, tick)).flatMap(({ failures }) => failures);
    expect(seen).toMatchObject([{ rank: 2, text: "ValueError: loss is nan" }]);
    appendFileSync(
      path("rank2.log"),
      "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n",
    );
    expect(texts(await tick()).join()).toContain("Xid");
    appendFileSync(
      path("rank2.log"),
      "RuntimeError: CUDA error: an illegal memory access was encountered\n",
    );
    const later = (await several(4, tick)).flatMap(texts);
    expect(later.join()).toContain("CUDA error");
  });

  it("are a few a minute, and how many were not told is said", async () => {
    writeFileSync(path("rank0.log"), "");
    const tick = follow("rank0.log");
    await tick(NOW);
    const line = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE\n";
    appendFileSync(path("rank0.log"), line.repeat(50));
    expect((await tick(NOW + 1000)).failures).toHaveLength(5);
    appendFileSync(path("rank0.log"), line);
    expect((await tick(NOW + 70_000)).failures).toMatchObject([{ untold: 45 }]);
  });
});

it("finds files by stars in any part of a path", async () => {
  mkdirSync(path("j1/logs"), { recursive: true });
  mkdirSync(path("j2/logs"), { recursive: true });
  for (const name of ["j1/logs/rank0.log", "j2/logs/rank1.log", "j2/logs/.rank2.log", "j2/logs/x"])
    writeFileSync(path(name), "");
  expect((await expandPattern(path("j?/logs/*.log"), 100)).paths).toEqual([
    path("j1/logs/rank0.log"),
    path("j2/logs/rank1.log"),
  ]);
  expect((await expandPattern(path("j?/logs/*.log"), 1)).isCut).toBe(true);
  expect((await expandPattern(path("no/*.log"), 100)).paths).toEqual([]);
});
