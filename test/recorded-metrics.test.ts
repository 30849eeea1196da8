/** Fleets that play what was measured on a real machine (fixtures/metrics/README.md). */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { machinesFromFiles } from "../src/pipeline/machines.ts";
import type { MachineReport } from "../src/model/machine-report.ts";
import type { Verdict } from "../src/model/verdict.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { quietEnv } from "./support/in-memory.ts";

interface Truth {
  readonly machine: string | null;
  readonly fromS: number;
  readonly slowdown: number | null;
}

const folder = fileURLToPath(new URL("../fixtures/metrics/", import.meta.url));
const truths = JSON.parse(readFileSync(`${folder}truth.json`, "utf8")) as Record<string, Truth>;
const fleet = (name: string): string => `${folder}${name}.prom.gz`;
const reportOf = async (name: string): Promise<MachineReport> =>
  (await machinesFromFiles([fleet(name)], { method: "peers" }, quietEnv)).report;
const verdictOf = (name: string): Promise<Verdict> =>
  diagnose({ paths: [fleet(name)] }, quietEnv).then(({ verdict }) => verdict);
/** Two scrapes. */
const ONSET_SLACK_S = 30;

describe("of machines that play a recording", () => {
  it.each([
    ["clock-low", ["gpu-clocks", "low"]],
    ["power-cap", ["gpu-clocks", "low"]],
    ["cpu-overload", ["cpu-usage", "high"]],
    ["stray-gpu-process", ["gpu-power-draw", "high"]],
    ["halted", ["gpu-duty-cycle", "low"]],
  ])("the one with %s is named, alone, since it began, by its %s", async (name, shows) => {
    const { machine, fromS } = truths[name]!;
    const { faulty, followers, telemetry, joined } = await reportOf(name);
    expect(faulty.map((one) => one.machine)).toEqual([machine]);
    expect(Math.abs(faulty[0]!.sinceS - fromS)).toBeLessThanOrEqual(ONSET_SLACK_S);
    expect(faulty[0]!.untilS).toBeNull();
    expect(faulty[0]!.deviations.map((one) => [one.metric, one.direction])).toContainEqual(shows);
    expect({ followers, telemetry }).toEqual({ followers: [], telemetry: [] });
    expect(joined).toHaveLength(6);
  });

  it.each([
    ["clock-low", "gpu-slow"],
    ["power-cap", "gpu-slow"],
    ["cpu-overload", "cpu-stall"],
    ["halted", "process-stopped"],
  ])("%s is called %s", async (name, cause) => {
    const { kind, suspects } = await verdictOf(name);
    expect(kind).toBe("faulty-machine");
    expect(suspects).toMatchObject([{ machine: truths[name]!.machine, cause }]);
  });

  // Its clock is what it was; those of its peers, who wait, rose.
  it("a GPU that another process works on is not called slow, but shared", async () => {
    const { suspects, summary } = await verdictOf("stray-gpu-process");
    expect(suspects.map(({ cause }) => cause)).toEqual(["platform"]);
    expect(summary).toContain("another process shares it");
  });

  it.each(["healthy", "all-wait"])("nobody is accused where the fleet is %s", async (name) => {
    const { faulty, followers, telemetry } = await reportOf(name);
    expect({ faulty, followers, telemetry }).toEqual({ faulty: [], followers: [], telemetry: [] });
    expect((await verdictOf(name)).suspects).toEqual([]);
  });

  it("nobody is accused of a busy disk that slows nothing", async () => {
    expect(truths["disk-and-memory"]!.slowdown).toBeLessThan(1.05);
    expect((await reportOf("disk-and-memory")).faulty).toEqual([]);
  });
});
