/**
 * The what-if figures against those that ByteDance published for its traces: `node --import tsx eval/what-if.ts`.
 * Prints Markdown. The traces are read from ../shared/thirdparty where they lie. Then 100 made-up jobs of each kind.
 */
import { mean } from "../src/base/numbers.ts";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { stageTimeline } from "../src/ingest/stage-timeline.ts";
import { suspectsOf } from "../src/methods/localize/what-if/suspects.ts";
import { whatIf } from "../src/methods/localize/what-if/what-if.ts";
import { madeUp } from "./what-if/made-up.ts";
import { unpacked } from "./unpacked.ts";

type Figures = Readonly<Record<string, number>>;
interface Published {
  readonly blocking_slowdown: number;
  readonly step_t_nodelay: Figures;
  readonly blocking_decompose_by_optype: Figures;
  readonly blocking_decompose_by_stage: Figures;
  readonly blocking_decompose_by_dp_rank: Figures;
}

const archive = fileURLToPath(
  new URL("../../shared/thirdparty/straggler-bytedance.tar.gz", import.meta.url),
);
console.log("# What-if analysis\n");
console.log(existsSync(archive) ? await unpacked(archive, evaluate) : "not here\n");
console.log("## Made-up jobs\n");
console.log(madeUp(100));

async function evaluate(folder: string): Promise<string> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files
    .filter((file) => /(?:^|\/)timeline-\w+\.json\.gz$/.test(file))
    .map((file) => trace(join(folder, file)))
    .join("\n");
}

function trace(file: string): string {
  const name = /timeline-(\w+)\.json\.gz$/.exec(file)![1]!;
  const beside = (what: string): string => join(file, "..", `${what}-${name}.json`);
  const read = (what: string): unknown => JSON.parse(readFileSync(beside(what), "utf8"));
  const sink = stageTimeline.open(file);
  sink.push(gunzipSync(readFileSync(file)));
  const result = whatIf(sink.end().stageOperations ?? []);
  if (!result) return `## ${name}\n\ncannot be replayed\n`;
  const published = read("result") as Published;
  const [stageFigures, workerFigures] = [read("ms") as Figures, read("mw") as Figures];
  const rows: [string, number, number | undefined][] = [
    ["S", result.slowdown, published.blocking_slowdown],
    ["M_W", result.workerShare, workerFigures["Mw"]],
    ["M_S", result.stageShares.at(-1)!, stageFigures["Ms"]],
    ["mean step, s", mean(result.actualMs) / 1000, stageFigures["tori"]],
    ["ideal step, s", mean(result.idealMs) / 1000, stageFigures["tideal"]],
    ...result.byKind.map(({ kind, slowdown }): [string, number, number | undefined] => [
      kind,
      slowdown,
      published.blocking_decompose_by_optype[kind],
    ]),
    ...result.workers.map(({ rank, replica, stage, slowdown }): [string, number, number] => [
      `rank ${rank} (replica ${replica}, stage ${stage})`,
      slowdown,
      Math.min(
        published.blocking_decompose_by_stage[stage]!,
        published.blocking_decompose_by_dp_rank[replica]!,
      ),
    ]),
  ];
  const worst = [...result.steps].map((step, i) =>
    Math.abs(result.actualMs[i]! / 1000 / published.step_t_nodelay[step]! - 1),
  );
  return [
    `## ${name}\n`,
    "| figure | ours | published |\n|---|---|---|",
    ...rows.map(([what, ours, theirs]) => `| ${what} | ${words(ours)} | ${words(theirs)} |`),
    `\nLargest difference of a single step: ${Math.max(...worst).toExponential(1)}.`,
    `Even micro-batches would gain ${words(result.evenPassesShare)} of the slow-down, even stages`,
    `${words(result.evenStagesShare)}; forward and backward correlate by ${words(result.passCorrelation)}.`,
    `Suspects: ${
      suspectsOf(result)
        .map(({ what }) => what)
        .join(", ") || "none"
    }.\n`,
  ].join("\n");
}

function words(value: number | undefined): string {
  return value === undefined ? "—" : value.toFixed(5);
}
