import { describe, expect, it } from "vitest";
import { diagnoseFiles, jobOf } from "../../../test/support/in-memory.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { RankLog } from "../../model/log.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { logExcerpts } from "./log-excerpts.ts";

const digest: LogDigest = {
  files: [{ name: "a.log", bytes: 0, lines: 100, defects: [] }],
  streams: [{ file: 0, host: "node7", rank: 7, writer: "", lines: 100, firstMs: NaN, lastMs: NaN }],
  shapes: [
    { text: "starts", level: null, file: 0, line: 46, count: 1, isTelling: false, isPart: false },
    { text: "far off", level: null, file: 0, line: 3, count: 1, isTelling: false, isPart: false },
  ],
  cells: {
    count: 1,
    stream: Int32Array.of(0),
    shape: Int32Array.of(5),
    lines: Uint32Array.of(40),
    firstLine: Uint32Array.of(50),
    lastLine: Uint32Array.of(90),
    firstMs: Float64Array.of(NaN),
    lastMs: Float64Array.of(NaN),
  },
  kept: [
    { file: 0, line: 50, stream: 0, shape: 5, timeMs: 1000, text: `bad\u202e${"x".repeat(1e6)}` },
    { file: 0, line: 90, stream: 0, shape: 5, timeMs: NaN, text: "bad again" },
  ],
  blocks: [],
  iterations: [],
  sequences: [],
  gaps: [],
  missing: [],
};

async function verdictCiting(lines: readonly number[]): Promise<Verdict> {
  const verdict = await diagnoseFiles([]);
  const at = lines.map((line) => ({ file: "a.log", line }));
  return {
    ...verdict,
    findings: [
      { id: "f1", method: "logs/library", says: "", weight: 1, at, data: { fact: "remark" } },
    ],
  };
}

describe("log lines in context", () => {
  const job = { ...jobOf([]), logDigest: digest };

  it("are those that findings cite, with what is kept around them", async () => {
    const [excerpt, ...others] = logExcerpts(job, await verdictCiting([50]));
    expect(others).toEqual([]);
    expect(excerpt).toMatchObject({ file: "a.log", rank: 7, node: "node7" });
    expect(excerpt!.lines.map(({ line, isKey, count }) => [line, isKey, count])).toEqual([
      [46, false, 1],
      [50, true, 39],
    ]);
    expect(excerpt!.lines[1]!.timeMs).toBe(1000);
  });

  it("are cut, and cannot turn the reading direction", async () => {
    const [excerpt] = logExcerpts(job, await verdictCiting([50]));
    const { text } = excerpt!.lines[1]!;
    expect(text.length).toBe(2000);
    expect(text).toContain("bad\ufffd");
  });

  it("are at most twelve excerpts of twenty lines, and no line is shown twice", async () => {
    const kept = Array.from({ length: 1000 }, (_, k) => ({
      ...digest.kept[1]!,
      line: k + 1,
      text: `line ${k}`,
    }));
    const all = await verdictCiting(Array.from({ length: 1000 }, (_, k) => 1000 - k));
    const excerpts = logExcerpts({ ...job, logDigest: { ...digest, kept } }, all);
    expect(excerpts).toHaveLength(12);
    const lines = excerpts.flatMap((one) => one.lines.map(({ line }) => line));
    expect(Math.max(...excerpts.map((one) => one.lines.length))).toBeLessThanOrEqual(20);
    expect(new Set(lines).size).toBe(lines.length);
  });

  it("are the whole traceback that the cited line ends", async () => {
    const rows = Array.from({ length: 40 }, (_, k) => ({ line: 30 + k, text: `  File ${k}` }));
    const block = {
      kind: "traceback",
      stream: 0,
      firstLine: 30,
      lastLine: 70,
      timeMs: NaN,
      text: "OSError: no",
      line: 70,
      at: null,
      inner: null,
      rows,
    } as const;
    const [excerpt] = logExcerpts(
      { ...job, logDigest: { ...digest, blocks: [block] } },
      await verdictCiting([70]),
    );
    expect(excerpt!.lines.map(({ line }) => line)).toEqual(
      Array.from({ length: 41 }, (_, k) => 30 + k),
    );
  });

  it("are none where a finding cites a line whose text is not at hand", async () => {
    expect(logExcerpts(job, await verdictCiting([77]))).toEqual([]);
  });

  describe("of a rank that made others wait", () => {
    const logOf = (rank: number, lastText: string): RankLog => ({
      rank,
      file: `rank${rank}.log`,
      lines: 9,
      lastIteration: -1,
      lastIterationLine: 0,
      lastLine: 9,
      lastText,
      lastTimeMs: null,
      finished: false,
      dumpLine: 0,
    });
    const keysOf = async (texts: readonly string[]): Promise<string[]> => {
      const logs = new Map(texts.map((text, rank) => [rank, logOf(rank, text)]));
      const verdict = await diagnoseFiles([]);
      const suspect = { ranks: [1], evidence: [] } as unknown as Suspect;
      const hang: Verdict = { ...verdict, kind: "hang", suspects: [suspect], findings: [] };
      const excerpts = logExcerpts({ ...jobOf([]), logs }, hang);
      return excerpts.flatMap(({ lines }) => lines.map(({ text }) => text));
    };

    it("are the last of its log, if the others' end otherwise", async () => {
      const done = "iteration 7 done";
      expect(await keysOf([done, "entering forward", done])).toEqual(["entering forward"]);
    });

    it("are none where the others' logs end alike", async () => {
      const texts = ["rank 0: 12 hosts", "rank 1: 13 hosts", "rank 2: 12 hosts"];
      expect(await keysOf(texts)).toEqual([]);
    });
  });
});
