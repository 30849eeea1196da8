/**
 * `npm run eval -- TOPIC [--quick] [options]`: the evaluations of one topic, or of all, one after the other. Further
 * options go to the topic's first.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Evaluation {
  readonly script: string;
  readonly quick: readonly string[];
}

const QUICK = ["--quick"];
const TOPICS: Readonly<Record<string, readonly Evaluation[]>> = {
  hangs: [{ script: "hangs.ts", quick: [] }],
  iterations: [{ script: "iterations.ts", quick: QUICK }],
  joint: [{ script: "joint/run.ts", quick: QUICK }],
  live: [{ script: "live/run.ts", quick: QUICK }],
  localize: [
    { script: "localize/run.ts", quick: QUICK },
    { script: "localize/tables.ts", quick: QUICK },
    { script: "localize/files.ts", quick: ["--cases", "22"] },
    { script: "holmes/detect.ts", quick: ["--jobs", "60", "--test-jobs", "24"] },
    { script: "what-if.ts", quick: [] },
  ],
  logs: [{ script: "logs/run.ts", quick: QUICK }],
  machines: [
    { script: "machines/run.ts", quick: QUICK },
    { script: "machines/third-party.ts", quick: [] },
  ],
  mitigate: [{ script: "mitigate/run.ts", quick: QUICK }],
  probe: [{ script: "probe/agree.ts", quick: [] }],
  traces: [{ script: "traces/run.ts", quick: QUICK }],
};

const [topic = "", ...options] = process.argv.slice(2);
const evaluations =
  topic === "all" || topic === "" ? Object.values(TOPICS).flat() : (TOPICS[topic] ?? []);
if (evaluations.length === 0) {
  const topics = Object.keys(TOPICS).join(", ");
  console.error(`eval: there is no topic "${topic}"; give one of ${topics}, or all`);
  process.exit(2);
}
const isQuick = options.includes("--quick");
for (const [i, { script, quick }] of evaluations.entries()) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const given = i === 0 ? options.filter((option) => option !== "--quick") : [];
  const all = [...(isQuick ? quick : []), ...given];
  const node = ["--max-old-space-size=8192", "--import", "tsx", path, ...all];
  const { status } = spawnSync(process.execPath, node, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
