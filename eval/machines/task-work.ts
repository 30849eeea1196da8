/** One task of the mix, asked of every method. */
import { randomInt, seeded } from "../../src/base/random.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { drawTask } from "./fleet/draw-task.ts";
import type { FaultType } from "./fleet/faults.ts";
import { fleetTask } from "./fleet/fleet-task.ts";
import { judgeAnswer, type JudgedAnswer } from "./judged-answer.ts";
import { sweepMinder, THRESHOLDS, VARIANT_NAMES, type VariantName } from "./minder-sweep.ts";
import { OURS, oursAndPieces } from "./ours.ts";
import { SHIPPED, VARIANTS } from "./variants/options.ts";
import { whereSeen } from "./visible.ts";

export interface TaskInput {
  readonly seed: number;
  readonly isFaulty: boolean;
  /** Ours is not asked where thresholds are chosen, Minder not where ours alone is wanted. */
  readonly asks: "all" | "minder" | "ours";
}

export interface TaskOutcome {
  readonly seed: number;
  readonly isFaulty: boolean;
  readonly machines: number;
  readonly stepS: number;
  readonly type: FaultType | null;
  readonly seenIn: readonly string[];
  /** Within the data. */
  readonly lastsS: number;
  readonly ours: Readonly<Record<string, JudgedAnswer>>;
  readonly minder: Readonly<Record<VariantName, readonly JudgedAnswer[]>>;
  /** Answers of the sweep that runMinder was asked for, too, and those that were not the same. */
  readonly checked: number;
  readonly differing: number;
  /** For whoever looks into a wrong answer. */
  readonly said: string;
}

/** Asking runMinder once more costs as much again: on tasks of up to this many machines, with every variant that it has. */
const MOST_CHECKED = 24;

export function taskWork({ seed, isFaulty, asks }: TaskInput): TaskOutcome {
  const options = drawTask(seed, isFaulty);
  const { fleet, truth } = fleetTask(options);
  const { fault } = truth;
  const named = asks === "minder" ? {} : oursAndPieces(fleet, true);
  const swept =
    asks === "ours"
      ? (Object.fromEntries(VARIANT_NAMES.map((name) => [name, []])) as unknown as ReturnType<
          typeof sweepMinder
        >)
      : sweepMinder(fleet);
  const oneJudged = (machine: string | null): JudgedAnswer =>
    judgeAnswer(machine === null ? [] : [{ machine, score: 1 }], fleet, truth);
  let checked = 0;
  let differing = 0;
  if (fleet.machines.length <= MOST_CHECKED && asks !== "ours") {
    const at = randomInt(seeded(seed), THRESHOLDS.length);
    for (const name of SHIPPED) {
      const similarityThreshold = THRESHOLDS[at]!;
      const report = runMinder(fleet, shippedModels(), { ...VARIANTS[name], similarityThreshold });
      checked++;
      if ((report.faulty[0]?.machine ?? null) !== swept[name][at]) differing++;
    }
  }
  const entries = <Key extends string, T, U>(
    record: Readonly<Record<Key, T>>,
    of: (value: T) => U,
  ): Record<Key, U> =>
    Object.fromEntries(Object.entries<T>(record).map(([key, value]) => [key, of(value)])) as Record<
      Key,
      U
    >;
  const first = named[OURS]
    ?.slice(0, 2)
    .map(({ machine, score, why }) => `${machine} ${score} ${why}`);
  return {
    seed,
    isFaulty,
    machines: options.machines,
    stepS: options.stepS ?? 1,
    type: fault?.type ?? null,
    seenIn: fault ? whereSeen(fault, fleet) : [],
    lastsS: fault ? Math.min(fault.untilS ?? Infinity, options.seconds) - fault.onsetS : 0,
    ours: entries(named, (faulty) => judgeAnswer(faulty, fleet, truth)),
    minder: entries(swept, (answers) => answers.map(oneJudged)),
    checked,
    differing,
    said: `truth ${fault?.machines.map((m) => fleet.machines[m]).join() ?? "nobody"}, ours: ${first?.join(" / ") ?? ""}`,
  };
}
