import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { DataFolder, disposable, keepEvidence } from "./data-folder.ts";
import { diagnoseEnvironment } from "../slowdown/diagnose-incident.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MB = 1 << 20;
const DAYS = ["2026-01-01-hang", "2026-01-02-crash", "2026-01-03-hang"];
const LATER = ["2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"];

/** A disk of 20 MB on which every incident's evidence takes 5. */
function small(name: string): { data: DataFolder; evidence: string } {
  const evidence = join(folder, name);
  for (const day of DAYS) mkdirSync(join(evidence, day), { recursive: true });
  const freeBytes = (): Promise<number> =>
    Promise.resolve((20 - 5 * readdirSync(evidence).length) * MB);
  const sizeBytes = (): Promise<number> => Promise.resolve(5 * MB);
  return { data: new DataFolder({ folder, evidence, freeBytes, sizeBytes }), evidence };
}

describe("DataFolder", () => {
  it("removes the oldest evidence first, and no more than it must", async () => {
    const { data, evidence } = small("a");
    expect(await data.makeRoom(5 * MB)).toBe(true);
    expect(readdirSync(evidence)).toEqual([DAYS[2]]);
    expect(data.says).toBeNull();
  });

  it("keeps all where removing it would not make room", async () => {
    const { data, evidence } = small("b");
    expect(await data.makeRoom(15 * MB)).toBe(false);
    expect(readdirSync(evidence)).toEqual(DAYS);
  });

  it("stops where removing evidence does not free the disk", async () => {
    const { evidence } = small("d");
    const freeBytes = (): Promise<number> => Promise.resolve(MB);
    const sizeBytes = (): Promise<number> => Promise.resolve(9 * MB);
    const data = new DataFolder({ folder, evidence, freeBytes, sizeBytes });
    expect(await data.makeRoom(MB)).toBe(false);
    expect(readdirSync(evidence)).toEqual(DAYS.slice(1));
  });

  it("has no room where nothing can be written, says so, and looks whether it can again", async () => {
    const evidence = join(folder, "closed", "incidents");
    writeFileSync(join(folder, "closed"), "a file where a folder should be");
    const freeBytes = (): Promise<number> => Promise.resolve(1000 * MB);
    const data = new DataFolder({ folder, evidence, freeBytes });
    expect(await data.makeRoom(MB)).toBe(false);
    expect(data.says).toMatch(/^the data folder cannot be written \(ENOTDIR\): incidents are kept/);
    await data.look();
    expect(data.says).not.toBeNull();
    rmSync(join(folder, "closed"));
    await data.look();
    expect(data.says).toBeNull();
    expect(await data.makeRoom(MB)).toBe(true);
    expect(readdirSync(evidence)).toEqual([]);
  });

  it("removes what proved nothing before older evidence of incidents, the newest aside", async () => {
    const { evidence } = small("e");
    for (const day of LATER) mkdirSync(join(evidence, day));
    for (const day of [DAYS[0]!, DAYS[2]!, LATER[2]!]) await keepEvidence(join(evidence, day));
    expect(await disposable(evidence)).toEqual([
      DAYS[1],
      LATER[0],
      DAYS[0],
      DAYS[2],
      ...LATER.slice(1),
    ]);
  });

  it("removes evidence that is too old, then the oldest of what is too much", async () => {
    const evidence = join(folder, "f");
    const days = ["01", "02", "03", "04"].map((day) => `2026-01-${day}T00-00-00-000Z-j-hang`);
    for (const day of days) mkdirSync(join(evidence, day), { recursive: true });
    const sizeBytes = (): Promise<number> => Promise.resolve(1e9);
    const data = new DataFolder({ folder, evidence, sizeBytes });
    const nowMs = Date.UTC(2026, 0, 11, 12);
    expect(await data.forget({ evidenceDays: null, evidenceGB: null }, nowMs)).toBe(0);
    expect(await data.forget({ evidenceDays: 10, evidenceGB: 3 }, nowMs)).toBe(1);
    expect(readdirSync(evidence)).toEqual(days.slice(1));
    expect(await data.forget({ evidenceDays: null, evidenceGB: 1.5 }, nowMs)).toBe(2);
    expect(readdirSync(evidence)).toEqual(days.slice(3));
  });

  it("says that it is full while it is, by the disk or by what could not be written", async () => {
    const { data } = small("c");
    expect(data.says).toBeNull();
    await data.look();
    expect(data.says).toMatch(/^the data folder is full \(5\.0 MB free\)/);
    const other = new DataFolder({
      folder,
      evidence: folder,
      freeBytes: () => Promise.reject(new Error("?")),
    });
    await other.look();
    expect(other.failed(new Error("the broker is away"))).toBe(false);
    expect(other.says).toBeNull();
    expect(other.failed(new Error("ENOSPC: no space left on device, write"))).toBe(true);
    expect(other.says).toMatch(/^the data folder is full: incidents are kept in memory/);
  });
});

it("settings for the user's own diagnoses are not the service's", () => {
  const all = { PATH: "/bin", FAULTLINE_DIAGNOSE_STORE: "mine", FAULTLINE_CONFIG: "mine.json" };
  expect(diagnoseEnvironment(all)).toEqual({ PATH: "/bin", FAULTLINE_CONFIG: "" });
});
