import { expect, it } from "vitest";
import { completeSpec } from "../simulate/cluster/spec.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { FaultBoard } from "../live/fleet/fault-board.ts";
import type { DemoFault } from "../live/service/view.ts";
import { chooseFault } from "./demo-faults.ts";

const simulation = simulate(completeSpec({ gpus: 64, tp: 4, pp: 4 }));
const KINDS: readonly DemoFault["kind"][] = ["gpu", "link", "nic", "data-loader", "machine"];

it.each(KINDS)("breaks any %s with words that the simulator knows", (kind) => {
  for (let i = 0; i < 64; i++) {
    const chosen = chooseFault({ kind }, simulation, () => i / 64);
    const { ranks, machine } = new FaultBoard(simulation).add(chosen.words);
    if (kind !== "link") expect(chosen.ranks).toEqual(ranks);
    if (kind === "machine") expect(chosen.machine).toBe(machine);
    expect(chosen.ranks.length).toBeGreaterThan(0);
  }
});

it("breaks what is asked for, and says so in words", () => {
  const of = (kind: DemoFault["kind"], rank: number) =>
    chooseFault({ kind, rank }, simulation, () => 0);
  expect(of("gpu", 17)).toMatchObject({
    says: "GPU 1 of node002 (rank 17) computes at a third of its speed",
    ranks: [17],
    machine: "node002",
  });
  expect(of("link", 60).words).toContain("link=node005-node007");
  expect(() => of("gpu", 64)).toThrow("there is no rank 64");
  expect(() => of("data-loader", 16)).toThrow("ranks 0 to 15 do");
});
