import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { devicesOf, type Device, type RankPlace } from "./devices.ts";

/** Machines of `perMachine` GPUs with a NIC each; NIC i on rail i, a leaf for each rail and pod of machines. */
function railPlaces(machines: number, perMachine: number, machinesPerLeaf: number) {
  return Array.from({ length: machines * perMachine }, (_, rank): RankPlace => {
    const machine = Math.floor(rank / perMachine);
    const leaf = Math.floor(machine / machinesPerLeaf) * perMachine + (rank % perMachine);
    return {
      machine: `node${machine}`,
      nic: `node${machine}/mlx5_${rank % perMachine}`,
      leaf: `leaf${leaf}`,
    };
  });
}

const names = (devices: readonly Device[]): string[] => devices.map(({ name }) => name);

describe("devices between two ranks", () => {
  const devices = devicesOf(railPlaces(4, 2, 2));

  it("are an NVLink within a machine", () => {
    expect(names(devices.between(1, 0))).toEqual(["nvlink 0–1"]);
    expect(devices.between(1, 0)).toEqual(devices.between(0, 1));
  });

  it("are NICs, cables and the leaf under one leaf", () => {
    expect(names(devices.between(0, 2))).toEqual([
      "nic node0/mlx5_0",
      "link node0/mlx5_0–leaf0",
      "leaf0",
      "link node1/mlx5_0–leaf0",
      "nic node1/mlx5_0",
    ]);
  });

  it("pass the spine between leaves, or all named spines", () => {
    expect(names(devices.between(0, 5))).toContain("spine");
    const named = devicesOf(railPlaces(4, 2, 2), { spines: ["s0", "s1"] });
    expect(names(named.between(0, 5)).filter((name) => /^s\d/.test(name))).toEqual(["s0", "s1"]);
  });

  it("are none from a rank to itself", () => {
    expect(devices.between(3, 3)).toEqual([]);
  });

  it("are two NICs and one link where no topology is known", () => {
    const bare = devicesOf([]);
    expect(names(bare.between(7, 3))).toEqual(["nic of rank 7", "link 3–7", "nic of rank 3"]);
    expect(names([bare.gpuOf(3), bare.cpuOf(3)])).toEqual(["gpu of rank 3", "cpu of rank 3"]);
  });

  it("keep the leaf that is known where the other is not", () => {
    const places = railPlaces(2, 1, 1).map((place, rank) =>
      rank === 1 ? { ...place, leaf: null } : place,
    );
    expect(names(devicesOf(places).between(0, 1))).toEqual([
      "nic node0/mlx5_0",
      "link node0/mlx5_0–leaf0",
      "leaf0",
      "link 0–1",
      "nic node1/mlx5_0",
    ]);
  });

  it("are the same both ways, and the same objects each time", () => {
    const rank = fc.integer({ min: 0, max: 7 });
    fc.assert(
      fc.property(rank, rank, (a, b) => {
        expect(new Set(devices.between(a, b))).toEqual(new Set(devices.between(b, a)));
        devices.between(a, b).forEach((each, i) => expect(devices.between(a, b)[i]).toBe(each));
      }),
    );
  });
});

describe("devices", () => {
  it("know whom they serve and how many NICs hang below", () => {
    const devices = devicesOf(railPlaces(4, 2, 2));
    expect(devices.cpuOf(5)).toMatchObject({ name: "cpu of node2", ranks: [4, 5], nicsBelow: 1 });
    const byName = new Map(devices.between(0, 5).map((each) => [each.name, each]));
    expect(byName.get("leaf0")).toMatchObject({ kind: "switch", ranks: [0, 2], nicsBelow: 2 });
    expect(byName.get("spine")).toMatchObject({ kind: "switch", nicsBelow: 8 });
    expect(byName.get("nic node0/mlx5_0")).toMatchObject({ kind: "nic", ranks: [0] });
  });

  it("are shared where ranks name the same NIC", () => {
    const place = { machine: "a", nic: "a/mlx5_0", leaf: "leaf0" };
    const devices = devicesOf([place, place, { ...place, machine: "b", nic: "b/mlx5_0" }]);
    expect(devices.nicOf(0)).toBe(devices.nicOf(1));
    expect(devices.between(0, 2).find(({ name }) => name === "leaf0")?.nicsBelow).toBe(2);
  });
});

describe("devices among the ranks of a group", () => {
  const devices = devicesOf(railPlaces(4, 4, 2));

  it("are only NVLinks within a machine", () => {
    expect(names(devices.among([0, 1, 2, 3]))).toEqual([
      "nvlink 0–3",
      "nvlink 0–1",
      "nvlink 1–2",
      "nvlink 2–3",
    ]);
  });

  it("include every member's NIC in a group of several machines", () => {
    const ranks = [0, 1, 2, 4, 5, 6];
    const nics = devices.among(ranks).filter(({ kind }) => kind === "nic");
    expect(nics.flatMap((nic) => nic.ranks).sort((a, b) => a - b)).toEqual(ranks);
  });

  it("are those between two ranks for a group of two, and none for one", () => {
    expect(new Set(devices.among([0, 9]))).toEqual(new Set(devices.between(0, 9)));
    expect(devices.among([5])).toEqual([]);
    expect(devices.among([])).toEqual([]);
  });

  it("are the NICs, cables and leaves of all pairs, and a spine only where the ring passes one", () => {
    const group = fc.uniqueArray(fc.integer({ min: 0, max: 15 }), { minLength: 2, maxLength: 8 });
    const wired = (all: Iterable<Device>): Set<string> =>
      new Set([...all].map(({ name }) => name).filter((name) => !name.startsWith("nvlink")));
    fc.assert(
      fc.property(group, (ranks) => {
        const pairs = ranks.flatMap((a) => ranks.flatMap((b) => [...devices.between(a, b)]));
        const [ring, all] = [wired(devices.among(ranks)), wired(pairs)];
        // [2, 6, 7, 3, 0] goes round by two leaves and NVLink; ranks 2 and 7 alone would meet at the spine.
        if (!ring.has("spine")) all.delete("spine");
        expect(ring).toEqual(all);
      }),
    );
  });
});
