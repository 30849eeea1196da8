/** A whole live system without sockets and without waiting: a simulated fleet, its nodes, a service, a clock that is set. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDuckDbHistory } from "../../src/history/duckdb-history.ts";
import type { History } from "../../src/history/history.ts";
import type { Node } from "../../src/live/agent/node.ts";
import { SimulatedFleet } from "../../eval/live/fleet/simulated-fleet.ts";
import { simulatedNode } from "../../eval/live/fleet/simulated-node.ts";
import { embeddedCoordinator } from "../../src/live/service/lease/embedded-coordinator.ts";
import { Service, type ServiceOptions } from "../../src/live/service/service.ts";
import { serviceView } from "../../src/live/service/service-view.ts";
import { ASKS, type AgentHello, type Report } from "../../src/live/wire/messages.ts";
import type { AgentBus } from "../../src/live/wire/transport.ts";
import type { Incident } from "../../src/model/incident.ts";
import { SLOT_MS } from "../../src/model/rank-shares.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { KEEP_ALL } from "./keep-all.ts";

export interface Rehearsal {
  readonly fleet: SimulatedFleet;
  readonly history: History;
  /** The service as it is now: `restart` makes another. */
  service: Service;
  /** Every record that was told, in order. */
  readonly told: Incident[];
  nowMs(): number;
  /** Lets time pass, half a second at a time; ends early when `until` says so. */
  run(seconds: number, until?: () => boolean): Promise<boolean>;
  /** kill -9 of the service, and another on the same history. */
  restart(): Promise<void>;
  hello(machine: number): AgentHello;
  /** Machines whose agents are connected and report nothing, nor answer. */
  readonly silent: Set<number>;
  /** By how much reports of machines are late, milliseconds. */
  readonly late: Map<number, number>;
  /** By how much clocks of machines are off, milliseconds. */
  readonly clocks: Map<number, number>;
  /** CPU milliseconds that the simulated machines took so far: the rest of the process is the service. */
  readonly simulated: { cpuMs: number };
}

export const START_MS = 1_800_000_000_000;

export async function rehearse(
  spec: Partial<ClusterSpec>,
  options: Partial<ServiceOptions> = {},
  /** What its agents say that they can be asked; null: they are older than that word. */
  asks: readonly string[] | null = ASKS,
  { everyMs = 1000, mostMicroBatches }: { everyMs?: number; mostMicroBatches?: number } = {},
): Promise<Rehearsal> {
  let nowMs = START_MS;
  const cluster = completeSpec({
    microBatches: 4,
    layersPerStage: 2,
    iterations: Number.MAX_SAFE_INTEGER,
    ...spec,
  });
  const fleet = new SimulatedFleet({
    spec: cluster,
    job: "sim",
    run: "run-1",
    everyMs,
    startMs: nowMs,
    mostMicroBatches,
  });
  const now = (): number => nowMs;
  const nodes: Node[] = Array.from({ length: fleet.machines }, (_, machine) =>
    simulatedNode({ fleet, machine, now }),
  );
  const history = await openDuckDbHistory(":memory:");
  const told: Incident[] = [];
  const hello = (machine: number): AgentHello => ({
    protocol: 1,
    agent: `agent${machine}`,
    machine: `node${String(machine).padStart(3, "0")}`,
    boot: "boot",
    version: "0",
    ...(asks ? { asks } : {}),
  });
  const silent = new Set<number>();
  const clocks = new Map<number, number>();
  const late = new Map<number, number>();
  const simulated = { cpuMs: 0 };
  const timed = <T>(work: () => T): T => {
    const began = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(began);
    simulated.cpuMs += (user + system) / 1000;
    return result;
  };
  const under: { readonly machine: number; readonly report: Report; readonly dueMs: number }[] = [];
  const bus: AgentBus = {
    traffic: { reports: 0, reportBytes: 0, replyBytes: 0, refused: 0 },
    agents: [],
    follow: () => Promise.resolve(),
    unfollow: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ask: (agent, request) => {
      const machine = Number(agent.slice("agent".length));
      if (silent.has(machine)) return Promise.reject(new Error("it does not answer"));
      return timed(() => nodes[machine]!.answer(request));
    },
  };
  const folder = mkdtempSync(join(tmpdir(), "faultline-live-test-"));
  const make = async (): Promise<Service> => {
    const service = new Service({
      learnsLogs: false,
      serviceId: "",
      history,
      coordinator: embeddedCoordinator(history),
      folder,
      alerts: { alertmanager: [], webhooks: [], slack: [] },
      actions: { dryRun: true, approval: "required", hooks: [] },
      hangMs: 30_000,
      pauseMs: 900_000,
      thresholds: new Map(),
      relapseMs: 30 * 60_000,
      validation: { mostRanks: 256, everyMs: 0, limitMs: 10_000 },
      silentMs: 60_000,
      retention: KEEP_ALL,
      jobFiles: new Map(),
      fabric: [],
      machines: null,
      nowMs: now,
      newId: () => String(nowMs),
      fetch: () => Promise.reject(new Error("no network here")),
      environment: {},
      log: () => undefined,
      ...options,
    });
    service.bus = bus;
    service.publisher.listen((event) => {
      if (event.type === "incident") told.push(event.incident);
    });
    for (const job of await service.options.coordinator.list()) service.handlers.announced(job);
    for (const [machine, node] of nodes.entries()) {
      service.handlers.connected(hello(machine));
      for (const report of node.introduce()) await service.handlers.report(hello(machine), report);
    }
    return service;
  };
  const rehearsal: Rehearsal = {
    fleet,
    history,
    service: await make(),
    told,
    nowMs: now,
    hello,
    silent,
    clocks,
    simulated,
    late,
    async run(seconds, until = () => false) {
      for (let half = 0; half < 2 * seconds; half++) {
        nowMs += 500;
        for (const [machine, node] of nodes.entries())
          for (const report of timed(() => node.tick(nowMs)))
            if (!silent.has(machine))
              under.push({
                machine,
                report: byClock(report, clocks.get(machine) ?? 0),
                dueMs: nowMs + (late.get(machine) ?? 0),
              });
        const waiting = under.splice(0);
        under.push(...waiting.filter(({ dueMs }) => dueMs > nowMs));
        for (const { machine, report, dueMs } of waiting)
          if (dueMs <= nowMs) await rehearsal.service.handlers.report(hello(machine), report);
        // Answers that came with this half second.
        await new Promise((resolve) => setImmediate(resolve));
        rehearsal.service.tick();
        for (const leased of rehearsal.service.jobs.values()) await leased.idle();
        if (until()) return true;
      }
      return false;
    },
    async restart() {
      // Nothing is closed: what is not in the history by now is lost.
      rehearsal.service = await make();
    },
  };
  return rehearsal;
}

function byClock(report: Report, offMs: number): Report {
  switch (report.kind) {
    case "points":
      return { ...report, endMs: report.endMs.map((ms) => ms + offMs) };
    case "shares":
      return { ...report, firstSlot: report.firstSlot + Math.round(offMs / SLOT_MS) };
    case "beat":
      return { ...report, nowMs: report.nowMs + offMs };
    case "event":
      return { ...report, atMs: report.atMs + offMs };
    case "job":
      return { ...report, startedMs: report.startedMs + offMs };
  }
}

export function viewOf({ service }: Rehearsal): ReturnType<typeof serviceView> {
  return serviceView(service, START_MS);
}
