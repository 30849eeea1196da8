/**
 * Writes incidents down in the order that survives kill -9: first the document under the lease (with every revision that
 * the history has not confirmed), then the history, then alerts.
 */
import type { History } from "../../../history/history.ts";
import type { Incident } from "../../../model/incident.ts";
import { LeaseLost, type Lease } from "../../wire/transport.ts";
import { makeAlerts } from "../alerts/alerts.ts";
import type { Alerts, AlertsConfig, AlertsEnv } from "../alerts/types.ts";

export interface IncidentWriterOptions {
  readonly lease: Lease;
  /** What the last writer left. */
  readonly unsaved: readonly Incident[];
  /** Which alerts were sent (alerts/ledger.ts). */
  readonly sentAlerts: unknown;
  readonly history: History;
  readonly alerts: AlertsConfig;
  readonly alertsEnv: Omit<AlertsEnv, "remember" | "recalled">;
  /** The rest of the document. */
  state(this: void): object;
  /** A record has changed and is safe. */
  changed(this: void, incident: Incident): void;
  /** A write failed; whether it did for lack of room: the record is then kept in memory, and shown all the same. */
  hasNoRoom(this: void, error: unknown): boolean;
  /** Another service took over; called once. */
  lost(this: void): void;
}

const FLUSH_AGAIN_MS = 2000;
/** A broker's election takes some seconds. */
const TRY_AGAIN_MS = [500, 1000, 2000, 4000, 8000];

export class IncidentWriter {
  readonly #options: IncidentWriterOptions;
  readonly #unsaved: Incident[];
  #sentAlerts: unknown;
  #alerts: Alerts;
  /** By receivers of an earlier configuration. */
  readonly #earlier = { sent: 0, failures: 0 };
  #isLost = false;
  #isClosed = false;
  #isFlushing = false;

  constructor(options: IncidentWriterOptions) {
    this.#options = options;
    this.#unsaved = [...options.unsaved];
    this.#sentAlerts = options.sentAlerts;
    this.#alerts = this.#makeAlerts(options.alerts);
    options.lease.onLost(() => this.#lose());
  }

  get alerts(): Pick<Alerts, "notify" | "hushed"> {
    return this.#alerts;
  }

  get alertsSent(): number {
    return this.#earlier.sent + this.#alerts.sent;
  }

  get alertFailures(): number {
    return this.#earlier.failures + this.#alerts.failures;
  }

  /** Other receivers from now on. They get the latest of these incidents, as after a start. */
  async alertThrough(config: AlertsConfig, latest: () => readonly Incident[]): Promise<void> {
    const old = this.#alerts;
    await old.close();
    if (this.#isLost || this.#isClosed || this.#alerts !== old) return;
    this.#earlier.sent += old.sent;
    this.#earlier.failures += old.failures;
    this.#alerts = this.#makeAlerts(config);
    for (const incident of latest()) this.#alerts.notify(incident);
  }

  #makeAlerts(config: AlertsConfig): Alerts {
    return makeAlerts(config, {
      ...this.#options.alertsEnv,
      recalled: this.#sentAlerts,
      remember: (document) => {
        this.#sentAlerts = document;
        return this.write();
      },
    });
  }

  get unsaved(): number {
    return this.#unsaved.length;
  }

  /** Resolves when the record cannot be lost any more; a store that is away for a moment is waited for. */
  async save(incident: Incident): Promise<void> {
    this.#unsaved.push(incident);
    await this.#writeAtLast();
    this.flush();
    this.#alerts.notify(incident);
    this.#options.changed(incident);
  }

  async write(): Promise<void> {
    const { lease, state, alertsEnv } = this.#options;
    if (this.#isLost) throw new LeaseLost(lease.job);
    const rest = { unsaved: this.#unsaved, alerts: this.#sentAlerts };
    try {
      await lease.write({
        schema: 1,
        job: lease.job,
        savedMs: alertsEnv.nowMs(),
        ...state(),
        ...rest,
      });
    } catch (error) {
      if (error instanceof LeaseLost) this.#lose();
      throw error;
    }
  }

  async #writeAtLast(): Promise<void> {
    for (const waitMs of TRY_AGAIN_MS) {
      try {
        await this.write();
        return;
      } catch (error) {
        if (error instanceof LeaseLost) throw error;
        if (this.#options.hasNoRoom(error)) return;
        await new Promise<void>((resolve) => {
          this.#options.alertsEnv.setTimer(waitMs, resolve);
        });
      }
    }
    await this.write();
  }

  /** Goes on by itself; what the history does not take stays in the document, and is tried again. */
  flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    void this.#flushAll().finally(() => {
      this.#isFlushing = false;
      if (this.#unsaved.length > 0 && !this.#isLost)
        this.#options.alertsEnv.setTimer(FLUSH_AGAIN_MS, () => this.flush());
    });
  }

  async close(): Promise<void> {
    await this.write().catch(() => undefined);
    this.#isClosed = true;
    await this.#alerts.close();
    await this.#options.lease.release();
  }

  /** Ends without writing: another service has the lease now. */
  async drop(): Promise<void> {
    this.#isLost = true;
    await this.#alerts.close();
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.lost();
  }

  async #flushAll(): Promise<void> {
    while (!this.#isLost) {
      const [first] = this.#unsaved;
      if (!first) return;
      try {
        await this.#options.history.putIncident(first);
      } catch (error) {
        this.#options.hasNoRoom(error);
        return;
      }
      // The next change writes the document without it: a row that is put twice is one.
      this.#unsaved.shift();
    }
  }
}
