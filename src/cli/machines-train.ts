/** `faultline machines train`: Minder's models from a site's own healthy tasks. */
import { appendFile, writeFile } from "node:fs/promises";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { fleetFromFiles } from "../pipeline/machines.ts";
import { trainModels } from "../methods/machines/minder/train-models.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface TrainFlags {
  readonly models?: string;
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
  const { models: file } = flags;
  if (file === undefined)
    throw new UserError("no file for the models was given", "give --models FILE", 2);
  // Whether it can be written is asked before the minutes of training, not after.
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
      `there is not one window of eight samples in ${harmless(paths.join(" "))}`,
      "give healthy tasks of some minutes",
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

function cannotWrite(file: string): (error: Error) => never {
  return (error) => {
    throw new UserError(
      `${file} cannot be written: ${error.message}`,
      "give --models a file in a folder that exists",
    );
  };
}
