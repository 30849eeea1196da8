/** What the agent of one machine tells of a job that really ran, as its rings are written again. */
import { join } from "node:path";
import { thisMachine } from "../../src/live/agent/process-state.ts";
import { ringNode } from "../../src/live/agent/ring-node.ts";
import { SlowStorage } from "../../src/live/agent/evidence/slow-storage.ts";
import type { JobReport, Report } from "../../src/live/wire/messages.ts";
import type { Block, JudgedJob } from "../../src/methods/slow/online/online-judge.ts";
import { BlockBuilder } from "../../src/methods/slow/online/blocks.ts";
import { recordedRings } from "../../test/support/live/recorded-rings.ts";

export interface PlayedShares {
  readonly startMs: number;
  readonly endMs: number;
  readonly told: readonly { readonly atMs: number; readonly reports: readonly Report[] }[];
}

/** The agent looks every `tickMs`. */
export function playShares(folder: string, tickMs: number): PlayedShares {
  const recorded = recordedRings(join(folder, "rings"));
  const { startMs, startNs, endMs } = recorded;
  let passedMs = 0;
  const node = ringNode({
    folders: () => recorded.machines.map((one) => one.folder),
    logs: [],
    job: null,
    machineName: "machine",
    nics: [],
    keepNs: 6e11,
    memoryBytes: 512 << 20,
    machine: {
      ...thisMachine(),
      host: "machine",
      proc: "/nowhere",
      sharesNumbers: false,
      monotonicNs: () => startNs + BigInt(Math.round(passedMs * 1e6)),
      realtimeNs: () => BigInt(Math.round((startMs + passedMs) * 1e6)),
    },
    storage: new SlowStorage(),
    onTrouble: () => undefined,
  });
  const told = [];
  while (startMs + passedMs < endMs) {
    passedMs += tickMs;
    recorded.step(Number(startNs) + passedMs * 1e6);
    told.push({ atMs: startMs + passedMs, reports: node.tick(startMs + passedMs) });
  }
  node.close();
  void recorded.close();
  return { startMs, endMs, told };
}

/** Ranks and groups as the last of an agent's job reports has them. */
export function jobFrom({ told }: PlayedShares): { job: JudgedJob; keys: string[] } {
  const report = told
    .flatMap(({ reports }) => reports)
    .findLast((one): one is JobReport => one.kind === "job")!;
  const ranks = report.ranks.map(({ rank }) => rank);
  const groups = new Map<string, { name: string; places: number[] }>();
  for (const [place, { groups: own }] of report.ranks.entries())
    for (const { key, name, size } of own) {
      if (size < 2) continue;
      const group = groups.get(key) ?? { name, places: [] };
      groups.set(key, group);
      group.places.push(place);
    }
  return { job: { ranks, groups: [...groups.values()] }, keys: [...groups.keys()] };
}

export interface TimedBlock {
  /** When the service could have judged it. */
  readonly atMs: number;
  readonly block: Block;
}

/** The judge's blocks, as the service makes them. */
export function blocksFrom(played: PlayedShares): TimedBlock[] {
  const { job, keys } = jobFrom(played);
  const builder = new BlockBuilder(job, keys);
  const ends = new Map<number, { endMs: number; durationMs: number; ranks: number }>();
  return played.told.flatMap(({ atMs, reports }) => {
    for (const report of reports) {
      if (report.kind === "shares") builder.take(report, atMs);
      if (report.kind !== "points") continue;
      for (const [i, iteration] of report.iteration.entries()) {
        const end = ends.get(iteration) ?? { endMs: 0, durationMs: 0, ranks: 0 };
        ends.set(iteration, end);
        end.endMs = Math.max(end.endMs, report.endMs[i]!);
        end.durationMs = Math.max(end.durationMs, report.durationMs[i]!);
        if (++end.ranks === job.ranks.length) builder.iterationEnded(end.endMs, end.durationMs);
      }
    }
    return builder.due(atMs).map((block) => ({ atMs, block }));
  });
}
