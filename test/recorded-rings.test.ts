/** Rings of real NCCL jobs with injected faults, and nothing else, through the whole system. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Env } from "../src/model/job.ts";
import { diagnose } from "../src/pipeline.ts";

const env: Env = { signal: new AbortController().signal, progress: () => undefined };
const verdictOf = async (name: string) => {
  const path = fileURLToPath(new URL(`../fixtures/rings/${name}.tar.gz`, import.meta.url));
  return (await diagnose({ paths: [path] }, env)).verdict;
};

describe("rings of a real job", () => {
  it.each([
    ["stop", "hang", [5], "process-stopped"],
    ["stuck", "hang", [5], "cpu-stall"],
    ["gpuhang", "hang", [5], "gpu-hang"],
    ["wire-dead", "hang", [4, 6], "network-hang"],
    ["wire-dead-tp", "hang", [2, 3], "network-hang"],
    ["slow", "fail-slow", [5], "gpu-slow"],
    ["wire-slow", "fail-slow", [4, 6], "network-slow"],
    ["data", "fail-slow", [1], "dataloader"],
    ["gc", "fail-slow", [5], "garbage-collection"],
  ] as const)("%s: a %s because of %j (%s), and nobody else", async (name, kind, ranks, cause) => {
    const { kind: said, suspects, victims } = await verdictOf(name);
    expect(said).toBe(kind);
    expect(suspects.map((suspect) => ({ ranks: suspect.ranks, cause: suspect.cause }))).toEqual([
      { ranks, cause },
    ]);
    if (cause.startsWith("network"))
      expect(suspects[0]!.link).toEqual(ranks.map((rank) => `rank:${rank}`));
    for (const rank of ranks) expect(victims).not.toContain(rank);
  });

  it("a healthy job accuses nobody", async () => {
    const { kind, suspects } = await verdictOf("none");
    expect(kind).toBe("healthy");
    expect(suspects).toEqual([]);
  });
});
