/**
 * Real NCCL jobs of eight ranks with injected faults (fixtures/recordings/README.md): kind, cause and
 * exact rank set must be right, and nobody else may be blamed.
 */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openFile } from "../src/ingest/sources.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { oneOfEach } from "./support/cases.ts";

const folder = fileURLToPath(new URL("../fixtures/recordings/", import.meta.url));
const archives = readdirSync(folder).filter((name) => name.endsWith(".tar.gz"));
const HEALTHY = "slow-none.tar.gz";
/** Slow jobs have tests of their own: test/iterations.test.ts. */
const recordings = archives.filter((name) => !name.startsWith("slow-"));
const env = { signal: new AbortController().signal, progress: () => undefined };

interface Truth {
  readonly kind: string;
  readonly faults: readonly { cause: string; ranks: number[]; fromIteration: number }[];
}

async function truthOf(archive: string): Promise<Truth> {
  let truth: Truth | undefined;
  await openFile(
    archive,
    async (file) => {
      if (!file.path.endsWith("/truth.json")) return;
      const chunks: Uint8Array[] = [];
      for await (const chunk of file.chunks) chunks.push(chunk);
      truth = JSON.parse(Buffer.concat(chunks).toString()) as Truth;
    },
    () => undefined,
  );
  return truth!;
}

/** A skipped all-reduce lets these two jobs run on, shifted, to their last iteration. */
const HANGS_LATER = new Set(["mismatch5-tp4.tar.gz", "mismatch3-tp8.tar.gz"]);

describe("a recorded job", () => {
  it("is there to be tested", () => expect(recordings.length).toBeGreaterThanOrEqual(19));

  // Of each fault a job that is data-parallel alone, and one of another layout.
  const kindOf = (name: string): string => `${/^[a-z]+/.exec(name)![0]} ${/-[a-z]/.test(name)}`;
  it.each(oneOfEach(recordings, kindOf))(
    "%s gets kind, cause, ranks and iteration right, and no one else blamed",
    async (name) => {
      const truth = await truthOf(folder + name);
      const fault = truth.faults[0]!;
      const { verdict } = await diagnose({ paths: [folder + name] }, env);
      const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
      expect({
        kind: verdict.kind,
        blamed,
        causes: [...new Set(verdict.suspects.map((s) => s.cause))],
      }).toEqual({
        kind: truth.kind,
        blamed: fault.ranks,
        causes: [fault.cause],
      });
      // All others wait for it, or died of it.
      const others = [...Array(8).keys()].filter((rank) => !blamed.includes(rank));
      expect(verdict.victims).toEqual(others);
      expect(verdict.confidence).toBeGreaterThan(0.7);
      expect(verdict.suspects.reduce((sum, { score }) => sum + score, 0)).toBeLessThanOrEqual(
        1.001,
      );
      const iterations = HANGS_LATER.has(name) ? [fault.fromIteration, 40] : [fault.fromIteration];
      expect(iterations).toContain(verdict.when.iteration);
    },
  );

  it("of 60 healthy iterations is called neither hung nor crashed, though its counters lag at the end", async () => {
    const { verdict } = await diagnose({ paths: [folder + HEALTHY] }, env);
    expect(verdict).toMatchObject({ kind: "healthy", suspects: [], victims: [] });
  });
});
