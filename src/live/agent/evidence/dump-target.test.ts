import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openFile } from "../../../ingest/sources.ts";
import { openTarget } from "./dump-target.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-target-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function membersOf(path: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const defects: unknown[] = [];
  await openFile(
    path,
    async (file) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of file.chunks) chunks.push(chunk);
      found[file.path.slice(path.length - 2)] = Buffer.concat(chunks).toString();
    },
    (defect) => defects.push(defect),
  );
  expect(defects).toEqual([]);
  return found;
}

describe("where a dump goes", () => {
  it("is an archive that our own reader takes, with long names and files of any size", async () => {
    const out = join(folder, "new", "dump.tar.gz");
    const long = `rings/${"j".repeat(120)}.r0.1.native.ring`;
    const big = join(folder, "big");
    writeFileSync(big, "b".repeat(700_001));
    const target = await openTarget(out);
    await target.add(long, Buffer.from("ring"));
    await target.add("empty", Buffer.alloc(0));
    expect(await target.addFile("flight-recorder/big", big, 1e9)).toBe(700_001);
    expect(await target.addFile("flight-recorder/cut", big, 1000)).toBe(1000);
    expect(readdirSync(join(folder, "new"))).toEqual(["dump.tar.gz.part"]);
    await target.end();
    expect(readdirSync(join(folder, "new"))).toEqual(["dump.tar.gz"]);
    const members = await membersOf(out);
    expect(Object.values(members).map((text) => text.length)).toEqual([4, 0, 700_001, 1000]);
    expect(Object.keys(members)[0]).toContain(long);
  });

  it("follows no link, and goes on after one", async () => {
    symlinkSync("/etc/passwd", join(folder, "link"));
    const target = await openTarget(join(folder, "out"));
    await expect(target.addFile("x", join(folder, "link"), 1e6)).rejects.toThrow(/ELOOP/);
    await target.add("y", Buffer.from("y"));
    await target.end();
    expect(readdirSync(join(folder, "out"))).toEqual(["y"]);
  });

  it("leaves nothing behind when it is given up, but what was there before", async () => {
    const fresh = await openTarget(join(folder, "fresh"));
    await fresh.add("rings/a", Buffer.from("a"));
    fresh.abandon();
    mkdirSync(join(folder, "given"));
    const given = await openTarget(join(folder, "given"));
    await given.add("a", Buffer.from("a"));
    given.abandon();
    const archive = await openTarget(join(folder, "x.tgz"));
    await archive.add("a", Buffer.from("a"));
    archive.abandon();
    expect(readdirSync(folder)).toEqual(["given"]);
    expect(readdirSync(join(folder, "given"))).toEqual([]);
  });

  it("refuses a folder with something in it, and the kernel's", async () => {
    writeFileSync(join(folder, "x"), "");
    await expect(openTarget(folder)).rejects.toThrow(/is not empty/);
    await expect(openTarget("/proc/dump")).rejects.toThrow(/a folder of the kernel/);
    await expect(openTarget(join(folder, "x", "y.tar.gz"))).rejects.toThrow(/cannot be written/);
  });
});
