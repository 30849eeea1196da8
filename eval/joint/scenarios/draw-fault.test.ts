import { expect, test } from "vitest";
import { seeded } from "../../../src/base/random.ts";
import { makeTopology } from "../../../src/simulate/cluster/topology.ts";
import { drawFault } from "./draw-fault.ts";
import { drawShape } from "./draw-shape.ts";

test("a second fault finds a place where the first has every machine: a switch that serves all", () => {
  const random = seeded(3);
  const spec = drawShape(3, 64, random);
  const topology = makeTopology(spec);
  const taken = Array.from({ length: topology.machines }, (_, m) => topology.machineName(m));
  for (const family of ["gpu-slow", "dataloader-slow"] as const) {
    const { truth } = drawFault(family, spec, 10, random, taken);
    expect(truth.ranks).toHaveLength(1);
    expect(taken).toContain(truth.machine);
  }
});
