import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../../ingest/prometheus/prometheus.ts";
import type { PlacedJob } from "../../../pipeline/machines-by-job.ts";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import { MachineComparison } from "./machine-comparison.ts";
import type { SeenMachine } from "./machine-incidents.ts";
import { closeServers, prometheusOfTen } from "../../../../test/support/live/prometheus.ts";

afterEach(closeServers);

async function watching(sick: () => number, jobs: readonly PlacedJob[] | null = null) {
  const url = await prometheusOfTen(sick);
  const seen: SeenMachine[][] = [];
  const pictured: [id: string, metrics: readonly MachinePicture[]][] = [];
  const troubles: string[] = [];
  const watch = new MachineComparison(
    {
      connect: () => connect({ url, signal: new AbortController().signal }),
      match: "",
      via: "query-range",
      site: null,
      rangeS: 900,
      jobs: async () => jobs,
      pictured: (id, metrics) => void pictured.push([id, metrics]),
      trouble: (line) => troubles.push(line),
    },
    {
      observe: async (all) => {
        seen.push([...all]);
        return all.map(({ faulty }) => ({ id: `of-${faulty.machine}`, machine: faulty.machine }));
      },
    },
  );
  return { watch, seen, pictured, troubles };
}

const placedRank = (rank: number) => ({ rank, gpu: rank % 8 });

function jobOn(job: string, machines: readonly number[], ranks: readonly number[]): PlacedJob {
  const placed = machines.map(
    (m) => [`node${m}`, { stage: "stage 0", ranks: ranks.map(placedRank) }] as const,
  );
  return { job, run: "r1", startedMs: 0, machines: new Map(placed) };
}

describe("MachineComparison", () => {
  it("draws the machine of its incident by what deviates", async () => {
    const { watch, seen, pictured, troubles } = await watching(() => 4);
    await watch.look();
    // Agents may still be about to report their jobs.
    expect(seen).toEqual([]);
    await watch.look();
    expect(troubles).toEqual([]);
    expect(seen.flat().map(({ faulty }) => faulty.machine)).toEqual(["node4.cluster"]);
    const [[id, metrics]] = pictured as [[string, readonly MachinePicture[]]];
    expect(id).toBe("of-node4.cluster");
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.every(({ machine }) => machine === "node4.cluster")).toBe(true);
    expect(metrics.map(({ metric }) => metric)).toContain("gpu-power-draw");
    const [{ value, middle }] = metrics as [MachinePicture];
    expect(value.at(-2)!).toBeLessThan(middle.at(-2)! / 2);
  });

  it("compares the machines of a job with each other, and names the job and its ranks", async () => {
    const jobs = [jobOn("a", [0, 1, 2, 3, 4], [32, 33]), jobOn("b", [5, 6, 7, 8, 9], [])];
    const { watch, seen, troubles } = await watching(() => 4, jobs);
    await watch.look();
    expect(troubles).toEqual([]);
    expect(seen.flat().map(({ job, faulty }) => [job?.job, faulty.machine])).toEqual([
      ["a", "node4.cluster"],
    ]);
    expect(seen[0]![0]!.verdict().suspects[0]).toMatchObject({
      machine: "node4.cluster",
      ranks: [32, 33],
    });
  });

  it("accuses no machine of no job of drawing less power than others", async () => {
    const jobs = [jobOn("a", [0, 1, 2, 3], []), jobOn("b", [5, 6, 7, 8, 9], [])];
    const { watch, seen, troubles } = await watching(() => 4, jobs);
    await watch.look();
    await watch.look();
    expect(troubles).toEqual([]);
    expect(seen).toEqual([[], []]);
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
