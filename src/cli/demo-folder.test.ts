import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { UserError } from "../base/errors.ts";
import { makeDataFolder } from "./demo-folder.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("makes a folder and all above it, and takes one that is there", () => {
  const path = join(folder, "a", "b", "c");
  makeDataFolder(path);
  makeDataFolder(path);
  expect(statSync(path).isDirectory()).toBe(true);
});

it.runIf(process.platform === "linux")("says that nothing can be made where nothing can", () => {
  expect(() => makeDataFolder("/proc/faultline/data")).toThrow(UserError);
});

it("takes no file for a folder", () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  expect(() => makeDataFolder(file)).toThrow("it is a file");
  expect(() => makeDataFolder(join(file, "below"))).toThrow(UserError);
});
