import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { kernelLog } from "./kernel-log.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-kernel-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const BOOT = Date.UTC(2026, 10, 18, 3, 0, 0);

it("has the lines since the job began, with the time of day", () => {
  const path = join(folder, "kmsg");
  writeFileSync(
    path,
    [
      "6,100,1000000,-;NVRM: Xid (PCI:0000:3b:00): 31, of an earlier job",
      "4,101,90000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.",
      " SUBSYSTEM=pci",
      "6,102,91500000,-;eth0: link is up",
      "",
    ].join("\n"),
  );
  expect(kernelLog(BOOT + 60_000, BOOT, path)).toEqual({
    text:
      "[Wed Nov 18 03:01:30 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.\n" +
      "[Wed Nov 18 03:01:31 2026] eth0: link is up\n",
    trouble: null,
  });
});

it("says why it cannot be read", () => {
  const { text, trouble } = kernelLog(0, BOOT, join(folder, "missing"));
  expect(text).toBe("");
  expect(trouble).toMatch(/^kernel log: /);
});
