import { describe, expect, it } from "vitest";
import type { Cause } from "../../model/cause.ts";
import type { SuspectType } from "../../model/finding.ts";
import { CATALOG } from "../../model/metric-catalog.ts";
import { plainMetrics } from "./plain-metrics.ts";

const ALL = new Set(CATALOG.map(({ id }) => id));
const ANY = "gpu-temperature gpu-power-draw gpu-duty-cycle";
const NETWORK =
  "tcp-rdma-throughput tcp-throughput pfc-tx-packet-rate port-transmit-wait ecn-packet-rate cnp-packet-rate infiniband-port-state";
const HOST = "cpu-usage memory-usage disk-usage";

function shown(suspects: readonly (readonly [SuspectType, Cause])[], there = ALL): string {
  const all = suspects.map(([type, cause]) => ({ type, cause, machine: null }));
  return plainMetrics(all, there)
    .map(([metric]) => metric)
    .join(" ");
}

describe("metrics of a machine that is like its peers", () => {
  it.each([
    ["rank", "gpu-slow", `gpu-clocks ${ANY}`],
    ["gpu", "unknown", `gpu-clocks ${ANY}`],
    ["link", "network-slow", NETWORK],
    ["nic", "unknown", NETWORK],
    ["switch", "network-slow", NETWORK],
    ["rank", "cpu-stall", HOST],
    ["rank", "dataloader", HOST],
    ["storage", "unknown", HOST],
    ["machine", "unknown", ANY],
  ] as const)("of a %s that is suspected of %s: %s", (type, cause, metrics) => {
    expect(shown([[type, cause]])).toBe(metrics);
  });

  it("are those that the server has, or else what tells of any machine", () => {
    expect(shown([["rank", "gpu-slow"]], new Set(["gpu-clocks", "gpu-duty-cycle"]))).toBe(
      "gpu-clocks gpu-duty-cycle",
    );
    expect(shown([["nic", "network-slow"]], new Set(["gpu-duty-cycle"]))).toBe("gpu-duty-cycle");
    expect(shown([])).toBe(ANY);
    expect(shown([["nic", "network-slow"]], new Set())).toBe("");
  });

  it("are each there once where there are several suspects", () => {
    expect(
      shown([
        ["rank", "gpu-slow"],
        ["machine", "unknown"],
        ["rank", "cpu-stall"],
      ]),
    ).toBe(`gpu-clocks ${ANY} ${HOST}`);
  });
});
