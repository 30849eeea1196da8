/** The schedule of the machine comparison, under a lease: of several services one asks Prometheus. */
import { fieldsOf } from "../../../base/json.ts";
import { errorText } from "../../../base/errors.ts";
import { type Incident, type IncidentAction, NO_ONE_JOB } from "../../../model/incident.ts";
import type { Coordinator } from "../../wire/transport.ts";
import { MachineComparison, type MachineComparisonOptions } from "./machine-comparison.ts";
import { MachineIncidents, type MachineIncidentsOptions } from "./machine-incidents.ts";
import { IncidentWriter, type IncidentWriterOptions } from "../incident/incident-writer.ts";

export interface LeasedMachineComparisonOptions {
  readonly coordinator: Coordinator;
  readonly comparison: MachineComparisonOptions;
  readonly incidents: Omit<MachineIncidentsOptions, "save">;
  readonly writing: Omit<
    IncidentWriterOptions,
    "lease" | "unsaved" | "sentAlerts" | "state" | "lost"
  >;
  readonly everyMs: number;
}

interface Leased {
  readonly comparison: MachineComparison;
  readonly incidents: MachineIncidents;
  readonly writer: IncidentWriter;
}

export class LeasedMachineComparison {
  readonly #options: LeasedMachineComparisonOptions;
  #leased: Leased | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: LeasedMachineComparisonOptions) {
    this.#options = options;
  }

  get open(): readonly Incident[] {
    return this.#leased?.incidents.open ?? [];
  }

  /** Also those resolved of late. */
  get shown(): readonly Incident[] {
    return this.#leased?.incidents.shown ?? [];
  }

  get records(): readonly Incident[] {
    return this.shown;
  }

  get writer(): IncidentWriter | null {
    return this.#leased?.writer ?? null;
  }

  /** null where it has no such incident. */
  async putAction(id: string, action: IncidentAction): Promise<Incident | null> {
    return (await this.#leased?.incidents.putAction(id, action)) ?? null;
  }

  /** See MachineComparison; nothing where another service asks Prometheus. */
  request(...request: Parameters<MachineComparison["request"]>): void {
    this.#leased?.comparison.request(...request);
  }

  start(): void {
    const run = (): void => void this.#turn();
    run();
    this.#timer = setInterval(run, this.#options.everyMs).unref();
  }

  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#leased?.writer.close();
  }

  async #turn(): Promise<void> {
    const { trouble } = this.#options.comparison;
    try {
      if (!this.#leased) {
        this.#leased = await this.#claim();
        await this.#leased?.incidents.recover();
      }
      await this.#leased?.comparison.look();
    } catch (error) {
      trouble(`the comparison of machines: ${errorText(error)}`);
    }
  }

  async #claim(): Promise<Leased | null> {
    const { coordinator, writing, comparison: comparing } = this.#options;
    const lease = await coordinator.claim(NO_ONE_JOB);
    if (!lease) return null;
    const document = fieldsOf(await coordinator.read(NO_ONE_JOB)) ?? {};
    const writer: IncidentWriter = new IncidentWriter({
      ...writing,
      lease,
      unsaved: incidentsOf(document["unsaved"]),
      sentAlerts: document["alerts"] ?? null,
      state: () => incidents.state,
      lost: () => {
        this.#leased = null;
        void writer.drop();
      },
    });
    const known = {
      incidents: incidentsOf(document["incidents"]),
      recent: incidentsOf(document["recent"]),
    };
    const incidents: MachineIncidents = new MachineIncidents(
      { ...this.#options.incidents, save: (incident) => writer.save(incident) },
      known,
    );
    writer.flush();
    for (const incident of incidents.shown) writer.alerts.notify(incident);
    return { comparison: new MachineComparison(comparing, incidents), incidents, writer };
  }
}

function incidentsOf(value: unknown): Incident[] {
  const list = Array.isArray(value) ? (value as Partial<Incident>[]) : [];
  return list.filter((one) => typeof one?.id === "string") as Incident[];
}
