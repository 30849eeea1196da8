import { describe, expect, it } from "vitest";
import { seeded } from "../../base/random.ts";
import { nodesOf } from "./nodes.ts";
import { eventWeights } from "./spatial-weights.ts";
import { compareNodes, type SpatialOptions, type SpatialResult } from "./spatial.ts";
import {
  digestOf,
  identityTemplates,
  type TestLine,
} from "../../../test/support/methods/log-digest.ts";
import { processorMs } from "../../../test/support/processor-time.ts";

const START = Date.UTC(2026, 0, 1);
const NODES = 12;

interface JobOptions {
  readonly nodes?: number;
  readonly iterations?: number;
  /** By node, in milliseconds. */
  readonly skew?: (node: number) => number;
}

/** A healthy job: all start, rank 0 says more, the last one reports. */
function job(options: JobOptions = {}): { lines: TestLine[]; at: (i: number) => number } {
  const { nodes = NODES, iterations = 20, skew = () => 0 } = options;
  const random = seeded(5);
  const lines: TestLine[] = [];
  const at = (i: number): number => START + 60_000 + i * 5000;
  for (let n = 0; n < nodes; n++) {
    ["worker starting", "INFO rings connected", "shard 4 loaded"].forEach((text, i) => {
      const timeMs = START + 1000 * i + skew(n) + random() * 200;
      lines.push({ file: "all.log", host: host(n), rank: n, text, timeMs });
    });
  }
  for (let i = 0; i < 40; i++)
    lines.push(line(0, START + 5000 + i, `argument ${"x".repeat(i)} = 4`));
  for (let i = 1; i <= iterations; i++)
    lines.push({ ...line(nodes - 1, at(i), `iteration ${i} loss 2.5`), iteration: i });
  return { lines, at };
}

function host(node: number): string {
  return `gx-${String(node).padStart(3, "0")}`;
}

function line(node: number, timeMs: number, text: string): TestLine {
  return { file: "all.log", host: host(node), rank: node, text, timeMs };
}

function compared(
  lines: readonly TestLine[],
  options: Partial<SpatialOptions> = {},
): SpatialResult {
  const ordered = [...lines].sort((a, b) => a.timeMs! - b.timeMs!);
  const digest = digestOf(ordered);
  const templates = identityTemplates(digest);
  const weights = eventWeights(digest, templates, null);
  return compareNodes(digest, templates, nodesOf(digest), {
    weightOf: (template) => weights[template]!,
    ...options,
  });
}

describe("nodes that differ", () => {
  it("finds the node that alone writes an error at the end", () => {
    const { lines, at } = job();
    const { nodes } = compared([...lines, line(5, at(20) + 900, "ERROR device 3 does not answer")]);
    expect(nodes[0]).toMatchObject({ name: "gx-005" });
    expect(nodes[0]!.evidence[0]).toMatchObject({ kind: "only" });
    expect(nodes[0]!.score).toBeGreaterThan(0.4);
  });

  it("does not accuse who writes for all: rank 0, the last rank", () => {
    const { nodes } = compared(job().lines);
    expect(nodes[0]?.score ?? 0).toBeLessThan(0.1);
  });

  it("holds an error against nobody that the job went on after", () => {
    const { lines, at } = job();
    const early = [
      line(3, at(5), "ERROR upload failed"),
      line(8, at(9), "ERROR upload failed twice"),
    ];
    const { nodes } = compared([
      ...lines,
      ...early,
      line(6, at(20), "ERROR link 1 failed for good"),
    ]);
    expect(nodes[0]).toMatchObject({ name: "gx-006" });
    expect(nodes[1]!.score).toBeLessThan(0.4 * nodes[0]!.score);
  });

  it("finds the node without the timeout that all others have", () => {
    const { lines, at } = job();
    for (let n = 0; n < NODES; n++)
      if (n !== 7)
        lines.push(line(n, at(20) + 600_000 + n, "ERROR collective timed out after 600 s"));
    const { nodes } = compared(lines);
    expect(nodes[0]).toMatchObject({ name: "gx-007" });
    expect(nodes[0]!.evidence[0]).toMatchObject({ kind: "lacks" });
  });

  it("finds who was first though its clock is ten seconds late", () => {
    const { lines, at } = job({ skew: (n) => (n === 4 ? 10_000 : 0) });
    for (let n = 0; n < NODES; n++) {
      const seen = at(20) + (n === 4 ? 0 : 3000 + 10 * n);
      lines.push(line(n, seen + (n === 4 ? 10_000 : 0), "ERROR transport retry exceeded"));
    }
    const { nodes } = compared(lines);
    expect(nodes[0]).toMatchObject({ name: "gx-004" });
    expect(nodes[0]!.evidence.map(({ kind }) => kind)).toContain("first");
  });

  it("sees another version on one node, where no word is an error", () => {
    const { lines } = job({ iterations: 0 });
    for (let n = 0; n < NODES; n++)
      lines.push(line(n, START + 4000, `NCCL version 2.${n === 9 ? 18 : 19}.4`));
    const { nodes } = compared(lines);
    expect(nodes[0]).toMatchObject({ name: "gx-009" });
    expect(nodes[0]!.evidence[0]).toMatchObject({ kind: "variant" });
  });

  it("finds who writes a line far more often than the others", () => {
    const { lines, at } = job();
    for (let n = 0; n < NODES; n++)
      for (let i = 0; i < (n === 2 ? 90 : 6); i++)
        lines.push(line(n, at(i % 20) + i, "WARNING retry of send failed"));
    const { nodes } = compared(lines);
    expect(nodes[0]).toMatchObject({ name: "gx-002" });
    expect(nodes[0]!.evidence[0]).toMatchObject({ kind: "more" });
  });

  it("finds a node that wrote nothing but that others' failures name", () => {
    const { lines, at } = job();
    const text = "ERROR connection closed by peer gx-099";
    const { nodes } = compared([...lines, line(3, at(20), text), line(4, at(20), text)]);
    expect(nodes.map(({ name }) => name)).toContain("gx-099");
    expect(nodes[0]).toMatchObject({ name: "gx-099" });
  });

  it("lets the pool of healthy jobs speak for an error", () => {
    const { lines, at } = job();
    const all = [
      ...lines,
      line(5, at(20), "ERROR probe failed, ignored"),
      line(6, at(20), "ERROR boom"),
    ];
    const { texts } = identityTemplates(digestOf(all));
    const isNormal = (text: string): boolean => text.includes("ignored");
    // The order of lines is that of times, so templates are looked up by text.
    const sorted = identityTemplates(
      digestOf([...all].sort((a, b) => a.timeMs! - b.timeMs!)),
    ).texts;
    expect(new Set(sorted)).toEqual(new Set(texts));
    const { nodes } = compared(all, {
      isNormal: Uint8Array.from(sorted, (t) => Number(isNormal(t))),
    });
    expect(nodes[0]).toMatchObject({ name: "gx-006" });
    expect(nodes.find(({ name }) => name === "gx-005")?.score ?? 0).toBeLessThan(0.1);
  });

  it("does not go by the digits of the folder that a log lies in", () => {
    const tasks = ["0", "1", "2", "3", "4", "5", "6", "8"];
    const scoresIn = (file: string): unknown => {
      const digest = digestOf(
        tasks.map((task, i) => {
          const text = task === "6" ? "only here" : "ready";
          return { file, writer: `task ${task}`, text, timeMs: START + i, level: "error" };
        }),
      );
      const nodes = {
        names: tasks,
        of: Int32Array.from(tasks.keys()),
        firstRank: Int32Array.from(tasks, Number),
      };
      const spatial = compareNodes(digest, identityTemplates(digest), nodes, { weightOf: () => 1 });
      return spatial.nodes.map(({ name, score }) => [name, score]);
    };
    expect(scoresIn("run8/all.log")).toEqual(scoresIn("runx/all.log"));
    expect(scoresIn("runx/all.log")).toContainEqual(["6", expect.any(Number)]);
  });

  it("compares kernels' logs with each other only", () => {
    const { lines, at } = job();
    const boot = [1, 2, 3].flatMap((n) =>
      ["cpu up", "disk up", "net up"].map((text, i) => ({
        file: `dmesg.${host(n)}.log`,
        text: `kernel: ${text}`,
        timeMs: START - 60_000 + i,
      })),
    );
    const { nodes } = compared([...lines, ...boot, line(6, at(20), "ERROR boom")]);
    expect(nodes[0]).toMatchObject({ name: "gx-006" });
    for (const n of [1, 2, 3])
      expect(nodes.find(({ name }) => name === host(n))?.score ?? 0).toBeLessThan(0.1);
  });

  it("compares 4,096 nodes with thousands of events in seconds", () => {
    const lines: TestLine[] = [];
    for (let n = 0; n < 4096; n++)
      for (let e = 0; e < 25; e++)
        lines.push({ file: `r/${host(n)}.log`, text: `event ${"abcdefghijklmnopqrstuvwxyz"[e]}` });
    for (let e = 0; e < 3000; e++)
      lines.push({
        file: `r/${host(e)}.log`,
        text: `odd ${e.toString(2).replace(/0/g, "o").replace(/1/g, "l")}`,
      });
    lines.push({ file: `r/${host(77)}.log`, text: "FATAL bus error" });
    const digest = digestOf(lines);
    const templates = identityTemplates(digest);
    const weights = eventWeights(digest, templates, null);
    let compared: ReturnType<typeof compareNodes>;
    const ms = processorMs(() => {
      compared = compareNodes(digest, templates, nodesOf(digest), {
        weightOf: (t) => weights[t]!,
      });
    });
    expect(ms).toBeLessThan(8000);
    expect(compared!.nodes[0]).toMatchObject({ name: "gx-077" });
  });
});
