/** What every method owes, whichever it is: it survives any missing input, answers the same twice, and is calm in health. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METHODS, withIterations } from "../../src/methods/methods.ts";
import type { NewFinding } from "../../src/model/finding.ts";
import type { Job } from "../../src/model/job.ts";
import type { Method } from "../../src/model/method.ts";
import { readJob } from "../../src/pipeline/diagnose.ts";
import { buildJob } from "../../src/ingest/build-job.ts";
import { few } from "../support/cases.ts";
import { quietEnv } from "../support/in-memory.ts";

const fixtures = fileURLToPath(new URL("../../fixtures", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "faultline-contracts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const archives = (kind: string): string[] =>
  readdirSync(join(fixtures, kind))
    .filter((name) => /\.tar\.(gz|xz)$/.test(name))
    .map((name) => join(fixtures, kind, name));
const HEALTHY = [...archives("families"), ...archives("recordings")].filter((path) =>
  /-none/.test(path),
);
const FAULTY = ["hang3", "mismatch1", "kill4", "oom2", "slow-gpu5", "slow-data1"]
  .map((name) => join(fixtures, "recordings", `${name}.tar.gz`))
  .concat(join(fixtures, "rings", "slow.tar.gz"), join(fixtures, "traces", "reg-sync.tar.gz"));

async function read(archive: string): Promise<Job> {
  const to = mkdtempSync(join(folder, "job-"));
  execFileSync("tar", ["xf", archive, "-C", to]);
  const { job } = await readJob({ paths: [to] }, quietEnv);
  rmSync(to, { recursive: true });
  return job;
}

async function asked(method: Method, job: Job): Promise<NewFinding[]> {
  if (!method.applies(job)) return [];
  const found: NewFinding[] = [];
  for await (const finding of method.run(job, quietEnv)) found.push(finding);
  return found;
}

/**
 * The job without one kind of input: an empty list, map or nothing, as where no such file was given. Groups are no
 * input: they come with the dumps and operators that refer to them.
 */
const NOTHING = withIterations(buildJob([], null));
const KINDS = (Object.keys(NOTHING) as (keyof Job)[]).filter(
  (key) => key !== "name" && key !== "groups",
);

const jobs = new Map<string, Job>();
const healthy = few(HEALTHY, 2);
const faulty = few(FAULTY, 2);
beforeAll(async () => {
  for (const archive of [...healthy, ...faulty]) jobs.set(archive, await read(archive));
}, 120_000);

describe.each(METHODS.map((method) => [method.id, method] as const))("%s", (_, method) => {
  it("asks nothing of a job that left nothing", async () => {
    expect(await asked(method, NOTHING)).toEqual([]);
  });

  it("survives the lack of any kind of input, and says nothing outside 0 to 1", async () => {
    for (const archive of faulty)
      for (const kind of [null, ...KINDS]) {
        const whole = jobs.get(archive)!;
        if (kind !== null && isDeepStrictEqual(whole[kind], NOTHING[kind])) continue;
        const job = kind === null ? whole : { ...whole, [kind]: NOTHING[kind] };
        for (const { says, weight, accuses } of await asked(method, job)) {
          expect(says).not.toMatch(/undefined|NaN|\[object/);
          expect(weight >= 0 && weight <= 1).toBe(true);
          for (const one of accuses) expect(one.weight >= 0 && one.weight <= 1).toBe(true);
        }
      }
  });

  it("answers the same twice", async () => {
    for (const archive of faulty) {
      const job = jobs.get(archive)!;
      expect(await asked(method, job)).toEqual(await asked(method, job));
    }
  });

  it("accuses nobody with confidence in a healthy job", async () => {
    for (const archive of healthy) {
      const found = await asked(method, jobs.get(archive)!);
      const sure = found.flatMap(({ accuses }) => accuses).filter(({ weight }) => weight >= 0.5);
      expect([archive, sure]).toEqual([archive, []]);
    }
  });
});
