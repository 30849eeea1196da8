/** `faultline machines train`: Minder's models from a site's own healthy tasks, or priorities of metrics from its labels. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { readMachineLabels } from "../ingest/machine-labels.ts";
import { fleetFromFiles } from "../pipeline/machines.ts";
import { matchLabels } from "../methods/machines/labelled-spans.ts";
import { readModels } from "../methods/machines/minder/model-file.ts";
import { type LabelledTask, trainPriorities } from "../methods/machines/train-priorities.ts";
import { shippedModels } from "../methods/methods.ts";
import type { MachineLabel } from "../model/machine-labels.ts";
import { trainModels } from "../methods/machines/minder/train-models.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface TrainFlags {
  readonly models?: string;
  readonly labels?: string;
  readonly priorities?: string;
  readonly job?: string;
  readonly seed?: number;
  readonly batches?: number;
  readonly quiet?: boolean;
}

export async function runTrain(
  io: Io,
  paths: readonly string[],
  flags: TrainFlags,
): Promise<number> {
  const { models: file, labels, priorities } = flags;
  if (labels !== undefined) return await trainOnLabels(io, paths, labels, flags);
  if (priorities !== undefined)
    throw new UserError("--priorities needs labels", "add --labels FILE", 2);
  if (file === undefined)
    throw new UserError("no file given for the models", "give --models FILE", 2);
  // Checked before the minutes of training, not after.
  await appendFile(file, "").catch(cannotWrite(file));
  const { env, done } = progressEnv(io, flags.quiet === true);
  const fleets = [];
  for (const path of paths) fleets.push((await fleetFromFiles([path], flags.job, env)).fleet);
  const models = trainModels(fleets, {
    ...(flags.seed === undefined ? {} : { seed: flags.seed }),
    ...(flags.batches === undefined ? {} : { batches: flags.batches }),
    onProgress: (what, share) => env.progress(`training ${what}`, Math.round(100 * share), 100),
  });
  done();
  if (models.fallback.windows === 0)
    throw new UserError(
      `no window of eight samples in ${harmless(paths.join(" "))}`,
      "give healthy tasks of at least a few minutes",
      3,
    );
  await writeFile(file, `${JSON.stringify(models)}\n`).catch(cannotWrite(file));
  const trained = Object.entries(models.metrics);
  for (const [metric, { mse, windows }] of trained) {
    io.out.write(
      `${harmless(metric).padEnd(34)} ${windows} windows, error ${mse.toExponential(1)}\n`,
    );
  }
  io.out.write(
    `models: ${harmless(file)}; use them with faultline machines --method minder --models ${harmless(file)}\n`,
  );
  return 0;
}

async function trainOnLabels(
  io: Io,
  paths: readonly string[],
  from: string,
  { priorities: file, models, job, quiet }: TrainFlags,
): Promise<number> {
  if (file === undefined)
    throw new UserError("no file given for what is learnt", "give --priorities FILE", 2);
  const labels = readMachineLabels(await readText(from), from);
  const known = models === undefined ? null : readModels(await readText(models), models);
  await appendFile(file, "").catch(cannotWrite(file));
  const { env, done } = progressEnv(io, quiet === true);
  const tasks: LabelledTask[] = [];
  const matched = new Set<MachineLabel>();
  for (const path of paths) {
    const { fleet } = await fleetFromFiles([path], job, env);
    const found = matchLabels(fleet, labels);
    for (const label of found.matched) matched.add(label);
    if (found.spans.length > 0) tasks.push({ fleet, spans: found.spans });
  }
  checkLabels(labels, matched, tasks, from);
  const site = trainPriorities(tasks, known ?? (await shippedModels()), (at) =>
    env.progress("learning from tasks", at, tasks.length),
  );
  done();
  const { faulty, healthy } = site.labels;
  const left = labels.filter((label) => !matched.has(label));
  io.out.write(
    `learnt from ${tasks.length} tasks: ${faulty} faulty and ${healthy} healthy spans\n`,
  );
  if (left.length > 0 && quiet !== true)
    io.err.write(
      `faultline: ${left.length} of ${labels.length} labels match no machine and time of the metrics: ${wordsOf(left)}\n`,
    );
  if (site.order.length + Object.keys(site.sigmas).length === 0)
    throw new UserError(
      "no metric tells faulty from healthy machines in two tasks or more",
      "give more labelled tasks; labels must cover the four minutes and more that a fault lasts",
      3,
    );
  await writeFile(file, `${JSON.stringify(site, null, 1)}\n`).catch(cannotWrite(file));
  for (const [i, metric] of site.order.entries())
    io.out.write(
      `${String(i + 1).padStart(3)}  ${harmless(metric).padEnd(34)} threshold ${site.scores[metric]}\n`,
    );
  for (const [metric, sigmas] of Object.entries(site.sigmas))
    io.out.write(`     ${harmless(metric).padEnd(34)} counts from ${sigmas} deviations on\n`);
  io.out.write(
    `priorities: ${harmless(file)}; use them with faultline machines --priorities ${harmless(file)}\n`,
  );
  return 0;
}

function checkLabels(
  labels: readonly MachineLabel[],
  matched: ReadonlySet<MachineLabel>,
  tasks: readonly LabelledTask[],
  file: string,
): void {
  if (matched.size === 0)
    throw new UserError(
      `no label of ${file} matches a machine and a time of the metrics: ${wordsOf(labels)}`,
      "names are those of the metrics or of the job file, times are UTC unless they name a zone",
      3,
    );
  const spans = tasks.flatMap((task) => task.spans);
  for (const [isFaulty, word] of [
    [true, "faulty"],
    [false, "healthy"],
  ] as const)
    if (!spans.some((span) => span.isFaulty === isFaulty))
      throw new UserError(
        `no label of ${file} that matches is ${word}`,
        "both are needed: faulty machines, and times in which nothing was wrong (machine *)",
        3,
      );
}

/** A few of them. */
function wordsOf(labels: readonly MachineLabel[]): string {
  const some = labels
    .slice(0, 3)
    .map(
      ({ machine, fromS }) =>
        `${harmless(machine ?? "*")} at ${new Date(1000 * fromS).toISOString()}`,
    );
  return `${some.join(", ")}${labels.length > some.length ? ", …" : ""}`;
}

async function readText(file: string): Promise<string> {
  return await readFile(file, "utf8").catch((error: Error) => {
    throw new UserError(`cannot read ${file}: ${error.message}`, "check the path", 3);
  });
}

function cannotWrite(file: string): (error: Error) => never {
  return (error) => {
    throw new UserError(
      `cannot write ${file}: ${error.message}`,
      "give a file in a folder that exists",
    );
  };
}
