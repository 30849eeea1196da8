/** What a user (or a verdict) may hand over wrongly, said before anything is computed. */
import { UserError } from "../../base/errors.ts";
import type { PlacedJob } from "../../model/mitigation.ts";
import { healthyTables, identity, iterationMs, jobTables } from "./cost-model.ts";

export function checkJob(job: PlacedJob): void {
  const { replicas, stages, slots, links } = job;
  if (!isCount(replicas) || !isCount(stages))
    off(`${replicas} replicas of ${stages} stages`, "both are whole numbers from 1");
  if (slots.length !== replicas * stages)
    off(
      `${slots.length} slots for ${replicas} replicas of ${stages} stages`,
      `every place needs one: ${replicas * stages}`,
    );
  checkLength("microBatches", job.microBatches, replicas, "replica");
  checkLength("stageMs", job.stageMs, stages, "stage");
  checkLength("gradientMs", job.gradientMs, stages, "stage");
  for (const [i, m] of job.microBatches.entries())
    if (!isCount(m)) off(`microBatches of replica ${i} is ${m}`, "a whole number from 1");
  for (const ms of job.stageMs)
    if (!(ms > 0 && ms < Infinity)) off(`stageMs is ${ms}`, "milliseconds, above 0");
  for (const [name, times] of [
    ["gradientMs", job.gradientMs],
    ["activationMs", [job.activationMs]],
  ] as const)
    for (const ms of times)
      if (!(ms >= 0 && ms < Infinity)) off(`${name} is ${ms}`, "milliseconds, not below 0");
  if (!Number.isFinite(job.restMs)) off(`restMs is ${job.restMs}`, "milliseconds");
  for (const { name, compute, network } of slots) {
    if (!isFactor(compute)) off(`compute factor of ${name} is ${compute}`, FACTOR_HINT);
    if (!isFactor(network)) off(`network factor of ${name} is ${network}`, FACTOR_HINT);
  }
  for (const { a, b, factor } of links) {
    for (const end of [a, b])
      if (!(Number.isInteger(end) && end >= 0 && end < slots.length))
        off(`link ${a}-${b}: there is no slot ${end}`, `slots are 0 to ${slots.length - 1}`);
    if (a === b) off(`link ${a}-${b} connects a slot to itself`, "name two slots");
    if (!isFactor(factor)) off(`factor of link ${a}-${b} is ${factor}`, FACTOR_HINT);
  }
  const tables = jobTables(job);
  const here = identity(slots.length);
  checkTimes(iterationMs(tables, here), iterationMs(healthyTables(tables), here), job.restMs);
}

/** Numbers that are possible each may still make an iteration that is not: below zero, or beyond all bounds. */
export function checkTimes(nowMs: number, healthyMs: number, restMs: number): void {
  if (!(nowMs < Infinity))
    off(`an iteration would take ${nowMs} ms`, "check microBatches, times and factors");
  if (!(healthyMs > 0))
    off(
      `a healthy iteration would take ${Number(healthyMs.toPrecision(6))} ms with restMs ${restMs}`,
      "a negative restMs may only cover what overlaps with compute, not the whole iteration",
    );
}

const FACTOR_HINT = "1 is healthy, 2 takes twice as long";

const isCount = (n: number): boolean => Number.isInteger(n) && n >= 1;
const isFactor = (n: number): boolean => n >= 1 && n < Infinity;

function checkLength(name: string, values: readonly number[], length: number, of: string): void {
  if (values.length !== length)
    off(`${name} has ${values.length} values for ${length}`, `one for every ${of}`);
}

function off(what: string, hint: string): never {
  throw new UserError(what, hint, 2);
}
