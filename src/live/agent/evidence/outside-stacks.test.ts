import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { outsideStacks } from "./outside-stacks.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-py-spy-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function program(script: string): string {
  const path = join(folder, "py-spy");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

it("are taken without stopping anybody, a file a rank, and a failure is a line", async () => {
  const path = program('[ "$4" = 11 ] && { echo "no rights" >&2; exit 1; }; echo "Process $4: $2"');
  const ranks = [
    { rank: 1, pid: 10 },
    { rank: 0, pid: 12 },
    { rank: 2, pid: 11 },
  ];
  const { files, troubles } = await outsideStacks(ranks, 5000, path);
  expect(files.map(({ name, bytes }) => `${name} ${bytes.toString().trim()}`)).toEqual([
    "rank0.py-spy.txt Process 12: --nonblocking",
    "rank1.py-spy.txt Process 10: --nonblocking",
  ]);
  expect(troubles).toEqual(["rank 2 (process 11): py-spy: no rights"]);
});

it("end with their time, and are missed once where there is no py-spy", async () => {
  const { files, troubles } = await outsideStacks(
    [{ rank: 0, pid: 1 }],
    50,
    program("exec sleep 60"),
  );
  expect(files).toEqual([]);
  expect(troubles).toHaveLength(1);
  const ranks = [0, 1, 2].map((rank) => ({ rank, pid: rank + 1 }));
  expect(await outsideStacks(ranks, 1000, join(folder, "none"))).toEqual({
    files: [],
    troubles: ["stacks: neither the Python probe nor py-spy is there to take them"],
  });
});
