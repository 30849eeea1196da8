import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { FabricPort } from "../../model/fabric.ts";
import { recognise } from "../formats.ts";
import type { Reader } from "../reader.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
} from "../../../test/support/ingest/reader-contract.ts";
import { runs } from "../../../test/support/cases.ts";

const FILES = [
  "ibnetdiscover.txt",
  "iblinkinfo.txt",
  "ufm-links.json",
  "netbox-interfaces.json",
  "kubernetes-nodes.json",
  "lldp/gpu-a01.json",
  "lldp/gpu-a02.lldp.json",
  "lldp/leaf-r0.json",
  "topology.conf",
  "racks.csv",
] as const;

function text(file: string): string {
  return readFileSync(new URL(`../../../fixtures/fabric/${file}`, import.meta.url), "utf8");
}

function readerOf(file: string, content = text(file)): Reader {
  const bytes = Buffer.from(content);
  const name = file.split("/").at(-1)!;
  return recognise({ name, bytes, text: bytes.toString("latin1") })!;
}

function ports(file: string, content = text(file)): readonly FabricPort[] {
  return readBytes(readerOf(file, content), file, content).fabric ?? [];
}

const words = (list: readonly FabricPort[]): string[] =>
  list.map(({ machine, nic, leaf }) => `${machine} ${nic ?? "-"} ${leaf ?? "-"}`);

const RAILS = ["gpu-a01", "gpu-a02", "gpu-a03", "gpu-a04"].flatMap((machine) =>
  [0, 1].map((rail) => `${machine} mlx5_${rail} leaf-r${rail}`),
);

describe("what describes a site's network", () => {
  it.each(FILES)("%s is recognised by its content, whatever the chunks", (file) => {
    expect(readerOf(file).format).toMatch(
      /^(infiniband-links|ufm-links|netbox|kubernetes-nodes|lldp|slurm-topology|fabric-table)$/,
    );
    const [first, ...others] = readAtAllSizes(readerOf(file), file, text(file));
    expect(first!.fabric!.length).toBeGreaterThan(1);
    expect(first!.defects).toEqual([]);
    for (const other of others) expect(other).toEqual(first);
  });

  it.each(FILES)("%s cut anywhere names no port that the whole does not", (file) => {
    const whole = new Set(ports(file).map(({ machine }) => machine));
    for (const { fabric = [] } of readCutEverywhere(readerOf(file), file, text(file), runs(5, 1)))
      for (const { machine } of fabric)
        expect([...whole].some((one) => one.startsWith(machine))).toBe(true);
  });

  it.each(["ibnetdiscover.txt", "ufm-links.json", "netbox-interfaces.json", "racks.csv"])(
    "%s: each NIC on its leaf, no spine and no aggregation node",
    (file) => {
      expect(words(ports(file)).toSorted()).toEqual(RAILS);
    },
  );

  it("InfiniBand switches that nobody named are told apart by their GUID", () => {
    const leaves = new Set(ports("iblinkinfo.txt").map(({ leaf }) => leaf));
    expect(leaves.size).toBe(2);
    const isNamed = (leaf: string | null): boolean =>
      leaf!.startsWith("Quantum Mellanox Technologies b83f");
    expect([...leaves].every(isNamed)).toBe(true);
    expect(words(ports("iblinkinfo.txt"))[0]).toMatch(/^gpu-a01 HCA-1 /);
  });

  it("iblinkinfo --line, and a director's leaf", () => {
    const line = (host: string, port: number): string =>
      `0xb83fd2030001c0a0 "      MF0;core:CS8500/L07/U1"      4   ${port}[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  0xb83fd20300020000      5    1[  ] "${host} mlx5_0" ( )\n`;
    expect(words(ports("links.txt", line("n1", 1) + line("n2", 2)))).toEqual([
      "n1 mlx5_0 core/L07",
      "n2 mlx5_0 core/L07",
    ]);
  });

  it("Kubernetes' labels give leaf and rack", () => {
    expect(ports("kubernetes-nodes.json")[2]).toEqual({
      machine: "gpu-a03",
      nic: null,
      leaf: "leaf-01",
      rack: "R11",
      rail: null,
    });
  });

  it("LLDP from machines and from switches", () => {
    expect(words(ports("lldp/gpu-a01.json"))).toEqual([
      "gpu-a01 eno1 oob-mgmt-1",
      "gpu-a01 ens1f0np0 leaf-r0",
      "gpu-a01 ens2f0np0 leaf-r1",
    ]);
    expect(words(ports("lldp/gpu-a02.lldp.json"))).toEqual([
      "gpu-a02 ens1f0np0 leaf-r0",
      "gpu-a02 ens2f0np0 leaf-r1",
    ]);
    expect(words(ports("lldp/leaf-r0.json"))).toEqual([
      "gpu-a03 ens1f0np0 leaf-r0",
      "gpu-a04 ens1f0np0 leaf-r0",
    ]);
  });

  it("Slurm's switches with lists of nodes", () => {
    expect(words(ports("topology.conf"))).toEqual([
      "gpu-a01 - leaf0",
      "gpu-a02 - leaf0",
      "gpu-a03 - leaf1",
      "gpu-a04 - leaf1",
      "gpu-a05 - leaf1",
    ]);
    const huge = "SwitchName=s Nodes=n[1-99999999]\nSwitchName=t Nodes=n[1-2]\n";
    const reading = readBytes(readerOf("topology.conf"), "topology.conf", huge);
    expect(reading.defects.map(({ what }) => what)).toEqual(["1 list of nodes cannot be read"]);
    expect(words(reading.fabric!)).toEqual(["n1 - t", "n2 - t"]);
  });

  it("racks in quotes, other names of columns, and no table of metrics", () => {
    expect(ports("racks.csv")[0]!.rack).toBe("R10, row 2");
    const semicolons = "Hostname;Rack ID\nn1;R1\nn2;R2\n";
    expect(ports("inventory.csv", semicolons).map(({ rack }) => rack)).toEqual(["R1", "R2"]);
    const metrics = "timestamp,host,rack,value\n1,n1,R1,5\n2,n1,R1,5\n";
    expect(readerOf("m.csv", metrics).format).not.toBe("fabric-table");
  });
});
