/**
 * Trains the models that are shipped, from simulated tasks in which nothing is wrong, and writes them as a module:
 *
 *   node --import tsx scripts/train-minder.ts [tasks] [batches]
 *
 * Seeds lie where no evaluation draws its tasks from.
 */
import { writeFileSync } from "node:fs";
import type { Fleet } from "../src/model/fleet.ts";
import { CATALOG } from "../src/model/metric-catalog.ts";
import {
  trainModels,
  DEFAULT_MODEL_TRAINING,
} from "../src/methods/machines/minder/train-models.ts";
import { drawTask } from "../eval/machines/fleet/draw-task.ts";
import { fleetTask } from "../eval/machines/fleet/fleet-task.ts";

const SEEDS = 7_000_000;
/** Machines of a task: its windows are drawn from a few as well as from a thousand. */
const MACHINES = 24;

const tasks = Number(process.argv[2] ?? 60);
const batches = Number(process.argv[3] ?? 20_000);

function* healthy(): Generator<Fleet> {
  for (let i = 0; i < tasks; i++) {
    const { metrics: _, ...options } = drawTask(SEEDS + i, false);
    yield fleetTask({ ...options, machines: MACHINES, pp: Math.min(options.pp ?? 1, 4) }).fleet;
  }
}

let last = "";
const models = trainModels(healthy(), {
  metrics: CATALOG.filter(({ isMinder }) => isMinder).map(({ id }) => id),
  windowsPerTask: Math.ceil(20_000 / tasks),
  batches,
  seed: DEFAULT_MODEL_TRAINING.seed,
  onProgress: (what) => {
    if (what !== last) console.error((last = what));
  },
});
for (const [metric, { mse, limits, windows }] of Object.entries(models.metrics))
  console.error(
    `${metric}: mean square error ${mse}, limits ${limits.join("..")}, ${windows} windows`,
  );
console.error(`any other: ${models.fallback.mse}`);

const text = JSON.stringify(models);
const file = new URL("../src/methods/machines/minder/models.ts", import.meta.url);
writeFileSync(
  file,
  `/**
 * Models trained on ${tasks} simulated tasks in which nothing was wrong. Made by scripts/train-minder.ts: do not edit.
 * One string: a formatter would give every number its line.
 */
import type { MinderModels } from "./model-file.ts";

const TEXT =
  '${text}';

let models: MinderModels | null = null;

export function shippedModels(): MinderModels {
  return (models ??= JSON.parse(TEXT) as MinderModels);
}
`,
);
console.error(`${text.length} characters`);
