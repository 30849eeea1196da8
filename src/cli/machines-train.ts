/** `faultline machines train`: Minder's models from a site's own healthy tasks, or priorities of metrics from its labels. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { learnFromLabels } from "../pipeline/machine-labels.ts";
import { fleetFromFiles } from "../pipeline/machines.ts";
import { readModels } from "../methods/machines/minder/model-file.ts";
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
  name: string,
  { priorities: file, models, job: jobFile, quiet }: TrainFlags,
): Promise<number> {
  if (file === undefined)
    throw new UserError("no file given for what is learnt", "give --priorities FILE", 2);
  const labels = await readText(name);
  const known = models === undefined ? null : readModels(await readText(models), models);
  await appendFile(file, "").catch(cannotWrite(file));
  const { env, done } = progressEnv(io, quiet === true);
  const asked = { paths, labels, name, jobFile, models: known };
  const { site, tasks, left } = await learnFromLabels(asked, env).finally(done);
  await writeFile(file, `${JSON.stringify(site, null, 1)}\n`).catch(cannotWrite(file));
  const { faulty, healthy } = site.labels;
  const lines = [
    `learnt from ${tasks} tasks: ${faulty} faulty and ${healthy} healthy spans`,
    ...site.order.map(
      (metric, i) =>
        `${String(i + 1).padStart(3)}  ${metric.padEnd(34)} threshold ${site.scores[metric]}`,
    ),
    ...Object.entries(site.sigmas).map(
      ([metric, sigmas]) => `     ${metric.padEnd(34)} counts from ${sigmas} deviations on`,
    ),
    `priorities: ${file}; use them with faultline machines --priorities ${file}`,
  ];
  for (const line of lines) io.out.write(`${harmless(line)}\n`);
  if (quiet !== true) for (const line of left) io.err.write(`faultline: ${line}\n`);
  return 0;
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
