/** Several services watch one site: one of them asks Prometheus, and the next one knows what it knew. */
import { afterEach, describe, expect, it } from "vitest";
import { openDuckDbHistory } from "../../../history/duckdb-history.ts";
import type { History } from "../../../history/history.ts";
import { connect } from "../../../ingest/prometheus/prometheus.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Coordinator, Lease } from "../../wire/transport.ts";
import { until } from "../../../../test/support/until.ts";
import { readServeConfig } from "../config/config.ts";
import { embeddedCoordinator } from "../lease/embedded-coordinator.ts";
import { LeasedMachineComparison } from "./leased-machine-comparison.ts";
import { closeServers, prometheusOfTen } from "../../../../test/support/live/prometheus.ts";

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
  closeServers();
});

/** One lease for all, as brokers keep it: a service has it until it gives it back or loses it. */
class OneLease {
  readonly #documents: Coordinator;
  #lose: (() => void) | null = null;
  refused = 0;

  constructor(history: History) {
    this.#documents = embeddedCoordinator(history);
  }

  coordinator(): Coordinator {
    return {
      ...this.#documents,
      claim: async (job) => {
        if (this.#lose !== null) {
          this.refused++;
          return null;
        }
        this.#lose = () => {};
        const lease = (await this.#documents.claim(job))!;
        const onLost: Lease["onLost"] = (listener) => (this.#lose = listener);
        return { ...lease, onLost };
      },
    };
  }

  /** Taken from whoever has it. */
  free(): void {
    const lose = this.#lose;
    this.#lose = null;
    lose?.();
  }
}

async function site(sick = 4) {
  const history = await openDuckDbHistory(":memory:");
  opened.push(() => history.close());
  const url = await prometheusOfTen(() => sick);
  const lease = new OneLease(history);
  const service = () => {
    const changed: Incident[] = [];
    const troubles: string[] = [];
    let asked = 0;
    const held = new LeasedMachineComparison({
      coordinator: lease.coordinator(),
      everyMs: 10,
      comparison: {
        connect: () => {
          asked++;
          return connect({ url, signal: new AbortController().signal });
        },
        match: "",
        via: "query-range",
        site: null,
        rangeS: 900,
        jobs: async () => null,
        pictured: () => {},
        trouble: (line) => troubles.push(line),
      },
      incidents: {
        nowMs: Date.now,
        relapseMs: 600_000,
        actions: {
          propose: async () => [],
          runAutomatic: async () => undefined,
          recover: async (incident) => incident,
        },
      },
      writing: {
        history,
        alerts: readServeConfig(null, {}, { HOME: "/" }).alerts,
        hasNoRoom: () => false,
        alertsEnv: {
          nowMs: Date.now,
          fetch,
          log: () => {},
          setTimer: (afterMs, run) => {
            const timer = setTimeout(run, afterMs).unref();
            return () => clearTimeout(timer);
          },
        },
        changed: (incident) => void changed.push(incident),
      },
    });
    opened.push(() => held.close());
    held.start();
    return { held, changed, troubles, asked: () => asked };
  };
  return { lease, service };
}

const machines = ({ held }: { held: LeasedMachineComparison }): string[] =>
  held.open.flatMap((incident) => [...incident.machines]);

describe("the watch over machines", () => {
  it("is one service's; the others ask nobody, and know of nothing", async () => {
    const { lease, service } = await site();
    const first = service();
    await until(() => machines(first).length > 0, "the sick machine is found");
    expect(machines(first)).toEqual(["node4.cluster"]);
    const second = service();
    await until(() => lease.refused >= 3, "the second has tried some times");
    expect(second.asked()).toBe(0);
    expect(machines(second)).toEqual([]);
    expect([...first.troubles, ...second.troubles]).toEqual([]);
  });

  it("goes over with what is known: the incident stays one, and is told by whoever has it", async () => {
    const { lease, service } = await site();
    const first = service();
    await until(() => first.changed.length > 0, "the sick machine is found");
    const [incident] = first.changed;
    const second = service();
    await first.held.close();
    lease.free();
    expect(machines(first)).toEqual([]);
    await until(() => machines(second).length > 0, "the second has taken over");
    expect(second.held.open.map(({ id }) => id)).toEqual([incident!.id]);
    await until(() => second.asked() > 0, "the second asks Prometheus");
  });
});
