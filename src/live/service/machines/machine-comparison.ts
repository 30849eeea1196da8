/**
 * Machines that go bad, from the site's Prometheus, on a schedule (Minder §5): machines of one job are compared with each
 * other, those of no one job by hard counters alone. One service does this, under a lease of its own.
 */
import { errorText } from "../../../base/errors.ts";
import { WatchedFleet, machineVerdict, suspectPictures } from "../../../pipeline/machines.ts";
import {
  fleetByJob,
  hardCountersOf,
  isHardCounter,
  type PlacedJob,
} from "../../../pipeline/machines-by-job.ts";
import { type Server, type Way, nowS } from "../../../ingest/prometheus/prometheus.ts";
import type { Suspected } from "../../../verdict/story/plain-metrics.ts";
import type { Fleet } from "../../../model/fleet.ts";
import type { SiteMetrics } from "../../../model/machine-labels.ts";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import type { FaultyMachine, MachineReport } from "../../../model/machine-report.ts";
import { shortName } from "../../../model/machine-names.ts";
import type { MachineIncidents, SeenMachine } from "./machine-incidents.ts";

/** Machines of a job's incident are drawn when it is known and at the next calls, which see how it went on. */
const CALLS_DRAWN = 4;
const MOST_REQUESTS = 64;
/** Agents report their jobs within seconds of a start: the first call without any says nothing. */
const CALLS_WITHOUT_JOBS = 2;

export interface MachineComparisonOptions {
  /** Asked again until it is there. */
  connect(this: void): Promise<Server>;
  readonly match: string;
  readonly via: "auto" | Way;
  readonly rangeS: number;
  /** What the site's labels taught of its metrics. */
  readonly site: SiteMetrics | null;
  /** The jobs that run on the site; null where no agent has ever reported one: then all machines count as one job's. */
  jobs(this: void): Promise<readonly PlacedJob[] | null>;
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

/** Machines that were compared with each other. */
interface Compared {
  readonly job: PlacedJob | null;
  readonly fleet: Fleet;
  readonly report: MachineReport;
  readonly pictures: readonly MachinePicture[];
  readonly seen: readonly SeenMachine[];
}

const ENV = { signal: new AbortController().signal, progress: () => undefined };

export class MachineComparison {
  readonly #options: MachineComparisonOptions;
  readonly #incidents: Pick<MachineIncidents, "observe">;
  #fleet: { readonly server: Server; readonly watched: WatchedFleet } | null = null;
  /** What the last call saw. */
  #last: readonly Compared[] = [];
  #callsWithoutJobs = 0;
  /** By incident of a job. */
  readonly #requests = new Map<string, PictureRequest>();
  #isBusy = false;

  constructor(options: MachineComparisonOptions, incidents: Pick<MachineIncidents, "observe">) {
    this.#options = options;
    this.#incidents = incidents;
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
    if (!request || this.#last.length === 0) return;
    if (++request.calls >= CALLS_DRAWN) this.#requests.delete(id);
    const { machines, sinceS, suspects } = request;
    const metrics = this.#last.flatMap(({ fleet, report }) =>
      suspectPictures(fleet, report, machines, sinceS, suspects),
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
    const { connect, match, via, rangeS, pictured } = this.#options;
    if (!this.#fleet) {
      const server = await connect();
      this.#fleet = {
        server,
        watched: new WatchedFleet(server, { match, via, job: null }, rangeS),
      };
    }
    const { site } = this.#options;
    const jobs = await this.#options.jobs();
    this.#callsWithoutJobs = jobs === null ? this.#callsWithoutJobs + 1 : 0;
    const fleet = await this.#fleet.watched.at(nowS(this.#fleet.server), ENV);
    this.#last =
      jobs === null
        ? [await compared(null, fleet, site)]
        : await Promise.all(
            fleetByJob(fleet, jobs).map((part) =>
              part.job === null
                ? comparedByCounters(part.fleet)
                : compared(part.job, part.fleet, site),
            ),
          );
    for (const id of this.#requests.keys()) this.#draw(id);
    if (jobs === null && this.#callsWithoutJobs < CALLS_WITHOUT_JOBS) return;
    const inPart = new Map(
      this.#last.flatMap((part) => part.fleet.machines.map((name) => [name, part] as const)),
    );
    const drawn = await this.#incidents.observe(
      this.#last.flatMap(({ seen }) => seen),
      (machine) => {
        const part = inPart.get(machine);
        return part ? { job: part.job?.job ?? null } : null;
      },
    );
    for (const { id, machine } of drawn)
      pictured(id, inPart.get(machine)?.pictures.filter((one) => one.machine === machine) ?? []);
  }
}

async function compared(
  job: PlacedJob | null,
  fleet: Fleet,
  site: SiteMetrics | null,
): Promise<Compared> {
  const ranks = new Map(
    [...(job?.machines ?? [])].map(([name, one]) => [shortName(name), one.ranks]),
  );
  const ranksOn = (machine: string) => ranks.get(shortName(machine)) ?? [];
  const { report, pictures, verdictOf } = await machineVerdict(fleet, ranksOn, site);
  const seen = report.faulty
    .filter(({ untilS }) => untilS === null)
    .map((faulty) => ({ job, faulty, verdict: () => verdictOf(faulty.machine) }));
  return { job, fleet, report, pictures, seen };
}

/** Nobody knows what these machines should be doing. */
async function comparedByCounters(fleet: Fleet): Promise<Compared> {
  const isHard = ({ deviations }: FaultyMachine): boolean =>
    deviations.some(({ metric }) => isHardCounter(metric));
  const found = await compared(null, hardCountersOf(fleet), null);
  const report = { ...found.report, faulty: found.report.faulty.filter(isHard) };
  return { ...found, fleet, report, seen: found.seen.filter(({ faulty }) => isHard(faulty)) };
}
