/** What an answer about a task is worth, by the definitions of Minder §6. */
import type { Fleet } from "../../src/model/fleet.ts";
import type { FaultyMachine } from "../../src/model/machine-report.ts";
import type { FleetTruth } from "./fleet/fleet-task.ts";

export interface JudgedAnswer {
  /** Of the machine that is named first; in a healthy task whoever is named is wrong. */
  readonly first: "right" | "wrong" | "nobody";
  /** Machines named that are no culprits. */
  readonly extra: number;
  /** Named with a score of 0.5, "look at its exporter first", where indeed the exporter is broken: no accusation. */
  readonly exporter: number;
  /** The culprit has no more than that said of it: counted as missed. */
  readonly isCulpritWeak: boolean;
  /** The machine named first is one whose exporter is broken. */
  readonly isBroken: boolean;
}

/** Where only a device's samples are gone and the job goes on. */
const WEAK = 0.5;

export function judgeAnswer(
  faulty: readonly Pick<FaultyMachine, "machine" | "score">[],
  { machines }: Pick<Fleet, "machines">,
  truth: FleetTruth,
): JudgedAnswer {
  const culprits = new Set(truth.fault?.machines.map((machine) => machines[machine]!));
  const broken = new Set(truth.telemetry.map(({ machine }) => machines[machine]!));
  const isWeak = ({ score }: { readonly score: number }): boolean => score <= WEAK;
  const aside = faulty.filter((one) => isWeak(one) && broken.has(one.machine));
  const weakCulprits = faulty.filter((one) => isWeak(one) && culprits.has(one.machine));
  const accused = faulty.filter((one) => !aside.includes(one) && !weakCulprits.includes(one));
  const [first] = accused;
  return {
    first: first === undefined ? "nobody" : culprits.has(first.machine) ? "right" : "wrong",
    extra: accused.filter(({ machine }) => !culprits.has(machine)).length,
    exporter: aside.length,
    isCulpritWeak: weakCulprits.length > 0,
    isBroken: first !== undefined && broken.has(first.machine),
  };
}
