/**
 * What a site's labels bring (`faultline machines train --labels`): tasks of small fleets, half of them learnt from, the
 * others asked before and after. Node alone: node eval/machines/site-labels.ts [tasks].
 */
import { matchLabels } from "../../src/methods/machines/labelled-spans.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { trainPriorities } from "../../src/methods/machines/train-priorities.ts";
import type { MachineLabel } from "../../src/model/machine-labels.ts";
import type { MachineReport } from "../../src/model/machine-report.ts";
import { drawTask } from "./fleet/draw-task.ts";
import { fleetTask, type FleetTask } from "./fleet/fleet-task.ts";
import { shareWords, table } from "./scores.ts";

const FIRST_SEED = 910_000;
const SIZES = [12, 64] as const;

/** Two faulty tasks for each healthy one. */
function task(number: number): FleetTask {
  const options = drawTask(FIRST_SEED + number, number % 3 !== 0);
  const machines = SIZES[0] + ((number * 7) % (SIZES[1] - SIZES[0]));
  const { fault } = options;
  const moved = fault ? { ...fault, machines: fault.machines.map((m) => m % machines) } : null;
  return fleetTask({ ...options, machines, pp: 1, stepS: 5, startS: 0, fault: moved });
}

function labelsOf({ fleet, truth: { fault } }: FleetTask): MachineLabel[] {
  const endS = Math.max(...fleet.grids.map(({ startS, stepS, ticks }) => startS + stepS * ticks));
  const startS = Math.min(...fleet.grids.map((grid) => grid.startS));
  if (!fault) return [{ machine: null, fromS: startS, toS: endS, isFaulty: false, cause: null }];
  const toS = startS + (fault.untilS ?? Infinity);
  return fault.machines.map((m) => ({
    machine: fleet.machines[m]!,
    fromS: startS + fault.onsetS,
    toS: Math.min(toS, endS),
    isFaulty: true,
    cause: null,
  }));
}

interface Count {
  right: number;
  wrong: number;
  alarms: number;
}

function count(to: Count, { fleet, truth: { fault } }: FleetTask, { faulty }: MachineReport): void {
  const [first] = faulty;
  if (!first) return;
  const isRight = fault?.machines.some((m) => fleet.machines[m] === first.machine) ?? false;
  if (isRight) to.right++;
  else if (fault) to.wrong++;
  else to.alarms++;
}

const tasks = Number(process.argv[2] ?? 120);
const learnt = Array.from({ length: tasks / 2 }, (_, i) => task(i));
const models = shippedModels();
const site = trainPriorities(
  learnt.map((one) => ({ fleet: one.fleet, spans: matchLabels(one.fleet, labelsOf(one)).spans })),
  models,
);
console.log(JSON.stringify(site, null, 1));
const arms = {
  "Minder, paper's order, threshold 3": (fleet) => runMinder(fleet, models),
  "Minder, learnt order, threshold 3": (fleet) => runMinder(fleet, models, { metrics: site.order }),
  "Minder, learnt order and thresholds": (fleet) =>
    runMinder(fleet, models, { metrics: site.order, scores: site.scores }),
  "default method": (fleet) => findMachines(fleet),
  "default method, learnt thresholds": (fleet) => findMachines(fleet, { sigmas: site.sigmas }),
} satisfies Record<string, (fleet: FleetTask["fleet"]) => MachineReport>;
const counts = Object.fromEntries(
  Object.keys(arms).map((name): [string, Count] => [name, { right: 0, wrong: 0, alarms: 0 }]),
);
let [faulty, healthy] = [0, 0];
for (let i = tasks / 2; i < tasks; i++) {
  const one = task(i);
  if (one.truth.fault) faulty++;
  else healthy++;
  for (const [name, ask] of Object.entries(arms)) count(counts[name]!, one, ask(one.fleet));
}
console.log(
  table(
    ["held out", "right", "somebody else", "false alarms in healthy tasks"],
    Object.entries(counts).map(([name, { right, wrong, alarms }]) => [
      name,
      shareWords(right, faulty),
      shareWords(wrong, faulty),
      shareWords(alarms, healthy),
    ]),
  ),
);
