/**
 * Machines' metrics that others recorded: `node --import tsx eval/machines/third-party.ts`. Prints Markdown. The data
 * are read from ../shared/thirdparty where they lie.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { unpacked } from "../unpacked.ts";
import { minder, ownPast, peers } from "./asd-detectors.ts";
import { scoreRow, SCORE_HEADS, scoresOf } from "./asd-scores.ts";
import { readServers, type Server, type Span } from "./asd.ts";
import { bytedanceReport } from "./bytedance-report.ts";

const DAY = 288;

const archive = (name: string): string =>
  fileURLToPath(new URL(`../../../shared/thirdparty/${name}.tar.gz`, import.meta.url));

async function evaluate(name: string, report: (folder: string) => string): Promise<void> {
  const path = archive(name);
  if (!existsSync(path))
    return console.log(`## ${name}\n\nskipped: ../shared/thirdparty/${name}.tar.gz is not here\n`);
  console.log(await unpacked(path, async (folder) => Promise.resolve(report(folder))));
}

function asdReport(folder: string): string {
  const servers = readServers(folder);
  const length = servers[0]!.label.length;
  const marked = servers.reduce(
    (sum, { label }) => sum + label.filter((one) => one === 1).length,
    0,
  );
  const ways: [string, (servers: readonly Server[]) => Span[]][] = [
    ["Faultline, one call over all 15 days", (all) => peers(all, length, false)],
    ["… and its jitters", (all) => peers(all, length, true)],
    ["Faultline, a call for each day", (all) => peers(all, DAY, false)],
    ["… and its jitters", (all) => peers(all, DAY, true)],
    ["Faultline, a call for every 6 h", (all) => peers(all, DAY / 4, false)],
    ["… and its jitters", (all) => peers(all, DAY / 4, true)],
    ["Minder at 3, one call", (all) => minder(all, length, 3)],
    ["Minder at 3, a call for each day", (all) => minder(all, DAY, 3)],
    ["Minder at 3, a call for every 6 h", (all) => minder(all, DAY / 4, 3)],
    ["Minder at 2.5, a call for every 6 h", (all) => minder(all, DAY / 4, 2.5)],
    ["own past, worst metric, 99.9 % of training", (all) => ownPast(all, "worst", 0.999)],
    ["own past, mean of metrics, 99.9 %", (all) => ownPast(all, "mean", 0.999)],
    ["own past, mean of metrics, 99 %", (all) => ownPast(all, "mean", 0.99)],
    [
      "everything is an anomaly",
      (all) => all.map((_, server) => ({ server, from: 0, to: length })),
    ],
  ];
  const rows = ways.map(([name, find]) => {
    const started = performance.now();
    const spans = find(servers);
    return scoreRow(name, scoresOf(servers, spans), performance.now() - started);
  });
  const share = ((100 * marked) / (servers.length * length)).toFixed(1);
  return [
    "## ASD: 12 application servers, 19 metrics without names\n",
    `${length} samples of 5 minutes of each server; ${marked} of ${servers.length * length} samples (${share} %) are marked. Continuity: 3 samples;`,
    "windows overlap by half. Scores are plain: no point adjustment. An event counts as found where a reported stretch",
    "touches it; a false alarm is a stretch that touches none. The servers' days are in phase; that sample i of all is",
    "the same moment is assumed.\n",
    SCORE_HEADS,
    ...rows,
    "",
  ].join("\n");
}

console.log("# Machines' metrics of others\n");
await evaluate("straggler-bytedance", (folder) => {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return bytedanceReport(
    join(
      folder,
      files.find((file) => file.endsWith("timeline-ST.json.gz") && !file.includes("ideal"))!,
    ),
  );
});
await evaluate("metrics-asd", asdReport);
