import { describe, expect, it } from "vitest";
import type { NameClaim, NameLink } from "../../../model/machine-names.ts";
import type { MetricSamples, MetricSet } from "../../../model/metrics.ts";
import { joinNames, joinSets, type JoinHints } from "./join-names.ts";

type Machines = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Machines as their series name them, each with what else their labels say. */
function named(machines: Machines, links: readonly NameLink[] = []) {
  const keys = Object.keys(machines).sort();
  const claims = keys.map((key): NameClaim[] =>
    Object.entries(machines[key]!).map(([label, value]) => ({ label, value })),
  );
  return { machines: keys, claims, links };
}

function joined(machines: Machines, links: readonly NameLink[] = [], hints: JoinHints = {}) {
  const { nameOf } = joinNames([named(machines, links)], hints);
  return Object.fromEntries(Object.keys(machines).map((key) => [key, nameOf(key)]));
}

const uname = (...names: string[]): NameLink => ({ names, pod: null, from: "node_uname_info" });

describe("one machine, several names", () => {
  it("is one where exporters answer at the same address", () => {
    expect(joined({ node777: { instance: "10.40.21.32" }, "10.40.21.32": {} })).toEqual({
      node777: "node777",
      "10.40.21.32": "node777",
    });
  });

  it("is one where node_uname_info says so, though the GPU exporter has an address of its pod", () => {
    const machines = { node777: { instance: "10.244.3.7" }, "10.0.0.7": {} };
    expect(joined(machines, [uname("node777", "10.0.0.7")])["10.0.0.7"]).toBe("node777");
  });

  it("is one where the cluster says on which node an exporter's pod runs", () => {
    const link = {
      names: ["node777", "10.0.0.7"],
      pod: "gpu/dcgm-exporter-d66sz",
      from: "kube_pod_info",
    };
    const machines = { "10.244.3.7": { pod: "gpu/dcgm-exporter-d66sz" }, "10.0.0.7": {} };
    expect(joined(machines, [link])).toEqual({ "10.244.3.7": "node777", "10.0.0.7": "node777" });
  });

  it("is one where an exporter came back as another pod and sees the same GPU", () => {
    const machines = { "10.244.3.7": { UUID: "GPU-1" }, "10.244.3.9": { UUID: "GPU-1" } };
    expect(new Set(Object.values(joined(machines))).size).toBe(1);
  });

  it("is one with and without its domain, unless two domains have it", () => {
    expect(joined({ node1: {}, "node1.cluster.local": {} })["node1.cluster.local"]).toBe("node1");
    const two = joined({ node1: {}, "node1.east": {}, "node1.west": {} });
    expect(new Set(Object.values(two)).size).toBe(3);
  });

  it("is one where a cloud's name holds the address, and where a name is of an interface", () => {
    const cloud = "ip-10-0-1-12.ec2.internal";
    expect(joined({ [cloud]: {}, "10.0.1.12": {} })["10.0.1.12"]).toBe(cloud);
    expect(joined({ node7: {}, "node7-ib0": {} })["node7-ib0"]).toBe("node7");
  });

  it("goes by the job's name for it, and by the user's table", () => {
    const jobNames = new Set(["node1.cluster.local"]);
    expect(joined({ node1: {}, "node1.cluster.local": {} }, [], { jobNames })["node1"]).toBe(
      "node1.cluster.local",
    );
    const table = new Map([["node9", ["10.0.0.9", "exporter-x"]]]);
    expect(joined({ "10.0.0.9": {}, "exporter-x": {} }, [], { table })).toEqual({
      "10.0.0.9": "node9",
      "exporter-x": "node9",
    });
  });
});

describe("several machines stay several", () => {
  it("where one exporter speaks for many", () => {
    const machines = {
      node1: { instance: "10.9.9.9" },
      node2: { instance: "10.9.9.9" },
      "10.9.9.9": {},
    };
    const { nameOf, disputed } = joinNames([named(machines)]);
    expect(["node1", "node2", "10.9.9.9"].map(nameOf)).toEqual(["node1", "node2", "10.9.9.9"]);
    expect(disputed).toEqual(["10.9.9.9"]);
  });

  it("where an address went from one to another", () => {
    const links = [uname("node1", "10.0.0.1"), uname("node2", "10.0.0.1")];
    expect(joined({ "10.0.0.1": {} }, links)["10.0.0.1"]).toBe("10.0.0.1");
  });

  it("where an image's host name is everybody's", () => {
    const links = [uname("ubuntu", "10.0.0.1"), uname("ubuntu", "10.0.0.2")];
    const names = joined({ "10.0.0.1": {}, "10.0.0.2": {} }, links);
    expect(names["10.0.0.1"]).not.toBe(names["10.0.0.2"]);
  });

  it("where pods of two namespaces have the same name", () => {
    const machines = { "10.1.0.1": { pod: "a/worker-0" }, "10.1.0.2": { pod: "b/worker-0" } };
    expect(new Set(Object.values(joined(machines))).size).toBe(2);
  });
});

it("says of an exporter's pod that it is no machine", () => {
  const { joined: list } = joinNames([named({ "10.244.3.7": { pod: "gpu/dcgm-exporter-d66sz" } })]);
  expect(list).toEqual([
    { machine: "10.244.3.7", names: ["gpu/dcgm-exporter-d66sz"], by: [], isPod: true },
  ]);
});

/** Samples every 15 s from `fromS` to `toS`, of a machine each. */
function seen(name: string, spans: Readonly<Record<string, readonly [number, number]>>): MetricSet {
  const machines = Object.keys(spans).sort();
  const rows = machines.map((machine) => {
    const [fromS, toS] = spans[machine]!;
    return Array.from({ length: (toS - fromS) / 15 + 1 }, (_, i) => fromS + 15 * i);
  });
  const start = new Uint32Array(rows.length + 1);
  rows.forEach((row, s) => (start[s + 1] = start[s]! + row.length));
  const samples: MetricSamples = {
    name,
    type: "gauge",
    machine: Int32Array.from(machines.keys()),
    device: machines.map(() => ""),
    start,
    timeS: Float64Array.from(rows.flat()),
    value: Float64Array.from(rows.flat(), () => 1),
  };
  return { machines, hardware: machines.map(() => null), samples: [samples] };
}

it("matches who came and went together, as the last resort, and nobody who was there all the time", () => {
  const gpu = seen("DCGM_FI_DEV_GPU_UTIL", { a: [0, 900], b: [0, 450], c: [0, 900] });
  const host = seen("node_load1", { x: [5, 905], y: [5, 455], z: [5, 905] });
  const { nameOf, joined: list } = joinSets([gpu, host]);
  expect(nameOf("y")).toBe("b");
  expect(list.map(({ by }) => by)).toEqual([["came and went together"]]);
  expect(["a", "c", "x", "z"].map(nameOf)).toEqual(["a", "c", "x", "z"]);
});
