/** Real jobs of other frameworks (fixtures/families): who was it, and why? `npm run eval -- recordings` asks all of them. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { quietEnv } from "./support/in-memory.ts";

const verdictOf = async (name: string) => {
  const path = fileURLToPath(new URL(`../fixtures/families/${name}.tar.gz`, import.meta.url));
  return (await diagnose({ paths: [path] }, quietEnv)).verdict;
};

describe("a job of another framework", () => {
  it.each([
    ["nano-hang5", "hang", [5], "cpu-stall"],
    ["meg-hang2", "hang", [2], "cpu-stall"],
    ["gpipe-hang4", "hang", [4], "cpu-stall"],
    ["fsdp1-hang2", "hang", [2], "cpu-stall"],
    ["accum-early3", "hang", [3], "cpu-stall"],
    ["hf-raise6", "crash", [6], "user-program"],
    ["zb-kill2", "crash", [2], "process-gone"],
    ["hf-slow2", "fail-slow", [2], "gpu-slow"],
    ["hf-cpu5", "fail-slow", [5], "cpu-stall"],
    ["nano-slow3", "fail-slow", [3], "gpu-slow"],
    ["pld-slow1", "fail-slow", [1], "gpu-slow"],
    ["accum-slow2", "fail-slow", [2], "gpu-slow"],
    ["ds2-oom6", "crash", [6], "gpu-memory"],
    ["ds1-hang6", "hang", [6], "cpu-stall"],
    ["fsdp1-stop1", "hang", [1], "process-stopped"],
    ["hfa-slow7", "fail-slow", [7], "gpu-slow"],
  ] as const)("%s: a %s of %j, %s", async (name, kind, ranks, cause) => {
    const { kind: said, suspects, victims } = await verdictOf(name);
    expect(said).toBe(kind);
    expect(suspects.map((one) => [one.ranks, one.cause])).toEqual([[ranks, cause]]);
    for (const rank of ranks) expect(victims).not.toContain(rank);
  });

  it.each([
    "hf-none-b",
    "pld-none",
    "nano-none",
    "nano-none-eval",
    "graph-none",
    "accum-none",
    "join-none",
  ])("%s: healthy, nobody accused", async (name) => {
    expect(await verdictOf(name)).toMatchObject({ kind: "healthy", suspects: [] });
  });
});
