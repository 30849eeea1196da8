/** Real jobs of which something is lost: the answer may be less, and never somebody else. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { diagnoseFiles } from "./support/in-memory.ts";

interface File {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Dumps of a recording, by rank. */
function dumpsOf(name: string): File[] {
  const archive = fileURLToPath(new URL(`../fixtures/families/${name}.tar.gz`, import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "degraded-"));
  try {
    execFileSync("tar", ["xf", archive, "-C", folder]);
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => /(dump|fr)_\d+$/.test(path))
      .sort()
      .map((path) => ({ name: path, bytes: readFileSync(join(folder, path)) }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const cut = ({ name, bytes }: File): File => ({
  name,
  bytes: bytes.subarray(0, Math.floor(0.97 * bytes.length)),
});

describe("a job of which something is lost", () => {
  it.each(["nano-none", "accum-none", "graph-none"])(
    "%s, all dumps cut off at their ends: nobody is accused",
    async (name) => {
      const verdict = await diagnoseFiles(dumpsOf(name).map(cut));
      expect(verdict).toMatchObject({ kind: "undetermined", suspects: [] });
    },
  );

  it("names the rank that hangs although two other dumps are cut off", async () => {
    const dumps = dumpsOf("fsdp1-hang2").map((file, rank) =>
      rank === 1 || rank === 6 ? cut(file) : file,
    );
    const { kind, suspects } = await diagnoseFiles(dumps);
    expect([kind, suspects.map(({ ranks }) => ranks)]).toEqual(["hang", [[2]]]);
  });

  it("accuses nobody of having gone where half of the dumps are missing", async () => {
    const dumps = dumpsOf("fsdp1-hang2").filter((_, rank) => rank >= 4);
    const { kind, suspects, confidence } = await diagnoseFiles(dumps);
    expect(kind).toBe("hang");
    expect(suspects.length === 0 || confidence < 0.5).toBe(true);
  });

  it("is not very sure of why a rank hangs that left no dump, where no log tells of its end", async () => {
    const dumps = dumpsOf("nano-hang5").filter((_, rank) => rank !== 5);
    const { suspects, confidence } = await diagnoseFiles(dumps);
    expect(suspects.map(({ ranks }) => ranks)).toEqual([[5]]);
    expect(confidence).toBeLessThan(0.8);
  });

  it("leaves out the dump of an earlier run", async () => {
    const [dumps, earlier] = [dumpsOf("accum-slow2"), dumpsOf("nano-none")];
    const mixed = dumps.map((file, rank) =>
      rank === 5 ? { ...earlier[5]!, name: file.name } : file,
    );
    const { suspects, missing } = await diagnoseFiles(mixed);
    expect(missing.join("\n")).toMatch(/rank 5 were left out: they /);
    expect(suspects.flatMap(({ ranks }) => ranks)).not.toContain(5);
  });
});
