/** A real job of PyTorch with the probe in every process: what went wrong is told from the rings alone. */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { HEADER } from "../../../src/ingest/probe-ring/layout.ts";
import type { Verdict } from "../../../src/model/verdict.ts";
import {
  byEnvironment,
  callWords,
  get,
  newFolder,
  onlyRing,
  put,
  pythonOfTorch,
  ringFiles,
  ringOf,
  ROOT,
  script,
  start,
  type Started,
  write,
} from "./run.ts";
import { until } from "../../support/until.ts";
import { unlessThere } from "../../support/lacking.ts";
import { longTest } from "../../support/cases.ts";

const RANKS = 4;
const FAULTY = 2;
const why = unlessThere(pythonOfTorch !== null, "PyTorch", "python3-torch");

async function diagnose(folder: string): Promise<Verdict> {
  return await new Promise((resolve, reject) => {
    const words = ["diagnose", folder, "--json"];
    execFile(join(ROOT, "faultline"), words, { maxBuffer: 1 << 26 }, (_error, out, err) => {
      try {
        resolve(JSON.parse(out) as Verdict);
      } catch {
        reject(new Error(err));
      }
    });
  });
}

/** The ranks of a job, by the environment way, as a launcher would start them. */
function job(
  rings: string,
  iterations: number,
  fault: string,
  from: number,
  ...more: string[]
): Started[] {
  const meet = join(newFolder(), "meet");
  return Array.from({ length: RANKS }, (_, rank) => {
    const words = [script("train.py"), meet, iterations, fault, FAULTY, from, ...more].map(String);
    const who = { RANK: String(rank), WORLD_SIZE: String(RANKS), LOCAL_RANK: String(rank) };
    return start(pythonOfTorch!, words, byEnvironment(rings, { ...who, FAULTLINE_HANG_S: "3" }));
  });
}

const said = (ranks: readonly Started[]): string => ranks.map(({ err }) => err()).join("\n");

/** Runs it to its end; what `diagnose` says of the rings. */
async function runThrough(fault: string, iterations: number, from: number, ...more: string[]) {
  const rings = newFolder();
  const ranks = job(rings, iterations, fault, from, ...more);
  const ended = await Promise.all(ranks.map(async (rank) => (await rank.ended)[0]));
  return { rings, ranks, ended, verdict: await diagnose(rings) };
}

const firstSuspect = ({ suspects }: Verdict) => ({
  ranks: suspects[0]?.ranks,
  cause: suspects[0]?.cause,
});

describe.skipIf(pythonOfTorch === null)(`a job of PyTorch with the probe inside${why}`, () => {
  it("leaves a ring a rank, with iterations, loading and communication, and accuses nobody", async () => {
    const { rings, ranks, ended, verdict } = await runThrough("none", 60, 0, "--workers");
    expect([ended, said(ranks).trim()]).toEqual([[0, 0, 0, 0], ""]);
    // One a rank: the loaders' workers have none.
    const all = ringFiles(rings).map(ringOf);
    expect(all.map(({ rank, worldSize }) => [rank, worldSize])).toEqual(
      [0, 1, 2, 3].map((rank) => [rank, 4]),
    );
    for (const { calls, library, ended: how } of all) {
      expect(library).toMatch(/^Python 3.* torch \d/);
      expect(how).toMatchObject({ how: "exit", code: 0 });
      const words = callWords(calls);
      expect(words.filter((word) => word.startsWith("#"))).toEqual(
        Array.from({ length: 60 }, (_, i) => `#${i + 1}`),
      );
      expect(words.filter((word) => word === "DataLoader.__next__:0")).toHaveLength(60);
      // Weight and bias.
      expect(words.filter((word) => word === "all_reduce:0")).toHaveLength(120);
      expect(words.filter((word) => word === "Optimizer.step:0")).toHaveLength(60);
      expect(words).toContain("init_process_group:0");
      expect(words).toContain("barrier:0");
    }
    expect(verdict.suspects).toEqual([]);
  });

  longTest("knows the ranks of processes that the script itself starts", async () => {
    const rings = newFolder();
    const words = [script("spawned.py"), join(newFolder(), "meet")];
    const one = start(pythonOfTorch!, words, byEnvironment(rings));
    expect([await one.ended, one.err()]).toEqual([[0, null], ""]);
    const all = ringFiles(rings).map(ringOf);
    expect(all.map(({ rank, worldSize }) => [rank, worldSize])).toEqual([
      [0, 2],
      [1, 2],
    ]);
    for (const { calls } of all)
      expect(callWords(calls)).toEqual(["init_process_group:0", "all_reduce:0", "barrier:0"]);
  });

  it("shows where a rank hangs, from stacks that it wrote by itself", async () => {
    const rings = newFolder();
    const ranks = job(rings, 40, "hang", 20);
    const stacksOf = (ring: string): string =>
      existsSync(`${ring}.stacks`) ? readFileSync(`${ring}.stacks`, "utf8") : "";
    await until(
      () => ringFiles(rings).filter((ring) => stacksOf(ring).includes("in train")).length === RANKS,
      () => said(ranks),
      120_000,
    );
    const copies = newFolder();
    for (const name of readdirSync(rings)) copyFileSync(join(rings, name), join(copies, name));
    const verdict = await diagnose(copies);
    expect(verdict.kind).toBe("hang");
    expect(firstSuspect(verdict)).toEqual({ ranks: [FAULTY], cause: "cpu-stall" });
    expect(verdict.suspects[0]!.why).toMatch(/train\.py:\d+ in forward/);
  });

  longTest("shows whose exception was first", async () => {
    const { ended, verdict } = await runThrough("exception", 40, 20);
    expect(ended).toEqual([1, 1, 1, 1]);
    expect(verdict.kind).toBe("crash");
    expect(firstSuspect(verdict)).toEqual({ ranks: [FAULTY], cause: "gpu-error" });
    expect(verdict.suspects[0]!.why).toMatch(/illegal memory access/);
    expect(verdict.victims).toEqual([0, 1, 3]);
  });
});

describe.skipIf(pythonOfTorch === null)(`requests to a running job${why}`, () => {
  async function startTraining(...words: string[]): Promise<{ training: Started; file: string }> {
    const rings = newFolder();
    const who = { RANK: "0", WORLD_SIZE: "1", FAULTLINE_RECORDS: "256" };
    const training = start(
      pythonOfTorch!,
      [script("steps.py"), ...words],
      byEnvironment(rings, who),
    );
    await until(() => training.out().includes("\n5\n"), training.err, 120_000);
    return { training, file: ringFiles(rings)[0]! };
  }

  it("a profile of so many steps comes as a Kineto trace, again and again", async () => {
    const { training, file } = await startTraining();
    // Two optimizers step in every iteration; one counts.
    const { calls } = ringOf(file);
    const marks = callWords(calls).filter((word) => word.startsWith("#"));
    const steps = Number(training.out().trim().split("\n").at(-1));
    expect(Number(marks.at(-1)!.slice(1))).toBeLessThanOrEqual(steps + 2);
    const trace = `${file}.rank0.kineto.json.gz`;
    for (const request of [1, 2]) {
      put(file, HEADER.profileSteps, 3);
      put(file, HEADER.profileWanted, request);
      await until(() => get(file, HEADER.profileAnswered) === request, training.err);
      // A PyTorch that is built without Kineto writes the bare list.
      const read = JSON.parse(gunzipSync(readFileSync(trace)).toString()) as
        | { readonly traceEvents: readonly { readonly name: string }[] }
        | readonly { readonly name: string }[];
      const names = ("traceEvents" in read ? read.traceEvents : read).map(({ name }) => name);
      expect(names.filter((name) => name.startsWith("ProfilerStep#"))).toHaveLength(3);
      expect(names).toContain("aten::addmm");
    }
    expect(readdirSync(join(file, "..")).filter((name) => name.endsWith(".part"))).toEqual([]);
    // The profiler took the thread's profile function; the calls come back after it.
    const before = callWords(ringOf(file).calls).at(-1);
    await until(() => callWords(ringOf(file).calls).at(-1) !== before, training.err);
  });

  it("a test of GPUs and links runs at the iteration that was asked for, and at no other", async () => {
    const { training, file } = await startTraining(join(newFolder(), "meet"));
    const report = `${file}.validation.json`;
    const ask = async (number: number, text: string): Promise<void> => {
      write(file, HEADER.validation, Buffer.from(`${text}\0`));
      put(file, HEADER.validationWanted, number);
      await until(() => get(file, HEADER.validationAnswered) === number, training.err);
    };
    await ask(1, "{}");
    await ask(2, "no JSON");
    // Already past: whoever began it now would wait for others that do not come.
    await ask(3, JSON.stringify({ atIteration: 2, gemm: true }));
    expect(existsSync(report)).toBe(false);
    const at = Number(training.out().trim().split("\n").at(-1)) + 2000;
    await ask(4, JSON.stringify({ atIteration: at, gemm: true, repeats: 1 }));
    expect(JSON.parse(readFileSync(report, "utf8"))).toMatchObject({
      schema: "faultline.validation/1",
      rank: 0,
      iteration: at,
    });
    // And the training goes on.
    const then = training.out().length;
    await pause(50);
    await until(() => training.out().length > then, training.err);
    expect(onlyRing(join(file, "..")).ended).toBeNull();
  });
});
