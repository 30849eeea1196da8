/** Joint scenarios: the same seed gives the same job, kinds agree with each other, and the evaluation asks what diagnose asks. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { answer, read } from "../../eval/joint/examine.ts";
import { calibrationError, reliability, wilson } from "../../eval/joint/figures.ts";
import { scoreOf } from "../../eval/joint/score.ts";
import { folderOutput } from "../../src/cli/folder-output.ts";
import { diagnose } from "../../src/pipeline/diagnose.ts";
import type { Suspect, Verdict } from "../../src/model/verdict.ts";
import { memoryOutput } from "../support/simulate/memory-output.ts";
import { drawScenario } from "../../eval/joint/scenarios/draw-scenario.ts";
import { EVIDENCE_KINDS, FAMILIES, type Scenario } from "../../eval/joint/scenarios/scenario.ts";
import { writeScenario } from "../../eval/joint/scenarios/write-scenario.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-joint-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Short jobs: what is tested is what is written, not what is found. */
function short(scenario: Scenario, iterations = 12): Scenario {
  const from = Math.floor(iterations / 2);
  const faults = scenario.spec.faults.map((fault) => ({ ...fault, from }));
  const truths = scenario.truths.map((truth) => ({ ...truth, fromIteration: from }));
  return {
    ...scenario,
    truths,
    spec: { ...scenario.spec, faults, iterations },
    tailS: 60,
    ringSize: 200,
  };
}

function filesOf(
  scenario: Scenario,
  kinds = EVIDENCE_KINDS as readonly (typeof EVIDENCE_KINDS)[number][],
): Map<string, Buffer> {
  const output = memoryOutput();
  writeScenario(scenario, output, kinds);
  return new Map(output.bytes);
}

describe("a scenario", () => {
  it("is the same for the same seed, in description and to the last byte of its files", () => {
    expect(drawScenario(11, { gpus: 64 })).toEqual(drawScenario(11, { gpus: 64 }));
    expect(drawScenario(11, { gpus: 64 })).not.toEqual(drawScenario(12, { gpus: 64 }));
    const scenario = short(drawScenario(11, { gpus: 64 }), 4);
    const [first, second] = [filesOf(scenario), filesOf(scenario)];
    expect([...second.keys()]).toEqual([...first.keys()]);
    for (const [path, bytes] of first) expect(second.get(path)!.equals(bytes), path).toBe(true);
  });

  it("can be drawn and written for every family, with a truth that names where its fault sits", () => {
    for (const [i, family] of FAMILIES.entries()) {
      const scenario = short(drawScenario(100 + i, { gpus: 64, family, misleading: "none" }), 6);
      const files = filesOf(scenario, ["logs", "stacks"]);
      const truth = JSON.parse(files.get("truth.json")!.toString()) as {
        kind: string;
        faults: { ranks: number[] }[];
      };
      expect(truth.kind === "healthy", family).toBe(family === "healthy");
      expect(
        truth.faults.every(({ ranks }) => ranks.length > 0),
        family,
      ).toBe(true);
      expect(files.has("logs/rank0.log") && files.has("job.json"), family).toBe(true);
    }
  });

  it("writes only the kinds that are asked for", () => {
    const scenario = short(drawScenario(3, { gpus: 64, family: "cpu-stall", misleading: "none" }));
    const folders = (kinds: readonly (typeof EVIDENCE_KINDS)[number][]): string[] =>
      [...new Set([...filesOf(scenario, kinds).keys()].map((path) => path.split("/")[0]!))].sort();
    expect(folders(["stacks"])).toEqual(["job.json", "stacks", "truth.json"]);
    expect(folders(["operators", "metrics"])).toEqual([
      "flight-recorder",
      "job.json",
      "metrics",
      "truth.json",
    ]);
  });

  it("leaves nothing of the kind that is missing for the culprit, and everything of the others", () => {
    const drawn = short(
      drawScenario(5, { gpus: 64, family: "cpu-stall", misleading: "missing-evidence" }),
    );
    const { ranks } = drawn.truths[0]!;
    const scenario: Scenario = { ...drawn, lost: { kind: "logs", ranks } };
    const files = filesOf(scenario, ["logs", "stacks"]);
    expect(files.has(`logs/rank${ranks[0]}.log`)).toBe(false);
    const others = scenario.spec.gpus - 1;
    expect([...files.keys()].filter((path) => path.startsWith("logs/rank"))).toHaveLength(others);
    expect([...files.keys()].filter((path) => path.startsWith("stacks/"))).toHaveLength(others + 1);
  });

  it("of a mismatch shows the culprit inside the operator, with another call, in its dump and in its log", () => {
    const scenario = short(drawScenario(21, { gpus: 64, family: "mismatch", misleading: "none" }));
    const rank = scenario.truths[0]!.ranks[0]!;
    const text = filesOf(scenario, ["logs"]).get(`logs/rank${rank}.log`)!.toString();
    const plain = filesOf({ ...scenario, family: "gpu-hang" }, ["logs"])
      .get(`logs/rank${rank}.log`)!
      .toString();
    expect(text).not.toBe(plain);
    expect(text.length).toBeGreaterThan(0.9 * plain.length);
    const dump = (one: Scenario): Buffer =>
      filesOf(one, ["operators"]).get(`flight-recorder/nccl_trace_rank_${rank}`)!;
    expect(dump(scenario).equals(dump({ ...scenario, family: "gpu-hang" }))).toBe(false);
  });

  it("says the same errors in a storm on whom it was drawn for, and on nobody else", () => {
    const drawn = short(
      drawScenario(8, { gpus: 64, family: "healthy", misleading: "error-storm" }),
      8,
    );
    const storm = { kind: "name-lookup", ranks: [9], rate: 3, from: 1, to: 8 } as const;
    const files = filesOf({ ...drawn, storm }, ["logs"]);
    const count = (rank: number): number =>
      files.get(`logs/rank${rank}.log`)!.toString().split("gai error").length - 1;
    expect(count(9)).toBeGreaterThanOrEqual(24);
    expect(count(10)).toBe(0);
  });
});

describe("the evaluation", () => {
  it("answers as diagnose does", { timeout: 120_000 }, async () => {
    const scenario = short(drawScenario(31, { gpus: 64, family: "cpu-stall", misleading: "none" }));
    writeScenario(scenario, folderOutput(folder));
    const env = { signal: new AbortController().signal, progress: () => undefined };
    const { verdict } = await diagnose({ paths: [folder] }, env);
    const ours = await answer(await read(scenario, folder, EVIDENCE_KINDS), EVIDENCE_KINDS);
    expect(ours.verdict.kind).toBe(verdict.kind);
    expect(ours.verdict.suspects).toEqual(verdict.suspects);
    expect(ours.verdict.confidence).toBe(verdict.confidence);
    expect(scoreOf(scenario, verdict, EVIDENCE_KINDS).right).toBe(true);
  });

  const suspect = (given: Partial<Suspect>): Suspect => ({
    type: "rank",
    ranks: [],
    machine: null,
    link: null,
    name: null,
    cause: "unknown",
    score: 0.9,
    why: "",
    evidence: [],
    ...given,
  });
  const said = (kind: Verdict["kind"], suspects: Suspect[]): Verdict =>
    ({ kind, suspects, confidence: 0.9 }) as unknown as Verdict;

  it("counts the right rank with another cause, and another rank with the right cause, as wrong", () => {
    const scenario = drawScenario(41, { gpus: 64, family: "gpu-hang", misleading: "none" });
    const [truth] = scenario.truths;
    const rank = truth!.ranks[0]!;
    const { machine } = truth!;
    const score = (ranks: number[], cause: Suspect["cause"]) =>
      scoreOf(scenario, said("hang", [suspect({ ranks, machine, cause })]), EVIDENCE_KINDS);
    expect(score([rank], "gpu-hang").right).toBe(true);
    expect(score([rank], "cpu-stall")).toMatchObject({ component: true, right: false });
    expect(score([(rank + 1) % 64], "gpu-hang")).toMatchObject({ component: false, right: false });
  });

  it("accuses nobody of a healthy job, or is wrong", () => {
    const scenario = drawScenario(42, { gpus: 64, family: "healthy", misleading: "none" });
    expect(scoreOf(scenario, said("healthy", []), EVIDENCE_KINDS).right).toBe(true);
    expect(scoreOf(scenario, said("fail-slow", []), EVIDENCE_KINDS).accused).toBe(true);
    const blamed = said("faulty-machine", [suspect({ machine: "node003" })]);
    expect(scoreOf(scenario, blamed, EVIDENCE_KINDS).accused).toBe(true);
  });

  it("takes a vanished process for the cause of a crash only where there are no logs", () => {
    const scenario = drawScenario(43, { gpus: 64, family: "gpu-memory", misleading: "none" });
    const verdict = said("hang", [
      suspect({ ranks: [...scenario.truths[0]!.ranks], cause: "process-gone" }),
    ]);
    expect(scoreOf(scenario, verdict, ["operators", "metrics", "stacks"]).right).toBe(true);
    expect(scoreOf(scenario, verdict, EVIDENCE_KINDS).right).toBe(false);
  });

  it("measures calibration as the gap between what is claimed and what is right", () => {
    const answers = [0.95, 0.95, 0.95, 0.95, 0.15].map((confidence, i) => ({
      confidence,
      right: i < 2,
    }));
    expect(calibrationError(reliability(answers))).toBeCloseTo(0.8 * 0.45 + 0.2 * 0.15, 6);
    const [low, high] = wilson({ right: 9, of: 10 });
    expect(low).toBeCloseTo(0.596, 2);
    expect(high).toBeCloseTo(0.982, 2);
  });
});
