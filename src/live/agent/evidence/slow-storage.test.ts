import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SlowStorage } from "./slow-storage.ts";

const never = (): Promise<never> => new Promise(() => {});

it("gives up a read that does not return, begins no other of the same, and two at most", async () => {
  const storage = new SlowStorage(1);
  await expect(storage.read("a", never)).rejects.toThrow("does not answer");
  let begun = 0;
  const count = async (): Promise<number> => ++begun;
  await expect(storage.read("a", count)).rejects.toThrow("does not answer");
  expect(await storage.read("b", count)).toBe(1);
  await expect(storage.read("b", never)).rejects.toThrow("does not answer");
  await expect(storage.read("c", count)).rejects.toThrow("does not answer");
  expect(begun).toBe(1);
});

it("reads again when a thread that waited in the kernel is back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "faultline-storage-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const storage = new SlowStorage(1);
  const opening = open(pipe, "r");
  await expect(storage.read(pipe, () => opening)).rejects.toThrow("does not answer");
  expect(storage.isStuck).toBe(true);
  // Somebody opens the other end.
  const [reader, writer] = await Promise.all([opening, open(pipe, "w")]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(storage.isStuck).toBe(false);
  expect(await storage.read(pipe, async () => "read")).toBe("read");
  await Promise.all([reader.close(), writer.close()]);
  rmSync(folder, { recursive: true });
});
