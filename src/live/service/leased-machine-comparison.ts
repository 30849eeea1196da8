/** The schedule of the machine watch, under a lease: of several services one asks Prometheus. */
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
  readonly watch: Omit<MachineComparisonOptions, "save">;
  readonly keeper: Omit<IncidentWriterOptions, "lease" | "unsaved" | "told" | "memory" | "lost">;
  readonly everyMs: number;
}

interface Held {
  readonly watch: MachineComparison;
  readonly keeper: IncidentWriter;
}

export class LeasedMachineComparison {
  readonly #options: LeasedMachineComparisonOptions;
  #held: Held | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: LeasedMachineComparisonOptions) {
    this.#options = options;
  }

  get open(): readonly Incident[] {
    return this.#held?.watch.open ?? [];
  }

  /** See MachineComparison; nothing where another service asks Prometheus. */
  wish(...wish: Parameters<MachineComparison["wish"]>): void {
    this.#held?.watch.wish(...wish);
  }

  start(): void {
    const run = (): void => void this.#turn();
    run();
    this.#timer = setInterval(run, this.#options.everyMs).unref();
  }

  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#held?.keeper.close();
  }

  async #turn(): Promise<void> {
    const { trouble } = this.#options.watch;
    try {
      this.#held ??= await this.#claim();
      await this.#held?.watch.look();
    } catch (error) {
      trouble(`the watch over machines: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #claim(): Promise<Held | null> {
    const { coordinator, keeper: keeping, watch: watching } = this.#options;
    const lease = await coordinator.claim(MACHINES);
    if (!lease) return null;
    const document = recordOf(await coordinator.read(MACHINES));
    const keeper: IncidentWriter = new IncidentWriter({
      ...keeping,
      lease,
      unsaved: incidentsOf(document["unsaved"]),
      told: document["alerts"] ?? null,
      memory: () => watch.memory,
      lost: () => {
        this.#held = null;
        void keeper.drop();
      },
    });
    const known = incidentsOf(document["incidents"]);
    const watch: MachineComparison = new MachineComparison(
      { ...watching, save: (incident) => keeper.save(incident) },
      known,
    );
    keeper.flush();
    for (const incident of known) keeper.alerts.notify(incident);
    return { watch, keeper };
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function incidentsOf(value: unknown): Incident[] {
  const list = Array.isArray(value) ? (value as Partial<Incident>[]) : [];
  return list.filter((one) => typeof one?.id === "string") as Incident[];
}
