import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Rank } from "../../model/ids.ts";
import { syntheticWaits } from "../../../test/support/report/job.ts";
import { layOut, type Layout } from "./wait-graph-layout.ts";
import { buildGraph } from "./wait-graph-nodes.ts";
import { waitGraphLayout } from "./evidence-sections.ts";
import type { StuckOperator } from "../../model/facts.ts";
import { ABSENCES } from "../../model/wait-ops.ts";

const MOST = 40;

function expectSound(layout: Layout): void {
  const { nodes, edges, width, height } = layout;
  expect(nodes.length).toBeLessThanOrEqual(MOST);
  for (const [i, a] of nodes.entries()) {
    expect(a.x).toBeGreaterThanOrEqual(0);
    expect(a.y).toBeGreaterThanOrEqual(0);
    expect(a.x + a.width).toBeLessThanOrEqual(width);
    expect(a.y + a.height).toBeLessThanOrEqual(height);
    for (const b of nodes.slice(i + 1)) {
      const apart =
        a.x + a.width < b.x || b.x + b.width < a.x || a.y + a.height < b.y || b.y + b.height < a.y;
      expect(apart, `${JSON.stringify(a)} and ${JSON.stringify(b)} overlap`).toBe(true);
    }
  }
  for (const { from, to, laneX } of edges) {
    const [a, b] = [nodes[from], nodes[to]];
    expect(a).toBeDefined();
    expect(b).toBeDefined();
    expect(a!.node.kind).not.toBe(b!.node.kind);
    if (laneX === null) expect(b!.y).toBeGreaterThan(a!.y + a!.height);
    else expect(nodes.every((node) => node.x + node.width < laneX)).toBe(true);
  }
}

function ranksOf(ops: readonly StuckOperator[]): Set<Rank> {
  return new Set(ops.flatMap((op) => [...op.arrived, ...op.absent.map(({ rank }) => rank)]));
}

function drawnRanks(layout: Layout): Rank[] {
  return layout.nodes.flatMap(({ node }) => (node.kind === "ranks" ? node.ranks : []));
}

function drawnOps(layout: Layout): StuckOperator[] {
  return layout.nodes.flatMap(({ node }) => (node.kind === "op" ? node.ops : []));
}

const anyOps = fc.array(
  fc
    .record({
      ranks: fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 12 }),
      arrived: fc.nat(12),
      role: fc.constantFrom("TP", "DP"),
      p2p: fc.boolean(),
      why: fc.constantFrom(...ABSENCES),
    })
    .map(({ ranks, arrived, role, p2p, why }): StuckOperator => ({
      what: `all_reduce #1 of ${role}`,
      role,
      group: role,
      seq: 1,
      p2p,
      arrived: ranks.slice(0, arrived),
      absent: ranks.slice(arrived).map((rank) => ({ rank, why })),
    })),
  { minLength: 1, maxLength: 60 },
);

describe("whatever waits for whatever", () => {
  test("no two nodes overlap, every edge joins drawn nodes, and nothing is lost uncounted", () => {
    fc.assert(
      fc.property(anyOps, fc.array(fc.nat(60), { maxLength: 12 }), (ops, blamed) => {
        const culprits = new Set(blamed);
        const layout = waitGraphLayout(ops, culprits);
        expectSound(layout);
        const ranks = drawnRanks(layout);
        expect(new Set(ranks).size).toBe(ranks.length);
        expect(ranks.length + layout.leftOutRanks).toBe(ranksOf(ops).size);
        expect(drawnOps(layout).length + layout.leftOutOps).toBe(ops.length);
        expect(waitGraphLayout(ops, culprits)).toEqual(layout);
      }),
    );
  });

  test("folding keeps who waits where and for whom", () => {
    fc.assert(
      fc.property(anyOps, fc.array(fc.nat(60), { maxLength: 3 }), (ops, blamed) => {
        const { nodes, edges } = buildGraph(ops, new Set(blamed), 0);
        const nodeOf = new Map(
          nodes.flatMap((node, i) =>
            node.kind === "ranks"
              ? node.ranks.map((rank): [Rank | StuckOperator, number] => [rank, i])
              : node.ops.map((op): [Rank | StuckOperator, number] => [op, i]),
          ),
        );
        const drawn = new Set(edges.map(({ from, to }) => `${from}>${to}`));
        for (const op of ops) {
          const own = nodeOf.get(op)!;
          for (const rank of op.arrived) expect(drawn).toContain(`${nodeOf.get(rank)}>${own}`);
          for (const { rank } of op.absent) expect(drawn).toContain(`${own}>${nodeOf.get(rank)}`);
        }
      }),
    );
  });
});

describe("a job of 2,000 ranks", () => {
  test("that fold is drawn whole, the culprit alone at the end", () => {
    const ops = syntheticWaits({ tp: 8, dp: 125, pp: 2, culprit: 77 });
    const layout = waitGraphLayout(ops, new Set([77]));
    expectSound(layout);
    expect(layout.nodes.length).toBeLessThan(20);
    expect(layout.leftOutRanks).toBe(0);
    const lowest = layout.nodes.toSorted((a, b) => b.y - a.y)[0]!;
    expect(lowest.node).toMatchObject({ kind: "ranks", ranks: [77], status: "culprit" });
    expect(lowest.layer).toBe(0);
  });

  test("in one chain keeps the 40 nodes nearest to the culprit", () => {
    const ops = Array.from({ length: 1_999 }, (_, rank): StuckOperator => ({
      what: `the transfer from rank ${rank + 1} to rank ${rank} (PP)`,
      role: "PP",
      group: "",
      seq: 1,
      p2p: true,
      arrived: [rank],
      absent: [{ rank: rank + 1, why: "behind" }],
    }));
    const layout = waitGraphLayout(ops, new Set([1_999]));
    expectSound(layout);
    expect(drawnRanks(layout).sort((a, b) => b - a)[0]).toBe(1_999);
    expect(Math.min(...drawnRanks(layout))).toBeGreaterThan(1_975);
    expect(layout.leftOutRanks).toBeGreaterThan(1_970);
  });

  test("that all wait for one another in different ways stays within the cap", () => {
    const ops = Array.from({ length: 400 }, (_, i): StuckOperator => ({
      what: `all_reduce #${i} of ROLE_${i}`,
      role: `ROLE_${i}`,
      group: "",
      seq: 1,
      p2p: false,
      arrived: Array.from({ length: 5 }, (_, k) => i * 5 + k),
      absent: [{ rank: (i * 7_919) % 2_000, why: "behind" }],
    }));
    expectSound(waitGraphLayout(ops, new Set([0])));
  });
});

test("an operator that all have entered stands below the ranks that are in it", () => {
  const op: StuckOperator = {
    what: "a",
    role: "TP",
    group: "",
    seq: 1,
    p2p: false,
    arrived: [0, 1],
    absent: [],
  };
  const layout = layOut(buildGraph([op], new Set([0, 1]), MOST), MOST);
  expectSound(layout);
  const box = layout.nodes.find(({ node }) => node.kind === "op")!;
  expect(layout.nodes.filter(({ y }) => y < box.y)).toHaveLength(2);
});

test("ranks in a circle are joined by an arrow that goes around", () => {
  const wait = (rank: Rank, other: Rank): StuckOperator => ({
    what: `${rank} for ${other}`,
    role: "TP",
    group: "",
    seq: 1,
    p2p: false,
    arrived: [rank],
    absent: [{ rank: other, why: "behind" }],
  });
  const layout = waitGraphLayout([wait(0, 1), wait(1, 2), wait(2, 0)], new Set([0]));
  expectSound(layout);
  expect(layout.edges.filter(({ laneX }) => laneX !== null)).toHaveLength(1);
});
