import { describe, expect, it } from "vitest";
import { FaultMatchers } from "../../library/matcher.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import { analyseLogs } from "./analyse-logs.ts";
import type { NormalPool } from "./cross-job.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

const nobody: NormalPool = { jobs: 0, has: () => false, hasRecord: () => false };
const T0 = Date.UTC(2026, 10, 15);

function record(id: string, given: Partial<FaultRecord>): FaultRecord {
  return {
    id,
    title: id,
    layer: "network",
    match: { all: [id] },
    meaning: "it",
    component: "it",
    category: "hardware.network",
    role: "root",
    severity: "error",
    owner: "user",
    action: "do it",
    falseFriends: [],
    certainty: 0.6,
    source: "us",
    example: id,
    ...given,
  };
}

const library = new FaultMatchers([
  record("port failed", {}),
  record("gpu failed", { category: "hardware.accelerator", layer: "cuda" }),
  record("peer closed", { role: "cascade", certainty: 0.3 }),
  record("page error noted", {
    role: "confirmation",
    category: "hardware.accelerator",
    layer: "driver",
    severity: "warning",
  }),
  record("gpu abort", { role: "confirmation", category: "user.program", layer: "cuda" }),
]);

function on(node: number, second: number, text: string): TestLine {
  const host = `n-${node}`;
  return { file: `${host}.log`, host, text, timeMs: T0 + 1000 * second };
}

function listed(lines: readonly TestLine[], pool = nobody): string[] {
  const { indicating } = analyseLogs(digestOf(lines), library, pool);
  return [...new Set(indicating.map(({ text }) => text))].sort();
}

const start = [0, 1, 2, 3].map((node) => on(node, 0, "worker starting"));
const closed = [0, 2, 3].map((node) => on(node, 50, "peer closed"));

describe("a trouble that its writer says is over", () => {
  const trouble = [on(1, 20, "port failed"), on(1, 22, "port active")];

  it("is not listed beside those who met the failure's end, and is no cause", () => {
    const lines = [...start, ...trouble, ...closed];
    expect(listed(lines)).toEqual(["peer closed"]);
    expect(analyseLogs(digestOf(lines), library, nobody).cause?.signature).toBe("peer closed");
  });

  it("is listed where nothing else tells, or where nobody said that it was over", () => {
    expect(listed([...start, ...trouble])).toContain("port failed");
    expect(listed([...start, trouble[0]!, ...closed])).toEqual(["peer closed", "port failed"]);
  });

  it("is not over because its process waits a while before it, too, is closed", () => {
    const lines = [...start, on(1, 20, "gpu failed"), ...closed, on(1, 600, "peer closed")];
    const ranked = lines.map((line) => ({ ...line, rank: Number(line.host!.slice(2)) }));
    expect(listed(ranked)).toContain("gpu failed");
  });
});

describe("what only confirms", () => {
  it("needs a root of its kind or layer on its own node", () => {
    const root = on(1, 40, "gpu failed");
    const note = (node: number): TestLine => on(node, 41, "page error noted");
    expect(listed([...start, root, note(1)])).toEqual(["gpu failed", "page error noted"]);
    expect(listed([...start, root, note(2)])).toEqual(["gpu failed"]);
    expect(listed([...start, root, on(1, 41, "gpu abort")])).toEqual(["gpu abort", "gpu failed"]);
    expect(listed([...start, on(1, 40, "port failed"), on(1, 41, "gpu abort")])).toEqual([
      "port failed",
    ]);
  });

  it("is a mere warning beside others who tell what came of the failure", () => {
    const note = on(2, 20, "page error noted");
    expect(listed([...start, note])).toEqual(["page error noted"]);
    expect(listed([...start, note, ...closed])).toEqual(["peer closed"]);
  });
});

describe("lines that sound harmless", () => {
  const nodes = [0, 1, 2, 3, 4, 5];
  const end = nodes.map((node) => on(node, 90, "peer closed"));

  it("a version of its own is listed with its value, though healthy jobs tell of versions, too", () => {
    const pool = { jobs: 2, has: (text: string) => /version/.test(text), hasRecord: () => false };
    const versions = nodes.map((node) => on(node, 1, `NCCL version 2.${node === 3 ? 18 : 19}.4`));
    expect(listed([...versions, ...end], pool)).toEqual(["NCCL version 2.18.4", "peer closed"]);
  });

  it("what one node alone says after all that it has in common, when the launch fails", () => {
    const pool = {
      jobs: 2,
      has: (text: string) => /worker|ready/.test(text),
      hasRecord: () => false,
    };
    const lines = nodes.flatMap((node) => [
      on(node, 0, "worker starting"),
      // Of its own, too, but the node went on as all do.
      ...(node === 4 ? [on(node, 1, "shelf map is new")] : []),
      on(node, 2, "all rings ready"),
      ...(node === 2 ? [on(node, 30, "lane agent moved to level four")] : []),
    ]);
    const report = analyseLogs(digestOf([...lines, ...end]), library, pool);
    expect(report.nodes[0]?.node).toBe("n-2");
    expect(listed([...lines, ...end], pool)).toEqual([
      "lane agent moved to level four",
      "peer closed",
    ]);
  });
});
