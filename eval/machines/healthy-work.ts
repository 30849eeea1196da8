/** One call on a healthy task of a given size, for the rate of false alarms. */
import { seeded } from "../../src/base/random.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { drawTask } from "./fleet/draw-task.ts";
import { fleetTask, type FleetTaskOptions } from "./fleet/fleet-task.ts";
import { judgeAnswer, type JudgedAnswer } from "./judged-answer.ts";

export interface HealthyInput {
  readonly seed: number;
  readonly least: number;
  readonly most: number;
}

export interface HealthyOutcome {
  readonly seed: number;
  readonly machines: number;
  readonly answer: JudgedAnswer;
  readonly said: string;
}

export function healthyWork({ seed, least, most }: HealthyInput): HealthyOutcome {
  const options = sized(drawTask(seed, false), least, most);
  const { fleet, truth } = fleetTask(options);
  const { faulty } = findMachines(fleet);
  return {
    seed,
    machines: options.machines,
    answer: judgeAnswer(faulty, fleet, truth),
    said: faulty.map(({ machine, score, why }) => `${machine} ${score} ${why}`).join(" / "),
  };
}

/** The drawn task with another number of machines, evenly by magnitude; fewer stages where they would be too many. */
export function sized(drawn: FleetTaskOptions, least: number, most: number): FleetTaskOptions {
  const random = seeded(drawn.seed ^ 0x51e);
  const machines = Math.round(least * (most / least) ** random());
  let pp = drawn.pp ?? 1;
  while (pp > 1 && (pp * 2 > machines || (machines < 64 && pp > 4))) pp /= 2;
  return { ...drawn, machines, pp };
}
