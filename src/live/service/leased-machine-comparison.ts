/** The schedule of the machine comparison, under a lease: of several services one asks Prometheus. */
import { errorText } from "../../base/errors.ts";
import type { Incident } from "../../model/incident.ts";
import type { Coordinator } from "../wire/transport.ts";
import {
  MachineComparison,
  MACHINES,
  type MachineComparisonOptions,
} from "./machine-comparison.ts";
import { IncidentWriter, type IncidentWriterOptions } from "./incident-writer.ts";

export interface LeasedMachineComparisonOptions {
  readonly coordinator: Coordinator;
  readonly comparison: Omit<MachineComparisonOptions, "save">;
  readonly writing: Omit<
    IncidentWriterOptions,
    "lease" | "unsaved" | "sentAlerts" | "state" | "lost"
  >;
  readonly everyMs: number;
}

interface Leased {
  readonly comparison: MachineComparison;
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
    return this.#leased?.comparison.open ?? [];
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
      this.#leased ??= await this.#claim();
      await this.#leased?.comparison.look();
    } catch (error) {
      trouble(`the comparison of machines: ${errorText(error)}`);
    }
  }

  async #claim(): Promise<Leased | null> {
    const { coordinator, writing, comparison: comparing } = this.#options;
    const lease = await coordinator.claim(MACHINES);
    if (!lease) return null;
    const document = recordOf(await coordinator.read(MACHINES));
    const writer: IncidentWriter = new IncidentWriter({
      ...writing,
      lease,
      unsaved: incidentsOf(document["unsaved"]),
      sentAlerts: document["alerts"] ?? null,
      state: () => comparison.state,
      lost: () => {
        this.#leased = null;
        void writer.drop();
      },
    });
    const known = incidentsOf(document["incidents"]);
    const comparison: MachineComparison = new MachineComparison(
      { ...comparing, save: (incident) => writer.save(incident) },
      known,
    );
    writer.flush();
    for (const incident of known) writer.alerts.notify(incident);
    return { comparison, writer };
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function incidentsOf(value: unknown): Incident[] {
  const list = Array.isArray(value) ? (value as Partial<Incident>[]) : [];
  return list.filter((one) => typeof one?.id === "string") as Incident[];
}
