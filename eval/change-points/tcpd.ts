/**
 * The Turing change point dataset (van den Burg & Williams 2020): our online detector beside the Bayesian one at
 * the benchmark's default settings, ours and as published, beside binary segmentation and beside saying nothing.
 * Only series of one dimension. The data stays where it lies; nothing of it is in this repository.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Bocpd } from "../../src/maths/bocpd.ts";
import { LevelTracker } from "../../src/maths/level-tracker.ts";
import { OnlineChanges } from "./online-changes.ts";
import { mean, score, type Score } from "./scores.ts";

/** How close a reproduction must come to the published scores, in both. */
const CLOSE = 0.07;

interface Dataset {
  readonly name: string;
  readonly n_dim: number;
  readonly series: readonly { readonly raw: readonly (number | null)[] }[];
}

const COLUMNS = [
  "ours, general, online",
  "BOCPD reproduced",
  "BOCPD published",
  "BinSeg",
  "never",
  "ours for iteration times",
] as const;

export async function evaluateTcpd(folder: string): Promise<string> {
  const annotations = JSON.parse(
    await readFile(join(folder, "annotations.json"), "utf8"),
  ) as Record<string, Record<string, number[]>>;
  const published = publishedScores(await readFile(join(folder, "published_scores.csv"), "utf8"));
  const rows: { name: string; scores: (Score | null)[] }[] = [];
  for (const file of (await readdir(join(folder, "datasets"))).sort()) {
    if (!file.endsWith(".json")) continue;
    const name = file.slice(0, -".json".length);
    const dataset = JSON.parse(await readFile(join(folder, "datasets", file), "utf8")) as Dataset;
    const annotators = Object.values(annotations[name] ?? {});
    if (dataset.n_dim > 1 || annotators.length === 0) continue;
    const values = withoutGaps(dataset.series[0]!.raw);
    const of = (found: readonly number[]): Score => score(annotators, found, values.length);
    const known = published.get(name);
    rows.push({
      name,
      scores: [
        of(onlineChanges(values)),
        of(bocpdChanges(values)),
        known?.bocpd ?? null,
        known?.binseg ?? null,
        of([]),
        values.every((value) => value > 0) ? of(levelShifts(values)) : null,
      ],
    });
  }
  const near = rows.filter(({ scores }) => isClose(scores[1]!, scores[2]!)).length;
  return [
    `| series | ${COLUMNS.join(" | ")} |`,
    `| --- |${" --- |".repeat(COLUMNS.length)}`,
    ...rows.map(({ name, scores }) => `| ${name} | ${scores.map(shown).join(" | ")} |`),
    `| **mean of ${rows.length}** | ${COLUMNS.map((_, i) => shown(meanScore(rows.map((row) => row.scores[i]!)))).join(" | ")} |`,
    "",
    "F1 / covering. The general detector is this evaluation's; the command uses the one for iteration times, which looks for steps of 10 % and takes trend and season for healthy (its mean is over the series without negative values).",
    `BOCPD reproduced within ${CLOSE} of the published one in both: ${near} of ${rows.length} series.`,
    "",
  ].join("\n");
}

function shown(score: Score | null): string {
  return score ? `${score.f1.toFixed(3)} / ${score.covering.toFixed(3)}` : "-";
}

function meanScore(scores: readonly (Score | null)[]): Score | null {
  const known = scores.filter((one) => one !== null);
  if (known.length === 0) return null;
  return { f1: mean(known.map((one) => one.f1)), covering: mean(known.map((one) => one.covering)) };
}

function isClose(a: Score | null, b: Score | null): boolean {
  if (!a || !b) return false;
  return Math.abs(a.f1 - b.f1) <= CLOSE && Math.abs(a.covering - b.covering) <= CLOSE;
}

/** The last value stands in for a gap. */
function withoutGaps(raw: readonly (number | null)[]): number[] {
  let last = raw.find((value) => value !== null) ?? 0;
  return raw.map((value) => (last = value ?? last));
}

function publishedScores(csv: string): Map<string, { bocpd: Score | null; binseg: Score | null }> {
  const [head, ...lines] = csv
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(","));
  return new Map(
    lines.map((cells) => {
      const of = (method: string): Score | null => {
        const [f1, covering] = ["f1", "cover"].map((what) =>
          Number.parseFloat(cells[head!.indexOf(`${method}_default_${what}`)] ?? ""),
        );
        return Number.isFinite(f1) && Number.isFinite(covering)
          ? { f1: f1!, covering: covering! }
          : null;
      };
      return [cells[0]!, { bocpd: of("bocpd"), binseg: of("binseg") }];
    }),
  );
}

function onlineChanges(values: readonly number[]): number[] {
  const detector = new OnlineChanges();
  return values.map((value) => detector.push(value)).filter((at) => at !== null);
}

function levelShifts(values: readonly number[]): number[] {
  const tracker = new LevelTracker();
  return values.flatMap((value, index) => tracker.push(index, value)?.start ?? []);
}

/**
 * TCPDBench's default: the series standardised as a whole (so not online), and the R package ocp's "maxCPs":
 * the most likely chain of runs, followed back from the end.
 */
export function bocpdChanges(values: readonly number[]): number[] {
  const centre = mean(values);
  const deviation = Math.sqrt(
    values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1),
  );
  const bocpd = new Bocpd({
    lambda: 100,
    prior: { mean: 0, kappa: 1, alpha: 1, beta: 1 },
    prune: 1e-4,
  });
  /** By points seen: the best chain's log probability, and where its last run began. */
  const chain = [0];
  const began = [0];
  for (const value of values) {
    bocpd.push(deviation > 0 ? (value - centre) / deviation : 0);
    const now = bocpd.time;
    let most = -Infinity;
    let start = 0;
    bocpd.forEach((first, logP) => {
      // A run that has not begun explains nothing yet.
      if (first >= now || logP + chain[first]! <= most) return;
      most = logP + chain[first]!;
      start = first;
    });
    chain.push(most);
    began.push(start);
  }
  const changes: number[] = [];
  for (let at = began[values.length]!; at > 0; at = began[at]!) changes.push(at);
  return changes.reverse();
}
