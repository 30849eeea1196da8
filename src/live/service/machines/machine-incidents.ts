/**
 * Incidents of single machines: unlike its peers in two calls in a row is an incident, like them again in two is the end
 * of it, unlike again soon after that a relapse. Proposed actions and what came of them are kept with the record.
 */
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { NO_ONE_JOB } from "../../../model/incident.ts";
import { shortName } from "../../../model/machine-names.ts";
import type { FaultyMachine } from "../../../model/machine-report.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { PlacedJob } from "../../../pipeline/machines-by-job.ts";
import type { Actions } from "../actions/actions.ts";
import {
  confirmed,
  isOpen,
  relapsed,
  resolved,
  suspected,
  withActions,
} from "../incident/incident-lifecycle.ts";

const CALLS_TO_CONFIRM = 2;
const CALLS_TO_RESOLVE = 2;
/** Resolved ones that are kept for a relapse, and for actions that are still running. */
const MOST_RECENT = 64;

export interface MachineIncidentsOptions {
  nowMs(this: void): number;
  readonly relapseMs: number;
  save(this: void, incident: Incident): Promise<void>;
  /** As sure as verdicts of the kind were right at this site. */
  calibrated?(this: void, verdict: Verdict): Verdict;
  /**
   * Machines that an incident of a job accuses, or accused until one window of the metrics ago: metrics lag, and what
   * they show belongs to that incident.
   */
  accused?(this: void): ReadonlySet<string>;
  readonly actions: Pick<Actions, "propose" | "runAutomatic" | "recover">;
}

/** A machine that one call found to be unlike its peers. */
export interface SeenMachine {
  readonly job: PlacedJob | null;
  readonly faulty: FaultyMachine;
  verdict(this: void): Verdict;
}

/** Where a machine is compared now; null where it is not. */
export type ComparedIn = (machine: string) => { readonly job: string | null } | null;

interface Watched {
  readonly job: string | null;
  readonly machine: string;
  incident: Incident;
  /** Calls that saw it since it began, or began again. */
  calls: number;
  missed: number;
}

export interface SavedMachineIncidents {
  readonly incidents: readonly Incident[];
  readonly recent: readonly Incident[];
}

export class MachineIncidents {
  readonly #options: MachineIncidentsOptions;
  readonly #open = new Map<string, Watched>();
  /** Resolved, the oldest first, by the same key. */
  readonly #recent = new Map<string, Watched>();
  /** Relapses that one call has seen. */
  readonly #again = new Map<string, Watched>();

  constructor(options: MachineIncidentsOptions, known: SavedMachineIncidents) {
    this.#options = options;
    for (const incident of [...known.recent, ...known.incidents]) {
      const job = incident.job === NO_ONE_JOB ? null : incident.job;
      const machine = incident.machines[0] ?? "";
      const calls = incident.state === "suspected" ? 1 : CALLS_TO_CONFIRM;
      const watched = { job, machine, incident, calls, missed: 0 };
      (isOpen(incident) ? this.#open : this.#recent).set(keyOf(job, machine), watched);
    }
  }

  get open(): readonly Incident[] {
    return [...this.#open.values()].map(({ incident }) => incident);
  }

  /** Also those resolved of late. */
  get shown(): readonly Incident[] {
    return [...this.open, ...[...this.#recent.values()].map(({ incident }) => incident)];
  }

  get state(): SavedMachineIncidents {
    return {
      incidents: this.open,
      recent: [...this.#recent.values()].map(({ incident }) => incident),
    };
  }

  /** Takes what one call saw; gives the incidents whose picture is worth drawing anew. */
  async observe(
    seen: readonly SeenMachine[],
    comparedIn: ComparedIn,
  ): Promise<readonly { readonly id: string; readonly machine: string }[]> {
    const drawn: { id: string; machine: string }[] = [];
    const keys = new Set<string>();
    const accused = new Set([...(this.#options.accused?.() ?? [])].map(shortName));
    for (const one of seen) {
      const { machine } = one.faulty;
      const key = keyOf(one.job?.job ?? null, machine);
      if (accused.has(shortName(machine)) && !this.#open.has(key)) continue;
      keys.add(key);
      const incident = await this.#see(one);
      if (incident) drawn.push({ id: incident.id, machine });
    }
    for (const key of this.#again.keys()) if (!keys.has(key)) this.#again.delete(key);
    for (const [key, watched] of this.#open)
      if (!keys.has(key) && ++watched.missed >= CALLS_TO_RESOLVE)
        await this.#resolve(key, watched, comparedIn);
    return drawn;
  }

  /** Puts an action into the latest record; null where there is no such incident. */
  async putAction(id: string, action: IncidentAction): Promise<Incident | null> {
    const watched = this.#find(id);
    if (!watched) return null;
    const others = watched.incident.actions.filter((one) => one.id !== action.id);
    return await this.#putActions(watched, [...others, action]);
  }

  /** What was left undone when the last service ended. */
  async recover(): Promise<void> {
    for (const { incident } of [...this.#open.values(), ...this.#recent.values()]) {
      const recovered = await this.#options.actions.recover(incident);
      if (isOpen(recovered)) void this.#options.actions.runAutomatic(recovered);
    }
  }

  #verdict(one: SeenMachine): Verdict {
    const verdict = one.verdict();
    return this.#options.calibrated?.(verdict) ?? verdict;
  }

  /** The incident where it has changed or lasts. */
  async #see(one: SeenMachine): Promise<Incident | null> {
    const { nowMs, save } = this.#options;
    const job = one.job?.job ?? null;
    const { machine } = one.faulty;
    const key = keyOf(job, machine);
    const watched = this.#open.get(key);
    if (!watched) {
      const old = this.#recent.get(key);
      const sinceMs = nowMs() - (old?.incident.resolvedMs ?? -Infinity);
      if (old && sinceMs < this.#options.relapseMs) return await this.#comeBack(key, old, one);
      const incident = opened(one, nowMs());
      this.#open.set(key, { job, machine, incident, calls: 1, missed: 0 });
      await save(incident);
      return incident;
    }
    watched.missed = 0;
    watched.calls++;
    if (watched.calls !== CALLS_TO_CONFIRM)
      return watched.calls % DRAWN_EVERY === 0 ? watched.incident : null;
    watched.incident = named(confirmed(watched.incident, this.#verdict(one), nowMs()), machine);
    await this.#confirm(watched);
    return watched.incident;
  }

  async #comeBack(key: string, old: Watched, one: SeenMachine): Promise<Incident | null> {
    const again = this.#again.get(key) ?? { ...old, calls: 0, missed: 0 };
    again.calls++;
    this.#again.set(key, again);
    if (again.calls < CALLS_TO_CONFIRM) return null;
    this.#again.delete(key);
    this.#recent.delete(key);
    const incident = relapsed(old.incident, this.#verdict(one), null, this.#options.nowMs());
    const watched = { ...again, incident: named(incident, old.machine) };
    this.#open.set(key, watched);
    await this.#confirm(watched);
    return watched.incident;
  }

  async #confirm(watched: Watched): Promise<void> {
    const { actions, save } = this.#options;
    await save(watched.incident);
    const proposed = await actions.propose(watched.incident);
    if (proposed.length === 0 || !isOpen(watched.incident)) return;
    const latest = await this.#putActions(watched, proposed);
    // Not waited for: a command may take minutes.
    void actions.runAutomatic(latest);
  }

  async #resolve(key: string, watched: Watched, comparedIn: ComparedIn): Promise<void> {
    const { machine, job } = watched;
    const now = comparedIn(machine);
    const isPeer = now !== null && now.job === job;
    const why = isPeer
      ? `${machine} is like its peers again`
      : `${machine} is no longer compared ${job === null ? "with those of no job" : `in job ${job}`}`;
    this.#open.delete(key);
    this.#recent.delete(key);
    this.#recent.set(key, watched);
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > MOST_RECENT) this.#recent.delete(oldest!);
    watched.incident = resolved(watched.incident, this.#options.nowMs(), `over: ${why}`);
    await this.#options.save(watched.incident);
  }

  async #putActions(watched: Watched, actions: readonly IncidentAction[]): Promise<Incident> {
    watched.incident = withActions(watched.incident, actions, this.#options.nowMs());
    const { incident } = watched;
    await this.#options.save(incident);
    return incident;
  }

  #find(id: string): Watched | undefined {
    return [...this.#open.values(), ...this.#recent.values()].find((one) => one.incident.id === id);
  }
}

/** An incident that lasts is drawn again so often. */
const DRAWN_EVERY = 5;

function keyOf(job: string | null, machine: string): string {
  return `${job ?? NO_ONE_JOB}\n${machine}`;
}

function opened({ job, faulty }: SeenMachine, nowMs: number): Incident {
  const { machine, why, sinceS } = faulty;
  const peers = job === null ? "its peers" : `its peers in job ${job.job}`;
  // Two machines of a job may begin in the same second: the id is made of the machine's name instead of the run's.
  const record = suspected({
    job: job?.job ?? NO_ONE_JOB,
    run: machine.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64),
    kind: "faulty-machine",
    summary: `${machine} is unlike ${peers}: ${why}`,
    onsetMs: 1000 * sinceS,
    nowMs,
    fromIteration: null,
  });
  return { ...record, run: job?.run ?? record.run, machines: [machine] };
}

/** A verdict on a link names no machine of its own; the record is found by its machine all the same. */
function named(incident: Incident, machine: string): Incident {
  const others = incident.machines.filter((name) => name !== machine);
  return { ...incident, machines: [machine, ...others] };
}
