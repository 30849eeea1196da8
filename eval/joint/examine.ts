/** One scenario: written once, diagnosed with each set of inputs, scored. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderOutput } from "../../src/cli/folder-output.ts";
import type { Finding } from "../../src/model/finding.ts";
import type { Suspect, Verdict } from "../../src/model/verdict.ts";
import { buildJob } from "../../src/ingest/build-job.ts";
import { ingest } from "../../src/ingest/ingest.ts";
import { type JobFile, readJobFile } from "../../src/ingest/job-file.ts";
import { withIterations } from "../../src/methods/methods.ts";
import { withLogReport } from "../../src/methods/logs/log-method.ts";
import type { Job } from "../../src/model/job.ts";
import type { Reading } from "../../src/model/reading.ts";
import { ask } from "../../src/pipeline/diagnose.ts";
import { fuse } from "../../src/verdict/fuse.ts";
import { hypotheses } from "../../src/verdict/hypotheses.ts";
import { posteriorOf } from "../../src/verdict/posterior.ts";
import { machineOf } from "../../src/verdict/who.ts";
import {
  EVIDENCE_KINDS,
  type EvidenceKind,
  type Scenario,
  type Truth,
} from "./scenarios/scenario.ts";
import { FOLDERS, writeScenario } from "./scenarios/write-scenario.ts";
import { scoreOf, type Score } from "./score.ts";

const without = (kind: EvidenceKind): EvidenceKind[] =>
  EVIDENCE_KINDS.filter((one) => one !== kind);

/** What `--kinds` can name. */
export const INPUT_SETS: Readonly<Record<string, readonly EvidenceKind[]>> = {
  all: EVIDENCE_KINDS,
  "no-operators": without("operators"),
  "no-metrics": without("metrics"),
  "no-logs": without("logs"),
  "no-stacks": without("stacks"),
};

export interface Row {
  readonly seed: number;
  readonly gpus: number;
  readonly layout: string;
  readonly family: string;
  readonly misleading: string;
  readonly lost: EvidenceKind | null;
  readonly inputs: string;
  readonly growth: number;
  readonly truths: readonly Truth[];
  readonly verdict: {
    readonly kind: string;
    readonly summary: string;
    readonly confidence: number;
    readonly suspects: readonly Pick<
      Suspect,
      "type" | "ranks" | "machine" | "link" | "name" | "cause" | "score"
    >[];
  };
  readonly score: Score;
  /** Of the first suspect, before it is calibrated; null where nobody is accused, or the judge of slowness decides. */
  readonly probability: number | null;
  /** What each method alone would have answered. */
  readonly alone: Readonly<Record<string, Score>>;
  readonly findings: readonly Pick<Finding, "method" | "says" | "weight" | "accuses">[];
  /** Every accusation, as the first suspect of a verdict: what reliability is measured on (fit.ts). */
  readonly accusations: readonly {
    readonly method: string;
    readonly kind: string;
    readonly weight: number;
    readonly right: boolean;
    readonly component: boolean;
  }[];
  readonly didNotRun: readonly string[];
  readonly seconds: { readonly write: number; readonly read: number; readonly answer: number };
}

const ENV = { signal: new AbortController().signal, progress: () => undefined };
const MOST_RANKS = 16;

export async function examine(scenario: Scenario, inputs: readonly string[]): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-joint-"));
  try {
    const began = performance.now();
    const kinds = EVIDENCE_KINDS.filter((kind) =>
      inputs.some((name) => INPUT_SETS[name]!.includes(kind)),
    );
    writeScenario(scenario, folderOutput(folder), kinds);
    const write = (performance.now() - began) / 1000;
    const all = await read(scenario, folder, kinds);
    const times = { write, read: (performance.now() - began) / 1000 - write };
    const rows: Row[] = [];
    for (const name of inputs) rows.push(await row(scenario, all, name, times));
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What was read of each kind: inputs are left out by the reading, not by reading again. */
interface Read {
  readonly readings: ReadonlyMap<EvidenceKind, readonly Reading[]>;
  readonly logDigest: Job["logDigest"];
  readonly jobFile: JobFile;
}

export async function read(
  scenario: Scenario,
  folder: string,
  kinds: readonly EvidenceKind[],
): Promise<Read> {
  const readings = new Map<EvidenceKind, readonly Reading[]>();
  let logDigest: Job["logDigest"];
  for (const kind of kinds) {
    if (kind === "stacks" && scenario.stacks === null) continue;
    // What a leaf switch takes away may be all there is of a kind; beside other inputs that is a remark, no error.
    const asked = ingest([join(folder, FOLDERS[kind])], ENV, {});
    const isLost = scenario.lost?.kind === kind;
    const read = isLost
      ? await asked.catch(() => ({ readings: [], logDigest: undefined }))
      : await asked;
    readings.set(kind, read.readings);
    if (kind === "logs") logDigest = read.logDigest;
  }
  return { readings, logDigest, jobFile: await readJobFile(join(folder, "job.json")) };
}

/** The same as pipeline/diagnose.ts of the folders of these kinds (test/system/joint-scenarios.long.test.ts holds it to that). */
export async function answer(
  { readings, logDigest, jobFile }: Read,
  kinds: readonly EvidenceKind[],
) {
  const own = kinds.flatMap((kind) => readings.get(kind) ?? []);
  const built = withIterations(buildJob(own, jobFile));
  const job = kinds.includes("logs") && logDigest ? withLogReport({ ...built, logDigest }) : built;
  const { findings, didNotRun } = await ask(job, ENV);
  return { job, findings, verdict: fuse(job, findings, didNotRun) };
}

async function row(
  scenario: Scenario,
  folder: Read,
  inputs: string,
  times: { readonly write: number; readonly read: number },
): Promise<Row> {
  const kinds = INPUT_SETS[inputs]!;
  const began = performance.now();
  const { job, verdict, findings } = await answer(folder, kinds);
  const seconds = { ...times, answer: (performance.now() - began) / 1000 };
  const alone = Object.fromEntries(
    [...new Set(findings.map(({ method }) => method))].map((method) => {
      const own = findings.filter((finding) => finding.method === method);
      return [method, scoreOf(scenario, fuse(job, own, []), kinds)];
    }),
  );
  const { spec, growth, truths } = scenario;
  return {
    seed: scenario.seed,
    gpus: spec.gpus,
    layout: `tp${spec.tp} pp${spec.pp} dp${spec.dp}`,
    family: scenario.family,
    misleading: scenario.misleading,
    lost: scenario.lost?.kind ?? null,
    inputs,
    growth,
    truths: truths.map((truth) => ({ ...truth, ranks: truth.ranks.slice(0, MOST_RANKS) })),
    verdict: {
      kind: verdict.kind,
      summary: verdict.summary.slice(0, 400),
      confidence: verdict.confidence,
      suspects: verdict.suspects
        .slice(0, 4)
        .map(({ type, ranks, machine, link, name, cause, score }) => ({
          type,
          ranks: ranks.slice(0, MOST_RANKS),
          machine,
          link,
          name,
          cause,
          score,
        })),
    },
    score: scoreOf(scenario, verdict, kinds),
    probability: probabilityOf(job, findings, verdict),
    alone,
    findings: findings.map(({ method, says, weight, accuses }) => ({
      method,
      says: says.slice(0, 240),
      weight,
      accuses: accuses.slice(0, 4).map((one) => ({
        ...one,
        ranks: one.ranks.slice(0, MOST_RANKS),
        why: one.why.slice(0, 160),
      })),
    })),
    accusations: findings.flatMap(({ method, accuses }) =>
      accuses.slice(0, MOST_RANKS).map((one) => {
        const { type, ranks, link, name = null, cause, kind, weight, why } = one;
        const machine = machineOf(job, ranks) ?? (type === "machine" ? name : null);
        const suspect = {
          type,
          ranks,
          link,
          name,
          cause,
          machine,
          score: weight,
          why,
          evidence: [],
        };
        const score = scoreOf(scenario, { ...verdict, kind, suspects: [suspect] }, kinds);
        return { method, kind, weight, right: score.right, component: score.component };
      }),
    ),
    didNotRun: verdict.missing.filter((text) => text.includes(" did not run: ")),
    seconds,
  };
}

function probabilityOf(job: Job, findings: readonly Finding[], verdict: Verdict): number | null {
  const [first] = verdict.suspects;
  const all = hypotheses(job, findings);
  const lead = all.find(({ ranks, evidence }) =>
    first?.evidence.some(
      (id) => evidence.includes(id) && ranks.every((rank) => first.ranks.includes(rank)),
    ),
  );
  return lead && !lead.isJudged ? posteriorOf(lead, all).probability : null;
}
