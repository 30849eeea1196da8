/** From metrics of tasks and labels of machines to what they teach of a site's metrics. */
import { resolve } from "node:path";
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
  /** Labels that were not learnt from, in words: a line each. */
  readonly left: readonly string[];
}

export async function learnFromLabels(
  { paths, labels: text, name, jobFile, models }: LabelledTasks,
  env: Env,
): Promise<Learnt> {
  const labels = readMachineLabels(text, name);
  const tasks: LabelledTask[] = [];
  const matched = new Set<MachineLabel>();
  const contradictory = new Set<MachineLabel>();
  for (const path of new Set(paths.map((path) => resolve(path)))) {
    const { fleet } = await fleetFromFiles([path], jobFile, env);
    const found = matchLabels(fleet, labels);
    for (const label of found.matched) matched.add(label);
    for (const label of found.contradictory) contradictory.add(label);
    if (found.spans.length > 0) tasks.push({ fleet, spans: found.spans });
  }
  check(labels, matched, contradictory, tasks, name);
  const site = trainPriorities(tasks, models ?? (await shippedModels()), (at) =>
    env.progress("learning from tasks", at, tasks.length),
  );
  if (site.order.length + Object.keys(site.sigmas).length === 0)
    throw new UserError(
      "no metric tells faulty from healthy machines in two tasks or more",
      "give more labelled tasks; labels must cover the four minutes and more that a fault lasts",
      3,
    );
  const unmatched = labels.filter((label) => !matched.has(label));
  const left = [
    ...(unmatched.length === 0
      ? []
      : [
          `${unmatched.length} of ${labels.length} labels match no machine and time of the metrics: ${wordsOf(unmatched)}`,
        ]),
    ...(contradictory.size === 0
      ? []
      : [
          `${contradictory.size} of ${labels.length} labels contradict each other and do not count: ${wordsOf([...contradictory])}`,
        ]),
  ];
  return { site, tasks: tasks.length, left };
}

function check(
  labels: readonly MachineLabel[],
  matched: ReadonlySet<MachineLabel>,
  contradictory: ReadonlySet<MachineLabel>,
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
        `no label of ${file} that matches is ${word}${contradictory.size === 0 ? "" : ` and uncontradicted; these contradict each other: ${wordsOf([...contradictory])}`}`,
        "both are needed: faulty machines, and times in which nothing was wrong (machine *)",
        3,
      );
}

/** A few of them. */
function wordsOf(labels: readonly MachineLabel[]): string {
  const some = labels
    .slice(0, 3)
    .map(
      ({ machine, fromS, isFaulty }) =>
        `${harmless(machine ?? "*")} ${isFaulty ? "faulty" : "healthy"} at ${new Date(1000 * fromS).toISOString()}`,
    );
  return `${some.join(", ")}${labels.length > some.length ? ", …" : ""}`;
}
