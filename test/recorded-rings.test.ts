/** Rings of real NCCL jobs with injected faults, and nothing else, through the whole system. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { HEADER } from "../src/ingest/probe-ring/layout.ts";
import type { Env } from "../src/model/job.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { few, oneOfEach } from "./support/cases.ts";

const env: Env = { signal: new AbortController().signal, progress: () => undefined };
const archive = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/rings/${name}.tar.gz`, import.meta.url));
const verdictOf = async (name: string) => (await diagnose({ paths: [archive(name)] }, env)).verdict;

const unpacked = mkdtempSync(join(tmpdir(), "faultline-rings-"));
afterAll(() => rmSync(unpacked, { recursive: true, force: true }));

/** What the rings of some ranks alone say, as where only some machines were asked. */
const verdictOfRanks = async (name: string, ranks: readonly number[]) => {
  const folder = mkdtempSync(join(unpacked, name));
  execFileSync("tar", ["xzf", archive(name), "-C", folder]);
  const rings = join(folder, "rings");
  const paths = readdirSync(rings)
    .filter((file) => ranks.includes(Number(/\.r(\d+)\./.exec(file)![1])))
    .map((file) => join(rings, file));
  return (await diagnose({ paths }, env)).verdict;
};

describe("rings of a real job", () => {
  it("are not surely of one link where, on this machine, several became slow by themselves", async () => {
    const { kind, suspects, confidence } = await verdictOf("wire-slow");
    expect(kind).toBe("fail-slow");
    expect(suspects).toMatchObject([{ cause: "network-slow" }]);
    expect(suspects[0]!.ranks).toContain(6);
    expect(confidence).toBeLessThan(0.8);
  });

  const JOBS = [
    ["stop", "hang", [5], "process-stopped"],
    ["fsdp-stop", "hang", [5], "process-stopped"],
    ["stuck", "hang", [5], "cpu-stall"],
    ["gpuhang", "hang", [5], "gpu-hang"],
    ["wire-dead", "hang", [4, 6], "network-hang"],
    ["wire-dead-tp", "hang", [2, 3], "network-hang"],
    ["fsdp-wire-dead", "hang", [2, 3], "network-hang"],
    ["slow", "fail-slow", [5], "gpu-slow"],
    ["data", "fail-slow", [1], "dataloader"],
    ["gc", "fail-slow", [5], "garbage-collection"],
  ] as const;
  const jobs = oneOfEach(JOBS, ([, , ranks, cause]) => `${cause} ${ranks.join()}`);
  it.each(jobs)(
    "%s: a %s because of %j (%s), and nobody else",
    async (name, kind, ranks, cause) => {
      const { kind: said, suspects, victims } = await verdictOf(name);
      expect(said).toBe(kind);
      expect(suspects.map((suspect) => ({ ranks: suspect.ranks, cause: suspect.cause }))).toEqual([
        { ranks, cause },
      ]);
      if (cause.startsWith("network"))
        expect(suspects[0]!.link).toEqual(ranks.map((rank) => `rank:${rank}`));
      for (const rank of ranks) expect(victims).not.toContain(rank);
    },
  );

  /** Somebody stopped a process of rank 2, to look at it say. */
  const STOPPED_STATE = "T".charCodeAt(0);
  it.each(few([["gpuhang", "gpu-hang"] as const, ["stuck", "cpu-stall"] as const], 2))(
    "%s: a bystander that somebody has stopped hides nobody",
    async (name, cause) => {
      const folder = mkdtempSync(join(unpacked, name));
      execFileSync("tar", ["xzf", archive(name), "-C", folder]);
      const rings = join(folder, "rings");
      const of2 = readdirSync(rings).find((file) => /\.r2\..*native/.test(file))!;
      const bytes = readFileSync(join(rings, of2));
      bytes[HEADER.processState] = STOPPED_STATE;
      writeFileSync(join(rings, of2), bytes);
      const { suspects } = (await diagnose({ paths: [folder] }, env)).verdict;
      expect(suspects.map((suspect) => [suspect.ranks, suspect.cause])).toContainEqual([
        [5],
        cause,
      ]);
    },
  );

  it("a healthy job accuses nobody", async () => {
    const { kind, suspects } = await verdictOf("none");
    expect(kind).toBe("healthy");
    expect(suspects).toEqual([]);
  });

  const HANGS = [
    ["stop", [5]],
    ["stuck", [5]],
    ["gpuhang", [5]],
    ["wire-dead", [4, 6]],
    ["wire-dead-tp", [2, 3]],
  ] as const;
  it.each(few(HANGS, 1))(
    "%s: whoever waits for ranks whose rings are not there is not accused",
    async (name, culprits) => {
      for (const ranks of few([[0, 1, 2, 3], [0, 1], [4, 6, 7], [0, 2, 4, 6], [7]], 2)) {
        const { kind, suspects, confidence } = await verdictOfRanks(name, ranks);
        expect(kind).not.toBe("healthy");
        const innocent = suspects.filter(({ ranks: accused }) =>
          accused.every((rank) => !(culprits as readonly number[]).includes(rank)),
        );
        expect(confidence < 0.5 ? [] : innocent).toEqual([]);
      }
    },
  );
});
