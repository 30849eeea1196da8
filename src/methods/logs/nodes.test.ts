import { describe, expect, it } from "vitest";
import { nodesOf, type NodeOptions } from "./nodes.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

/** Name of the node of every stream, in the order of first lines. */
function named(
  lines: readonly Omit<TestLine, "text">[],
  options: NodeOptions = {},
): (string | undefined)[] {
  const { names, of } = nodesOf(digestOf(lines.map((line) => ({ text: "up", ...line }))), options);
  return [...of].map((node) => names[node]);
}

describe("which node wrote a stream", () => {
  it("goes by host, with or without its domain", () => {
    expect(
      named([
        { file: "a.log", host: "gpu-07" },
        { file: "a.log", host: "gpu-07.cluster.local" },
        { file: "a.log", host: "10.0.0.12" },
      ]),
    ).toEqual(["gpu-07", "gpu-07", "10.0.0.12"]);
  });

  it("takes a rank's host from its other lines", () => {
    expect(
      named([
        { file: "a.log", rank: 4, host: "gpu-07" },
        { file: "a.log", rank: 5, host: "gpu-08" },
        { file: "a.log", rank: 4 },
      ]),
    ).toEqual(["gpu-07", "gpu-08", "gpu-07"]);
  });

  it("takes a task's host from its other lines, unless tasks of many hosts are named alike", () => {
    const all = { file: "a.log" };
    expect(
      named([
        { ...all, writer: "task 4", host: "gpu-07" },
        { ...all, writer: "task 4" },
        { ...all, writer: "default1", host: "gpu-07" },
        { ...all, writer: "default1", host: "gpu-08" },
        { ...all, writer: "default1" },
      ]),
    ).toEqual(["gpu-07", "gpu-07", "gpu-07", "gpu-08", undefined]);
  });

  it("takes a file's host for its other lines where there are files of other hosts", () => {
    expect(
      named([
        { file: "1.log", host: "gpu-07" },
        { file: "1.log" },
        { file: "2.log", host: "gpu-08" },
      ]),
    ).toEqual(["gpu-07", "gpu-07", "gpu-08"]);
    expect(named([{ file: "1.log", host: "gpu-07" }, { file: "1.log" }])).toEqual([
      "gpu-07",
      undefined,
    ]);
  });

  it.each([
    [
      ["out/node3.log", "out/node12.log"],
      ["node3", "node12"],
    ],
    [
      ["rank1.log", "rank12.log"],
      ["rank 1", "rank 12"],
    ],
    [
      ["worker-5/stderr.log", "worker-6/stdout.log"],
      ["worker-5", "worker-6"],
    ],
    [
      ["attempt_0/3/stderr.log", "attempt_0/14/stderr.log"],
      ["writer 3", "writer 14"],
    ],
    [
      ["job_r7i1n7.out", "job_r8i0n3.out"],
      ["r7i1n7", "r8i0n3"],
    ],
    [
      ["/w/worker-3/run2/gx3.log", "/w/worker-3/run2/gx4.log"],
      ["gx3", "gx4"],
    ],
    [
      ["train.log", "eval.log"],
      [undefined, undefined],
    ],
    [["node3.log"], [undefined]],
  ])("reads %j", (files, expected) => {
    expect(named(files.map((file) => ({ file })))).toEqual(expected);
  });

  it("gives a kernel's log to the host in its name", () => {
    expect(named([{ file: "rank0.log", host: "mi-3" }, { file: "dmesg.mi-3.log" }])).toEqual([
      "mi-3",
      "mi-3",
    ]);
  });

  it("knows the hosts of silent ranks by their neighbours'", () => {
    const known = [0, 9, 16, 23].map((rank) => ({
      file: "a.log",
      rank,
      host: `h-${Math.floor(rank / 8)}`,
    }));
    const silent = [7, 15, 24].map((rank) => ({ file: "a.log", writer: `task ${rank}` }));
    expect(named([...known, ...silent])).toEqual([
      "h-0",
      "h-1",
      "h-2",
      "h-2",
      "h-0",
      "h-1",
      "node 3",
    ]);
    // Ranks that go round the hosts lie in no blocks.
    const round = [0, 1, 2, 3].map((rank) => ({ file: "a.log", rank, host: `h-${rank % 2}` }));
    expect(named([...round, { file: "a.log", rank: 4 }]).at(-1)).toBe("rank 4");
  });

  it("adds a host that wrote nothing but is named by failures of others", () => {
    const lines = ["gx-101", "gx-102"].map((host) => ({ file: "a.log", host, text: "up" }));
    const text = "connection closed by gx-103<4711>, error on eth0 of gx-7";
    const { names, of } = nodesOf(digestOf([...lines, { ...lines[0]!, text }]));
    expect(names).toEqual(["gx-101", "gx-102", "gx-103"]);
    expect([...of]).toEqual([0, 1]);
  });

  it("takes a launcher's number before lines for a rank", () => {
    expect(named(["3", "task 14"].map((writer) => ({ file: "a.log", writer })))).toEqual([
      "rank 3",
      "rank 14",
    ]);
  });

  it("leaves a file of another make to nobody", () => {
    const files = ["logs/gx3.log", "logs/gx4.log", "scheduler.out"];
    expect(named(files.map((file) => ({ file })))).toEqual(["gx3", "gx4", undefined]);
  });

  it("makes nodes of ranks, by the layout where it is known", () => {
    const lines = [0, 7, 8].map((rank) => ({ file: "all.log", rank }));
    expect(named(lines)).toEqual(["rank 0", "rank 7", "rank 8"]);
    expect(named(lines, { gpusPerNode: 8 })).toEqual(["node 0", "node 0", "node 1"]);
  });

  it("knows no node of a console without names, but its writers", () => {
    expect(named([{ file: "a.log" }, { file: "a.log", writer: "pid 70" }])).toEqual([
      undefined,
      "pid 70",
    ]);
  });
});
