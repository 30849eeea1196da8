/**
 * As much of a service as actions need, with its records in a folder: for tests, which also run it as a process of its
 * own (`action-service.ts FOLDER CONFIG`) to kill it while an action is running.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AuditRow } from "../../../src/history/history.ts";
import type { Incident } from "../../../src/model/incident.ts";
import { testIncident } from "./incident.ts";
import type { Shares } from "../../../src/live/service/microbatches/jobs.ts";
import { type Actions, makeActions } from "../../../src/live/service/actions/actions.ts";
import { machinesTaken, sparesNamed } from "../../../src/live/service/actions/limits.ts";
import type { ActionsConfig } from "../../../src/live/service/actions/types.ts";

export interface TestService {
  readonly actions: Actions;
  readonly lines: string[];
  /** The store of audit rows is down. */
  isAuditDown: boolean;
  /** The machines of the job; null where nobody knows. */
  machines: readonly string[] | null;
  /** Why nothing is run. */
  off: string | null;
  shares: Shares | null;
  lostMs: number;
  /** Added to the clock. */
  laterMs: number;
  incident(id?: string): Incident;
  save(incident: Incident): Incident;
  audit(): AuditRow[];
  /** Proposes, and keeps the record. */
  confirm(incident?: Incident): Promise<Incident>;
}

export function openTestService(folder: string, config: ActionsConfig): TestService {
  const trail = join(folder, "audit.jsonl");
  const fileOf = (id: string): string => join(folder, `${id}.incident.json`);
  const ids = new Set<string>();
  const service: TestService = {
    lines: [],
    isAuditDown: false,
    machines: Array.from({ length: 16 }, (_, i) => `node${String(i).padStart(3, "0")}`),
    off: null,
    shares: null,
    lostMs: 0,
    laterMs: 0,
    incident: (id = testIncident().id) => JSON.parse(readFileSync(fileOf(id), "utf8")) as Incident,
    save(incident) {
      ids.add(incident.id);
      writeFileSync(`${fileOf(incident.id)}.new`, JSON.stringify(incident));
      renameSync(`${fileOf(incident.id)}.new`, fileOf(incident.id));
      return incident;
    },
    audit: () =>
      existsSync(trail)
        ? readFileSync(trail, "utf8")
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line) as AuditRow)
        : [],
    async confirm(incident = testIncident()) {
      service.save(incident);
      return service.save({ ...incident, actions: await service.actions.propose(incident) });
    },
    actions: makeActions(config, {
      shares: () => service.shares,
      lostMs: () => service.lostMs,
      nowMs: () => Date.now() + service.laterMs,
      fetch: globalThis.fetch,
      environment: process.env,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 20))),
      machines: () => service.machines,
      runs: async (sinceMs) =>
        service.audit().filter(({ what, atMs }) => what === "run" && atMs >= sinceMs),
      sparesNamed: async () => sparesNamed([...ids].map((id) => service.incident(id))),
      switchedOff: async () => service.off,
      newId: randomUUID,
      log: (line) => service.lines.push(line),
      async audit(row) {
        if (service.isAuditDown) throw new Error("the store is down");
        appendFileSync(trail, `${JSON.stringify(row)}\n`);
      },
      async put(id, action) {
        const record = service.incident(id);
        const actions = record.actions.map((one) => (one.id === action.id ? action : one));
        return service.save({ ...record, revision: record.revision + 1, actions });
      },
      taken: async (job, sinceMs) =>
        machinesTaken(
          [...ids].map((id) => service.incident(id)).filter((one) => one.job === job),
          sinceMs,
        ),
    }),
  };
  return service;
}

if (process.argv[1] === import.meta.filename) {
  const [folder, config] = process.argv.slice(2);
  const service = openTestService(folder!, JSON.parse(config!) as ActionsConfig);
  await service.actions.runAutomatic(await service.confirm());
}
