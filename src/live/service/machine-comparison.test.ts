import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../ingest/prometheus/prometheus.ts";
import type { Incident } from "../../model/incident.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import { MachineComparison } from "./machine-comparison.ts";
import { closeServers, prometheusOfTen } from "../../../test/support/live/prometheus.ts";

afterEach(closeServers);

async function watching(sick: () => number) {
  const url = await prometheusOfTen(sick);
  const saved: Incident[] = [];
  const pictured: [id: string, metrics: readonly MachinePicture[]][] = [];
  const troubles: string[] = [];
  const watch = new MachineComparison(
    {
      connect: () => connect({ url, signal: new AbortController().signal }),
      match: "",
      via: "query-range",
      rangeS: 900,
      nowMs: Date.now,
      save: async (incident) => void saved.push(incident),
      ranksOn: () => [],
      pictured: (id, metrics) => void pictured.push([id, metrics]),
      trouble: (line) => troubles.push(line),
    },
    [],
  );
  return { watch, saved, pictured, troubles };
}

describe("MachineComparison", () => {
  it("draws the machine of its incident by what deviates", async () => {
    const { watch, saved, pictured, troubles } = await watching(() => 4);
    await watch.look();
    expect(troubles).toEqual([]);
    expect(saved.map(({ machines }) => machines)).toEqual([["node4.cluster"]]);
    const [[id, metrics]] = pictured as [[string, readonly MachinePicture[]]];
    expect(id).toBe(saved[0]!.id);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.every(({ machine }) => machine === "node4.cluster")).toBe(true);
    expect(metrics.map(({ metric }) => metric)).toContain("gpu-power-draw");
    const [{ value, middle }] = metrics as [MachinePicture];
    expect(value.at(-2)!).toBeLessThan(middle.at(-2)! / 2);
  });

  it("shows how the machines of a job's incident are, now and at the next calls", async () => {
    const { watch, pictured } = await watching(() => -1);
    // Nobody has asked Prometheus yet: the first call answers.
    watch.request("job.r1.fail-slow.i3", ["node3"], Date.now() - 60_000);
    expect(pictured).toEqual([]);
    await watch.look();
    const [[id, metrics]] = pictured as [[string, readonly MachinePicture[]]];
    expect(id).toBe("job.r1.fail-slow.i3");
    expect(metrics.map(({ machine, metric }) => `${machine} ${metric}`)).toEqual([
      "node3.cluster gpu-temperature",
      "node3.cluster gpu-power-draw",
      "node3.cluster gpu-duty-cycle",
    ]);
    for (let i = 0; i < 6; i++) await watch.look();
    expect(pictured).toHaveLength(4);
    watch.request("other", ["node77"], Date.now());
    expect(pictured).toHaveLength(4);
  });
});
