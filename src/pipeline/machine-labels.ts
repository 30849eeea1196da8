/** From metrics of tasks and labels of machines to what they teach of a site's metrics. */
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { readMachineLabels } from "../ingest/machine-labels.ts";
import { matchLabels } from "../methods/machines/labelled-spans.ts";
import type { MinderModels } from "../methods/machines/minder/model-file.ts";
import { type LabelledTask, trainPriorities } from "../methods/machines/train-priorities.ts";
import { shippedModels } from "../methods/methods.ts";
import type { Env } from "../model/job.ts";
import type { MachineLabel, SiteMetrics } from "../model/machine-labels.ts";
import { fleetFromFiles } from "./machines.ts";

export interface LabelledTasks {
  /** Each is one task. */
  readonly paths: readonly string[];
  readonly labels: string;
  /** The file they come from, for errors. */
  readonly name: string;
  readonly jobFile: string | undefined;
  /** The shipped ones where it is null. */
  readonly models: MinderModels | null;
}

export interface Learnt {
  readonly site: SiteMetrics;
  readonly tasks: number;
  /** Labels that match nothing, in words; null where all do. */
  readonly left: string | null;
}

export async function learnFromLabels(
  { paths, labels: text, name, jobFile, models }: LabelledTasks,
  env: Env,
): Promise<Learnt> {
  const labels = readMachineLabels(text, name);
  const tasks: LabelledTask[] = [];
  const matched = new Set<MachineLabel>();
  for (const path of paths) {
    const { fleet } = await fleetFromFiles([path], jobFile, env);
    const found = matchLabels(fleet, labels);
    for (const label of found.matched) matched.add(label);
    if (found.spans.length > 0) tasks.push({ fleet, spans: found.spans });
  }
  check(labels, matched, tasks, name);
  const site = trainPriorities(tasks, models ?? (await shippedModels()), (at) =>
    env.progress("learning from tasks", at, tasks.length),
  );
  if (site.order.length + Object.keys(site.sigmas).length === 0)
    throw new UserError(
      "no metric tells faulty from healthy machines in two tasks or more",
      "give more labelled tasks; labels must cover the four minutes and more that a fault lasts",
      3,
    );
  const left = labels.filter((label) => !matched.has(label));
  const words = `${left.length} of ${labels.length} labels match no machine and time of the metrics: ${wordsOf(left)}`;
  return { site, tasks: tasks.length, left: left.length === 0 ? null : words };
}

function check(
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
  for (const word of ["faulty", "healthy"])
    if (!spans.some(({ isFaulty }) => isFaulty === (word === "faulty")))
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
