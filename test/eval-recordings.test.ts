/** The evaluation by family of jobs: what counts as right, what the simplest script says, what confidence is earned. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aimsOf } from "../eval/recordings/aims.ts";
import { recordingsIn } from "../eval/recordings/archives.ts";
import {
  confidenceWith,
  earnedFrom,
  earnedSource,
  leaveOneFamilyOut,
  UNPROVEN,
  type Case,
} from "../eval/recordings/earned.ts";
import type { Examined } from "../eval/recordings/examine.ts";
import { familyOf, teaches } from "../eval/recordings/families.ts";
import { judge, judgePart, type Answer } from "../eval/recordings/judge.ts";
import { talliesOf } from "../eval/recordings/tally.ts";
import { tenLines } from "../eval/recordings/ten-lines.ts";
import { truthIn, type Truth } from "../eval/recordings/truth.ts";
import type { RankDump } from "../src/model/job.ts";
import type { Suspect } from "../src/model/verdict.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-test-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const truth = (kind: string, ranks: number[], causes: string[], family = "FSDP2"): Truth => ({
  kind,
  kinds: [kind],
  ranks,
  faults: causes.length === 0 ? [] : [{ ranks, causes }],
  family,
  fromStart: false,
});

const answer = (kind: string, ...suspects: Partial<Suspect>[]): Answer => ({
  kind: kind as Answer["kind"],
  suspects: suspects.map((one) => ({ type: "rank", ranks: [], ...one }) as Suspect),
});

describe("a family of jobs", () => {
  it.each([
    [{}, "hand-written tp/dp/pp"],
    [{ family: "NeMo", framework: "PyTorch", layout: "FSDP2 over 8 ranks" }, "NeMo"],
    [{ framework: "PyTorch", layout: "FSDP2 over 8 ranks" }, "FSDP2"],
    [{ framework: "PyTorch", layout: "FSDP2 hybrid 2x4" }, "HSDP"],
    [{ framework: "PyTorch", layout: "FSDP2 x tensor parallel 4x2 (DTensor)" }, "FSDP2 x TP"],
    [
      { framework: "PyTorch", layout: "torch.distributed.pipelining 1F1B, 4 stages x FSDP 2" },
      "pipelining 1F1B",
    ],
    [{ framework: "PyTorch", layout: "DistributedDataParallel" }, "DDP"],
    [{ framework: "Transformers Trainer, DDP", layout: "" }, "Transformers"],
    [{ framework: "Lightning, DDP", layout: "" }, "Lightning"],
    [{ framework: "Megatron-LM, tp 2 pp 2 dp 2", layout: "" }, "Megatron-LM"],
    [{ framework: "Megatron-LM, MoE", layout: "" }, "Megatron-LM MoE"],
  ])("of %o is %s", (job, family) => expect(familyOf(job)).toBe(family));

  it("that nobody has heard of only tests", () => {
    expect(teaches("NeMo")).toBe(false);
    expect(teaches("FSDP2")).toBe(true);
  });
});

describe("the truth of a recording", () => {
  it("names every cause that counts, and whether it was so from the start", () => {
    const faults = [
      {
        cause: "cpu-stall",
        causesAccepted: ["cpu-stall", "user-program"],
        ranks: [5],
        fromStart: true,
      },
    ];
    writeFileSync(
      join(folder, "truth.json"),
      JSON.stringify({ kind: "fail-slow", faults, job: { family: "NeMo" } }),
    );
    expect(truthIn(folder)).toMatchObject({
      ranks: [5],
      faults: [{ ranks: [5], causes: ["cpu-stall", "user-program"] }],
      family: "NeMo",
      fromStart: true,
    });
  });

  it("is asked once where archives have the same name", () => {
    for (const place of ["a", "b"]) {
      mkdirSync(join(folder, place, "open"), { recursive: true });
      writeFileSync(join(folder, place, "one.tar.gz"), "");
      writeFileSync(join(folder, place, "open", "truth.json"), "{}");
    }
    const found = recordingsIn([join(folder, "a"), join(folder, "b")]);
    expect(found.map(({ path }) => path)).toEqual([
      join(folder, "a", "one.tar.gz"),
      join(folder, "a", "open"),
    ]);
  });
});

describe("a verdict on a recording", () => {
  const slow = truth("fail-slow", [5], ["gpu-slow"]);

  it("may have the right rank and the wrong cause", () => {
    const judged = judge(answer("fail-slow", { ranks: [5], cause: "dataloader" }), slow);
    expect(judged).toEqual({ kind: true, ranks: true, suspects: true, right: false, open: false });
  });

  it("may leave the cause open: the right rank, and its GPU or its CPU", () => {
    const of = (cause: "gpu-slow" | "cpu-stall") => ({ ranks: [5], cause });
    const judged = judge(answer("fail-slow", of("cpu-stall"), of("gpu-slow")), slow);
    expect(judged).toMatchObject({ suspects: true, right: false, open: true });
  });

  it("is wrong where an innocent is blamed beside the guilty", () => {
    const both = answer(
      "fail-slow",
      { ranks: [5], cause: "gpu-slow" },
      { ranks: [6], cause: "gpu-slow" },
    );
    expect(judge(both, slow)).toMatchObject({ kind: true, suspects: false, right: false });
  });

  it("needs each culprit's own cause", () => {
    const two: Truth = {
      ...slow,
      ranks: [1, 6],
      faults: [
        { ranks: [1], causes: ["gpu-slow"] },
        { ranks: [6], causes: ["cpu-stall"] },
      ],
    };
    const said = (first: "gpu-slow" | "cpu-stall", second: "gpu-slow" | "cpu-stall") =>
      judge(answer("fail-slow", { ranks: [1], cause: first }, { ranks: [6], cause: second }), two)
        .right;
    expect(said("gpu-slow", "cpu-stall")).toBe(true);
    expect(said("cpu-stall", "gpu-slow")).toBe(false);
  });

  it("of a healthy job accuses nothing, not even what has no rank", () => {
    const healthy = truth("healthy", [], []);
    expect(judge(answer("healthy"), healthy).right).toBe(true);
    expect(judge(answer("healthy", { type: "storage", cause: "storage" }), healthy).right).toBe(
      false,
    );
  });

  it("says all there is to say of a slow job whose files do not tell who, if it accuses nobody", () => {
    const nobody = truth("fail-slow", [], ["gpu-slow"]);
    expect(judge(answer("fail-slow"), nobody).right).toBe(true);
    expect(judge(answer("fail-slow", { ranks: [3], cause: "gpu-slow" }), nobody).right).toBe(false);
    expect(judge(answer("healthy"), nobody).right).toBe(false);
  });

  it("of an error of all ranks must say the cause, and may list where the code ran", () => {
    const all = truth("crash", [], ["user-program"]);
    const code = { type: "code", ranks: [0, 1, 2, 3], cause: "user-program" } as const;
    expect(judge(answer("crash", code), all).right).toBe(true);
    expect(judge(answer("crash"), all)).toMatchObject({ suspects: true, right: false });
  });

  it("by part of the files may be silent, but not false", () => {
    expect(judgePart(answer("fail-slow"), slow, "logs")).toBe("silent");
    expect(judgePart(answer("undetermined"), slow, "logs")).toBe("silent");
    expect(judgePart(answer("healthy"), slow, "logs")).toBe("wrong");
    expect(judgePart(answer("fail-slow", { ranks: [1] }), slow, "logs")).toBe("wrong");
    expect(judgePart(answer("undetermined"), truth("healthy", [], []), "logs")).toBe("right");
    const died = truth("crash", [2], ["gpu-memory"]);
    expect(judgePart(answer("hang", { ranks: [2], cause: "process-gone" }), died, "dumps")).toBe(
      "right",
    );
    expect(judgePart(answer("hang", { ranks: [2], cause: "process-gone" }), died, "logs")).toBe(
      "wrong",
    );
  });
});

describe("the ten lines", () => {
  const dumps = (...ranks: number[][]): RankDump[] =>
    ranks.map((ms, rank) => {
      const ops = { count: ms.length, durationMs: Float32Array.from(ms) };
      return { rank, dump: { ops } } as unknown as RankDump;
    });

  it("name whoever waits least in the second half", () => {
    expect(tenLines(dumps([5, 5, 9, 9], [9, 9, 5, 5], [5, 5, 9, 9]))).toEqual([1]);
    expect(tenLines(dumps([1, 1, 9, 9], [9, 9, 9, 8.9], [5, 5, 9, 9]))).toEqual([]);
  });

  it("leave out ranks and operators without durations, and are silent without any", () => {
    expect(tenLines(dumps([NaN, NaN], [9, 9], [9, NaN], [9, 9]))).toEqual([]);
    expect(tenLines(dumps([NaN, NaN], [NaN, NaN]))).toBeNull();
    expect(tenLines([])).toBeNull();
  });
});

const many = (count: number, of: Partial<Case>): Case[] =>
  Array.from({ length: count }, () => ({
    kind: "hang",
    method: "hang/wait-graph",
    family: "FSDP2",
    stated: 0.99,
    right: true,
    ...of,
  }));

describe("confidence that real jobs have earned", () => {
  const share = (cases: readonly Case[]): number =>
    earnedFrom(cases).get("hang")!.get("hang/wait-graph")!.share;

  it("keeps a method that decided no such verdict below what is acted upon", () => {
    const table = earnedFrom(many(9, {}));
    expect(UNPROVEN).toBeLessThan(0.8);
    const [other] = many(1, { kind: "crash", method: "crash/first-error" });
    expect(confidenceWith(table, other!)).toBeCloseTo(0.99 * UNPROVEN);
  });

  it("grows with recordings, and more with families", () => {
    expect(share(many(1, {}))).toBeGreaterThan(UNPROVEN);
    expect(share(many(4, {}))).toBeGreaterThan(share(many(1, {})));
    expect(share(many(40, {}))).toBe(share(many(4, {})));
    expect(share([...many(4, {}), ...many(4, { family: "DDP" })])).toBeGreaterThan(
      share(many(40, {})),
    );
  });

  it("falls with wrong answers", () => {
    expect(share([...many(40, {}), ...many(2, { family: "DDP", right: false })])).toBeLessThan(
      0.75,
    );
  });

  it("of a family comes from the others", () => {
    const cases = [...many(4, {}), ...many(2, { family: "DDP", right: false })];
    const [left] = leaveOneFamilyOut(cases).filter(({ family }) => family === "DDP");
    expect(left!.confidence).toBeCloseTo(0.99 * share(many(4, {})));
  });

  it("leaves alone what claims little: verdicts that accuse nobody, healthy ones apart", () => {
    const [silent] = many(1, { kind: "fail-slow", method: "nobody", stated: 0.3 });
    expect(confidenceWith(earnedFrom([]), silent!)).toBe(0.3);
    const [healthy] = many(1, { kind: "healthy", method: "nobody" });
    expect(confidenceWith(earnedFrom([]), healthy!)).toBeCloseTo(0.99 * UNPROVEN);
  });

  it("is written as a table with its counts", () => {
    const text = earnedSource(
      earnedFrom([...many(4, {}), ...many(1, { right: false, family: "DDP" })]),
    );
    expect(text).toContain('// 4 of 5 right, in 2 families\n    "hang/wait-graph": 0.778,');
  });
});

describe("the aims", () => {
  const examined = (
    kind: string,
    confidence: number,
    right: boolean,
    ten: boolean | null,
  ): Examined =>
    ({
      name: "one",
      truth: truth(kind, [], []),
      verdict: { confidence, suspects: right ? [] : [{}], kind },
      judged: { kind: right, ranks: right, suspects: right, right },
      tenLines: ten,
    }) as unknown as Examined;
  const missed = (...all: Examined[]): string[] =>
    aimsOf(talliesOf(all), [], [])
      .filter(({ isMet }) => !isMet)
      .map(({ aim }) => aim);

  it("are met where all is right", () => {
    expect(missed(examined("healthy", 0.9, true, true))).toEqual([]);
  });

  it("say which is missed", () => {
    expect(missed(examined("healthy", 0.9, false, true))).toEqual([
      expect.stringContaining("teaching families"),
      expect.stringContaining("healthy jobs"),
      expect.stringContaining("0.8 or above"),
      expect.stringContaining("ten lines"),
    ]);
    expect(missed(examined("hang", 0.7, false, null))).toHaveLength(1);
  });

  it("count a recording that cannot be read", () => {
    const aims = aimsOf(talliesOf([examined("healthy", 0.9, true, true)]), [], ["half-written"]);
    expect(aims.find(({ isMet }) => !isMet)?.found).toContain("half-written");
  });
});
