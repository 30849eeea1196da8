/**
 * Faults on command, and the truth about them: which act, since which iteration and moment, which did before. What is
 * put on the board begins with the next iteration; what is taken off ends with the one that runs.
 */
import { UserError } from "../../base/errors.ts";
import { checkFaults } from "../../simulate/cluster/check-faults.ts";
import { ENDING_CAUSES, parseFault, type FaultSpec } from "../../simulate/cluster/fault-spec.ts";
import { faultRanks, isEnding } from "../../simulate/cluster/faults.ts";
import { checkLinksAreUsed } from "../../simulate/cluster/links.ts";
import type { Steering } from "../../simulate/cluster/steering.ts";
import type { Simulation } from "../../simulate/cluster/times.ts";

/** More at once is nonsense; of those that are over the latest so many are remembered. */
const MOST_ACTIVE = 64;
const MOST_OVER = 1000;
const MOST_TEXT = 256;

export interface BoardFault {
  readonly id: number;
  readonly fault: string;
  readonly cause: string;
  readonly ranks: readonly number[];
  readonly machine: string | null;
  readonly link: readonly string[] | null;
  readonly switch: string | null;
  /** null for what ends the job: it has no strength. */
  readonly severity: number | null;
  /** First iteration that it acts in, when that began and when it ended; null before. */
  readonly fromIteration: number | null;
  readonly fromMs: number | null;
  readonly firstEndMs: number | null;
  /** Last iteration that it acted in, and when that ended; null while it acts. */
  readonly toIteration: number | null;
  readonly toMs: number | null;
}

/** What becomes of a process that a fault strikes which ends the job. */
export type Fate = "lives" | "stopped" | "killed" | "crashed";

export function fateOf({ cause }: FaultSpec): Fate {
  if (cause === "process-stopped") return "stopped";
  if (cause === "process-gone") return "killed";
  const isStuck = cause === "network-hang" || cause === "gpu-hang";
  return isStuck || !ENDING_CAUSES.includes(cause) ? "lives" : "crashed";
}

interface Entry {
  readonly truth: { -readonly [Key in keyof BoardFault]: BoardFault[Key] };
  readonly spec: FaultSpec;
  isRemoved: boolean;
}

export class FaultBoard {
  readonly #simulation: Simulation;
  #active: Entry[] = [];
  #over: Entry[] = [];
  #nextId = 1;
  #changed = false;
  #orders: Omit<Steering, "faults"> | null = null;
  #iteration = 0;
  #endMs: number | null = null;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    for (const fault of simulation.spec.faults) this.#put(fault, wordsOf(fault));
    this.#changed = false;
  }

  get faults(): readonly BoardFault[] {
    return [...this.#over, ...this.#active].map(({ truth }) => ({ ...truth }));
  }

  /** Faults that act in the iteration that was asked about last, or will. */
  get specs(): readonly FaultSpec[] {
    return this.#active.map(({ spec }) => spec);
  }

  /** Throws UserError where the job cannot have it. */
  add(text: string): BoardFault {
    if (text.length > MOST_TEXT)
      throw new UserError("a fault of so many letters", `${MOST_TEXT} at most`, 2);
    if (this.#active.length >= MOST_ACTIVE)
      throw new UserError(`${MOST_ACTIVE} faults act already`, "take some away first", 2);
    const asked = parseFault(text);
    if (asked.cost > 0 || asked.drawn)
      throw new UserError(
        `--fault ${text}: costs and random ends cannot be computed while the job runs`,
        "give severity= and to=",
        2,
      );
    const next = this.#iteration + 1;
    if (asked.to < next)
      throw new UserError(
        `--fault ${text}: it ends at iteration ${asked.to}, and the next one is ${next}`,
        "leave to= away; it acts until it is taken away",
        2,
      );
    const spec = { ...asked, from: Math.max(asked.from, next) };
    const { spec: job, topology, lanes } = this.#simulation;
    const trial = { ...job, faults: [spec] };
    checkFaults(trial, topology);
    checkLinksAreUsed(trial, lanes, topology);
    return { ...this.#put(spec, text).truth };
  }

  remove(id: number): boolean {
    const entry = this.#active.find(({ truth }) => truth.id === id);
    if (!entry || entry.isRemoved) return false;
    entry.isRemoved = true;
    this.#changed = true;
    return true;
  }

  /** How many there were. */
  clear(): number {
    return this.#active.filter(({ truth }) => this.remove(truth.id)).length;
  }

  /** What is done about the faults, from the next iteration on: other shares, other places, a pause. */
  order(orders: Omit<Steering, "faults">): void {
    this.#orders = { ...this.#orders, ...orders };
  }

  /** Asked before each iteration, `atMs` being when it begins. */
  steer(iteration: number, atMs: number): Steering | null {
    this.#iteration = iteration;
    const isOver = (one: Entry): boolean => one.isRemoved || one.spec.to < iteration;
    for (const one of this.#active.filter(isOver)) {
      if (one.truth.fromIteration !== null) one.truth.toIteration = iteration - 1;
      one.truth.toMs = this.#endMs ?? atMs;
      this.#over.push(one);
    }
    this.#over = this.#over.slice(-MOST_OVER);
    this.#active = this.#active.filter((one) => !isOver(one));
    for (const { truth, spec } of this.#active) {
      if (truth.fromIteration !== null || spec.from > iteration) continue;
      truth.fromIteration = iteration;
      truth.fromMs = atMs;
    }
    const orders = this.#orders;
    this.#orders = null;
    if (!this.#changed) return orders;
    this.#changed = false;
    return { ...orders, faults: this.#active.map(({ spec }) => spec) };
  }

  /** The iteration is known: when it ends on the last rank; Infinity where it never does. */
  computed(iteration: number, endMs: number): void {
    this.#endMs = endMs === Infinity ? null : endMs;
    for (const { truth } of this.#active)
      if (truth.fromIteration === iteration && endMs !== Infinity) truth.firstEndMs = endMs;
  }

  /** By rank: what ended its process in an iteration; a rank that is missing lives. */
  struckIn(iteration: number): Map<number, FaultSpec> {
    const { spec, topology } = this.#simulation;
    const struck = new Map<number, FaultSpec>();
    for (const { spec: fault } of this.#active) {
      if (!isEnding(fault, iteration) || fateOf(fault) === "lives") continue;
      for (const rank of faultRanks(spec, topology, fault)) struck.set(rank, fault);
    }
    return struck;
  }

  #put(spec: FaultSpec, text: string): Entry {
    const { spec: job, topology } = this.#simulation;
    const isNamed = spec.link !== null || spec.switch !== null;
    const truth = {
      id: this.#nextId++,
      fault: text,
      cause: spec.cause,
      ranks: isNamed ? [] : faultRanks(job, topology, spec),
      machine: spec.machine,
      link: spec.link,
      switch: spec.switch,
      severity: isEnding(spec, spec.from) ? null : spec.severity,
      fromIteration: null,
      fromMs: null,
      firstEndMs: null,
      toIteration: null,
      toMs: null,
    };
    const entry: Entry = { truth, spec, isRemoved: false };
    this.#active.push(entry);
    this.#changed = true;
    return entry;
  }
}

/** The words of a fault that came with the job. */
function wordsOf({ cause, ranks, machine, link, switch: named, severity }: FaultSpec): string {
  const parts: string[] = [cause];
  if (ranks.length > 0) parts.push(`rank=${ranks.join(",")}`);
  if (machine !== null) parts.push(`machine=${machine}`);
  if (link !== null) parts.push(`link=${link.join("-")}`);
  if (named !== null) parts.push(`switch=${named}`);
  return [...parts, `severity=${severity}`].join(":");
}
