/** What workers can be asked to do. */
import { deadWork } from "./dead-work.ts";
import { healthyWork } from "./healthy-work.ts";
import { manyWork, nicWork } from "./many-work.ts";
import { siteWork } from "./site-work.ts";
import { taskWork } from "./task-work.ts";
import { timeWork } from "./time-work.ts";

export const WORK = {
  task: taskWork,
  site: siteWork,
  healthy: healthyWork,
  dead: deadWork,
  nic: nicWork,
  many: manyWork,
  time: timeWork,
} as const;

export type WorkName = keyof typeof WORK;
export type InputOf<Name extends WorkName> = Parameters<(typeof WORK)[Name]>[0];
export type OutputOf<Name extends WorkName> = ReturnType<(typeof WORK)[Name]>;

export interface Order {
  readonly name: WorkName;
  readonly input: InputOf<WorkName>;
}
