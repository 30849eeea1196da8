/**
 * Machines that go bad, from the site's Prometheus, on a schedule (Minder §5): a machine that is unlike its peers in two
 * calls in a row is an incident, one that is like them again in two is over. One service does this, under a lease of its
 * own.
 */
import { errorText } from "../../base/errors.ts";
import { WatchedFleet, machineVerdict, suspectPictures } from "../../pipeline/machines.ts";
import { type Server, type Way, nowS } from "../../ingest/prometheus/prometheus.ts";
import type { Suspected } from "../../verdict/story/plain-metrics.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { MachineReport } from "../../model/machine-report.ts";
import { confirmed, isOpen, resolved, suspected } from "./incident-lifecycle.ts";

/** The lease's name; no job is called that. */
export const MACHINES = "machines-of-the-site";
const CALLS_TO_CONFIRM = 2;
const CALLS_TO_RESOLVE = 2;
/** Machines of a job's incident are drawn when it is known and at the next calls, which see how it went on. */
const CALLS_DRAWN = 4;
const MOST_REQUESTS = 64;
/** An incident of a machine that lasts is drawn again so often. */
const DRAWN_EVERY = 5;

export interface MachineComparisonOptions {
  /** Asked again until it is there. */
  connect(this: void): Promise<Server>;
  readonly match: string;
  readonly via: "auto" | Way;
  readonly rangeS: number;
  nowMs(this: void): number;
  save(this: void, incident: Incident): Promise<void>;
  /** Ranks of running jobs on a machine. */
  ranksOn(this: void, machine: string): readonly Rank[];
  /** What to draw an incident's machines with, beside their peers; called again as more is known. */
  pictured(this: void, id: string, metrics: readonly MachinePicture[]): void;
  trouble(this: void, line: string): void;
}

interface PictureRequest {
  readonly machines: readonly string[];
  readonly sinceS: number;
  readonly suspects: readonly Suspected[];
  calls: number;
}

interface Seen {
  incident: Incident;
  calls: number;
  missed: number;
}

const ENV = { signal: new AbortController().signal, progress: () => undefined };

export class MachineComparison {
  readonly #options: MachineComparisonOptions;
  #fleet: { readonly server: Server; readonly watched: WatchedFleet } | null = null;
  readonly #seen = new Map<string, Seen>();
  /** What the last call saw. */
  #last: { readonly fleet: Fleet; readonly report: MachineReport } | null = null;
  /** By incident of a job. */
  readonly #requests = new Map<string, PictureRequest>();
  #isBusy = false;

  constructor(options: MachineComparisonOptions, known: readonly Incident[]) {
    this.#options = options;
    for (const incident of known)
      if (isOpen(incident))
        this.#seen.set(incident.machines[0] ?? "", {
          incident,
          calls: CALLS_TO_CONFIRM,
          missed: 0,
        });
  }

  get open(): readonly Incident[] {
    return [...this.#seen.values()].map(({ incident }) => incident);
  }

  get state(): object {
    return { incidents: this.open };
  }

  /** An incident of a job accuses these machines: how are they? Answered now with what is known, and after the next calls. */
  request(
    id: string,
    machines: readonly string[],
    onsetMs: number,
    suspects: readonly Suspected[] = [],
  ): void {
    const [first] = this.#requests.keys();
    if (this.#requests.size >= MOST_REQUESTS && !this.#requests.has(id))
      this.#requests.delete(first!);
    this.#requests.set(id, { machines, sinceS: onsetMs / 1000, suspects, calls: 0 });
    this.#draw(id);
  }

  #draw(id: string): void {
    const request = this.#requests.get(id);
    if (!request || !this.#last) return;
    if (++request.calls >= CALLS_DRAWN) this.#requests.delete(id);
    const { fleet, report } = this.#last;
    const metrics = suspectPictures(
      fleet,
      report,
      request.machines,
      request.sinceS,
      request.suspects,
    );
    if (metrics.length > 0) this.#options.pictured(id, metrics);
  }

  /** One call; the next is skipped while it lasts. Never rejects. */
  async look(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      await this.#look();
    } catch (error) {
      this.#options.trouble(`Prometheus: ${errorText(error)}`);
    } finally {
      this.#isBusy = false;
    }
  }

  async #look(): Promise<void> {
    const { nowMs, save, ranksOn, connect, match, via, rangeS } = this.#options;
    if (!this.#fleet) {
      const server = await connect();
      this.#fleet = {
        server,
        watched: new WatchedFleet(server, { match, via, job: null }, rangeS),
      };
    }
    const fleet = await this.#fleet.watched.at(nowS(this.#fleet.server), ENV);
    const { report, pictures, verdictOf } = await machineVerdict(fleet, ranksOn);
    this.#last = { fleet, report };
    for (const id of this.#requests.keys()) this.#draw(id);
    const draw = ({ id }: Incident, machine: string): void =>
      this.#options.pictured(
        id,
        pictures.filter((picture) => picture.machine === machine),
      );
    const faulty = new Map(
      report.faulty.filter(({ untilS }) => untilS === null).map((one) => [one.machine, one]),
    );
    for (const [machine, one] of faulty) {
      const known = this.#seen.get(machine);
      if (!known) {
        const record = suspected({
          job: MACHINES,
          run: machine.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64),
          kind: "faulty-machine",
          summary: `${machine} is unlike its peers: ${one.why}`,
          onsetMs: 1000 * one.sinceS,
          nowMs: nowMs(),
          fromIteration: null,
        });
        const incident = { ...record, machines: [machine] };
        this.#seen.set(machine, { incident, calls: 1, missed: 0 });
        draw(incident, machine);
        await save(incident);
      } else {
        known.missed = 0;
        known.calls++;
        if (known.calls === CALLS_TO_CONFIRM || known.calls % DRAWN_EVERY === 0)
          draw(known.incident, machine);
        if (known.calls !== CALLS_TO_CONFIRM) continue;
        known.incident = confirmed(known.incident, verdictOf(machine), nowMs());
        await save(known.incident);
      }
    }
    for (const [machine, known] of this.#seen) {
      if (faulty.has(machine) || ++known.missed < CALLS_TO_RESOLVE) continue;
      this.#seen.delete(machine);
      await save(resolved(known.incident, nowMs(), `over: ${machine} is like its peers again`));
    }
  }
}
