/** Runs the driver that plays NCCL, each time with a folder for its rings. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect } from "vitest";
import { build, type Built, folder } from "./build.ts";
import { type Ring, ringsIn } from "./ring.ts";
import { until } from "../../support/until.ts";

const running = new Set<ChildProcess>();
const killAll = (): void => running.forEach((child) => void child.kill("SIGKILL"));
process.once("exit", killAll);
afterEach(killAll);

type Words = readonly (string | number)[];
type Variables = Readonly<Record<string, string>>;

/** Built at the first use. */
let plain: Built | null = null;
const built = (): Built => (plain ??= build("driver"));

/** A folder that is not there yet. */
export const freshFolder = (): string => join(mkdtempSync(join(folder, "run-")), "rings");

/** The environment of a job: nothing of the one that the tests run in. */
const environment = (rings: string, more: Variables): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  FAULTLINE_DIR: rings,
  FAULTLINE_RECORDS: "1024",
  ...more,
});

export function drive(rings: string, words: Words, more: Variables = {}, by = built()) {
  return spawnSync(by.driver, [by.library, ...words.map(String)], {
    encoding: "utf8",
    env: environment(rings, more),
    timeout: 100_000,
    killSignal: "SIGKILL",
  });
}

/** Runs to a good end; the only ring that it left. */
export function ringOf(words: Words, more: Variables = {}): Ring {
  const rings = freshFolder();
  expect(drive(rings, words, more)).toMatchObject({ status: 0, stderr: "" });
  const found = ringsIn(rings);
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** Starts it, and waits for its first line. */
export async function start(words: Words, more: Variables = {}) {
  const rings = freshFolder();
  const { driver, library } = built();
  const child = spawn(driver, [library, ...words.map(String)], { env: environment(rings, more) });
  running.add(child);
  child.once("close", () => running.delete(child));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  await until(() => lines.length > 0);
  return { child, lines, rings };
}
