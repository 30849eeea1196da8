/**
 * A whole live system on a clock that is set: a simulated job that writes real rings, or a recorded one that is played again, the
 * agents' own code in front of them, the wire's frames, and a service. Only the sockets and the waiting are left out.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDuckDbHistory } from "../../../src/history/duckdb-history.ts";
import type { History } from "../../../src/history/history.ts";
import type { Node } from "../../../src/live/agent/node.ts";
import { thisMachine, type Machine } from "../../../src/live/agent/process-state.ts";
import { ringNode } from "../../../src/live/agent/ring-node.ts";
import { SlowStorage } from "../../../src/live/agent/evidence/slow-storage.ts";
import { SIMULATED_NICS } from "../../../src/live/fleet/simulated-nics.ts";
import { LiveRun } from "../../../src/live/fleet/live-run.ts";
import { embeddedCoordinator } from "../../../src/live/service/lease/embedded-coordinator.ts";
import { Service, type ServiceOptions } from "../../../src/live/service/service.ts";
import { decodeFrame, encodeReport } from "../../../src/live/wire/codec.ts";
import { ASKS, PROTOCOL, type AgentHello, type Report } from "../../../src/live/wire/messages.ts";
import type { Incident } from "../../../src/model/incident.ts";
import { completeSpec, type ClusterSpec } from "../../../src/simulate/cluster/spec.ts";
import { KEEP_ALL } from "../keep-all.ts";
import type { RecordedRings } from "./recorded-rings.ts";

/** Agents look at their rings about once a second; of long iterations in long rehearsals less often will do. */
const TICK_MS = 1000;

/** What writes the rings. */
export interface PlayedRings {
  readonly machines: readonly { readonly machine: string; readonly folder: string }[];
  /** Whether there is somebody to ask for stacks and dumps. */
  readonly hasProcesses?: boolean;
  /** Brings them up to date. */
  step(nowNs: number): void;
  close(): Promise<void>;
}

export interface RingRehearsal<Played = LiveRun> {
  readonly job: Played;
  /** Every record that was told, in order. */
  readonly told: readonly Incident[];
  readonly history: History;
  nowMs(): number;
  /** Lets time pass; ends early when `until` says so. */
  run(seconds: number, until?: () => boolean): Promise<void>;
  close(): Promise<void>;
}

export interface RingRehearsalOptions {
  readonly spec: Partial<ClusterSpec>;
  readonly everyMs: number;
  readonly tickMs?: number;
  readonly job?: string;
  readonly service?: Partial<ServiceOptions>;
  /** Of an earlier rehearsal, whose clock stood there. */
  readonly history?: History;
  readonly startMs?: number;
}

interface Clock {
  passedMs: number;
  readonly startMs: number;
  readonly startNs: bigint;
}

function machineOf(clock: Clock): Machine {
  return {
    ...thisMachine(),
    monotonicNs: () => clock.startNs + BigInt(Math.round(clock.passedMs * 1e6)),
    realtimeNs: () => BigInt(Math.round((clock.startMs + clock.passedMs) * 1e6)),
  };
}

/** A job that is simulated. */
export async function rehearseRings(options: RingRehearsalOptions): Promise<RingRehearsal> {
  const { everyMs, job: name = "sim", startMs = Date.now() } = options;
  const clock = { passedMs: 0, startMs, startNs: process.hrtime.bigint() };
  const machine = machineOf(clock);
  const folder = mkdtempSync(join(tmpdir(), "faultline-rings-"));
  const iterations = Number.MAX_SAFE_INTEGER;
  const spec = completeSpec({ microBatches: 4, layersPerStage: 2, iterations, ...options.spec });
  const job = await LiveRun.start({
    spec,
    everyMs,
    speed: 1,
    job: name,
    runNumber: Math.floor(startMs / 1000) % 2 ** 31,
    folder,
    machine,
  });
  const played = {
    machines: job.machines,
    step: () => job.step(),
    async close() {
      await job.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return { ...(await rehearsed(played, machine, clock, options)), job };
}

/** A job that ran: what the agents and the service would have said of it. */
export async function rehearseRecorded(
  job: RecordedRings,
  options: Pick<RingRehearsalOptions, "tickMs" | "service"> = {},
): Promise<RingRehearsal<RecordedRings>> {
  const clock = { passedMs: 0, startMs: job.startMs, startNs: job.startNs };
  // Its processes are not here: their heartbeats tell that they live.
  const machine = { ...machineOf(clock), proc: "/nowhere", sharesNumbers: false };
  return { ...(await rehearsed(job, machine, clock, options)), job };
}

async function rehearsed(
  job: PlayedRings,
  machine: Machine,
  clock: Clock,
  options: Pick<RingRehearsalOptions, "tickMs" | "service" | "history">,
): Promise<RingRehearsal<PlayedRings>> {
  const { tickMs = TICK_MS } = options;
  const nowMs = (): number => clock.startMs + clock.passedMs;
  const folder = mkdtempSync(join(tmpdir(), "faultline-service-"));
  const nodes: Node[] = job.machines.map((one) =>
    ringNode({
      folders: () => [one.folder],
      logs: [],
      job: null,
      machineName: one.machine,
      nics: SIMULATED_NICS,
      keepNs: 6e11,
      memoryBytes: 512 << 20,
      machine: { ...machine, host: one.machine },
      storage: new SlowStorage(),
      onTrouble: () => undefined,
    }),
  );
  const hello = (at: number): AgentHello => {
    const agent = job.machines[at]!.machine;
    return { protocol: PROTOCOL, agent, machine: agent, boot: "boot", version: "0", asks: ASKS };
  };
  const history = options.history ?? (await openDuckDbHistory(":memory:"));
  const told: Incident[] = [];
  const service = new Service({
    learnsLogs: false,
    serviceId: "",
    history,
    coordinator: embeddedCoordinator(history),
    folder: join(folder, "service"),
    alerts: { alertmanager: [], webhooks: [], slack: [] },
    actions: { dryRun: true, approval: "required", hooks: [] },
    hangMs: 30_000,
    pauseMs: 900_000,
    thresholds: new Map(),
    relapseMs: 30 * 60_000,
    validation: null,
    silentMs: 60_000,
    retention: KEEP_ALL,
    jobFiles: new Map(),
    fabric: [],
    machines: null,
    nowMs,
    newId: () => String(nowMs()),
    fetch: () => Promise.reject(new Error("no network here")),
    environment: {},
    log: () => undefined,
    ...options.service,
  });
  service.bus = {
    traffic: { reports: 0, reportBytes: 0, replyBytes: 0, refused: 0 },
    agents: [],
    follow: () => Promise.resolve(),
    unfollow: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ask: (agent, request) =>
      request.ask === "evidence" && job.hasProcesses === false
        ? Promise.reject(new Error("its processes are not here"))
        : nodes[job.machines.findIndex((one) => one.machine === agent)]!.answer(request),
  };
  service.publisher.listen((event) => {
    if (event.type === "incident") told.push(event.incident);
  });
  for (const known of await service.options.coordinator.list()) service.handlers.announced(known);
  for (const at of nodes.keys()) service.handlers.connected(hello(at));
  return {
    job,
    told,
    history,
    nowMs,
    async run(seconds, until = () => false) {
      const endMs = clock.passedMs + 1000 * seconds;
      while (clock.passedMs < endMs) {
        clock.passedMs += tickMs;
        job.step(Number(machine.monotonicNs()));
        for (const [at, node] of nodes.entries())
          for (const report of node.tick(nowMs()))
            await service.handlers.report(hello(at), onTheWire(report));
        // Answers that came with this second.
        await new Promise((resolve) => setImmediate(resolve));
        service.tick();
        for (const leased of service.jobs.values()) await leased.idle();
        if (until()) return;
      }
    },
    async close() {
      for (const node of nodes) node.close();
      await service.close();
      await job.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function onTheWire(report: Report): Report {
  const frame = decodeFrame(encodeReport(1, report));
  if (!("type" in frame) || frame.type !== "report" || frame.report === null)
    throw new Error(JSON.stringify(frame));
  return frame.report;
}
