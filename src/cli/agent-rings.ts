/** `faultline agent rings`: the rings on this machine. */
import { closeSync } from "node:fs";
import { printJson } from "./output.ts";
import { harmless, thousands } from "../base/text.ts";
import { defaultFolder, discover, type FoundRing, type Run } from "../live/agent/rings/discover.ts";
import { lastOperator, type LastOperator } from "../live/agent/rings/last-operator.ts";
import { isForeign, thisMachine, type Machine } from "../live/agent/process-state.ts";
import { openRing } from "../live/agent/rings/ring-file.ts";
import { selectRuns } from "../live/agent/select-run.ts";
import type { Io } from "./io.ts";

export interface RingsFlags {
  readonly dir?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const ENDS = ["", "exit", "exception", "signal"];

export function runAgentRings(io: Io, flags: RingsFlags): number {
  const machine = thisMachine();
  const folder = flags.dir ?? defaultFolder(io.env);
  const found = discover(folder, machine);
  const { runs } = selectRuns(found, folder, { all: true });
  const described = runs.map((run) => describe(run, machine));
  if (flags.json) {
    const { troubles } = found;
    printJson(io, { schema: "faultline.rings/1", folder, runs: described, troubles });
    return 0;
  }
  io.out.write(described.map(paragraph).join("\n"));
  if (!flags.quiet) for (const line of found.troubles) io.err.write(`${harmless(line)}\n`);
  return 0;
}

function describe(run: Run, machine: Machine) {
  return {
    job: run.job,
    address: run.address === "" ? null : run.address,
    started: new Date(run.startedMs).toISOString(),
    live: run.isLive,
    rings: run.rings.map((ring) => describeRing(ring, machine)),
  };
}

function describeRing(ring: FoundRing, machine: Machine) {
  const { header, progress } = ring;
  // By the time of day where its monotonic clock is another boot's or machine's.
  const now = isForeign(ring, machine)
    ? machine.realtimeNs() - header.clockOffsetNs
    : machine.monotonicNs();
  const ageMs = (at: bigint): number => Math.max(0, Number(now - at) / 1e6);
  const last = lastOf(ring);
  return {
    file: ring.path,
    rank: header.rank < 0 ? null : header.rank,
    pid: header.pid,
    host: header.host,
    gpu: header.gpu < 0 ? null : header.gpu,
    writer: header.writer,
    library: header.library,
    source: header.source,
    state: stateWords(ring.process.state),
    waitsIn: ring.process.waitsIn === "" ? null : ring.process.waitsIn,
    records: progress.head,
    dropped: progress.dropped,
    heartbeatAgeMs: progress.heartbeatNs === 0n ? null : ageMs(progress.heartbeatNs),
    held: progress.trappedNow,
    ended:
      progress.endedHow > 0
        ? { how: ENDS[progress.endedHow] ?? "unknown", code: progress.endedCode }
        : null,
    last:
      last === null ? null : { what: last.what, open: last.isOpen, ageMs: ageMs(last.issuedNs) },
  };
}

function lastOf(ring: FoundRing): LastOperator | null {
  try {
    const fd = openRing(ring);
    try {
      return lastOperator(fd, ring, ring.progress.head);
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}

export function stateWords(state: string): "alive" | "stopped" | "gone" | "unknown" {
  if (state === "") return "unknown";
  if (/^[Tt]$/.test(state)) return "stopped";
  return state === "X" || state === "Z" ? "gone" : "alive";
}

function paragraph(run: ReturnType<typeof describe>): string {
  const title = `${run.job}${run.address === null ? "" : ` (${run.address})`}, since ${run.started.slice(0, 19)}Z${run.live ? "" : ", over"}`;
  const rows = run.rings.map((ring) => [
    ring.rank === null ? "-" : String(ring.rank),
    String(ring.pid),
    ring.writer,
    ring.state + (ring.held > 0 ? ", held" : ""),
    thousands(ring.records),
    ring.heartbeatAgeMs === null ? "-" : age(ring.heartbeatAgeMs),
    lastWords(ring.last, ring.ended),
  ]);
  return `${harmless(title)}\n${table([["rank", "process", "writer", "state", "records", "heartbeat", "last"], ...rows])}`;
}

function lastWords(
  last: { what: string; open: boolean; ageMs: number } | null,
  ended: { how: string; code: number } | null,
): string {
  const end = ended === null ? "" : `; ended with ${ended.how} ${ended.code}`;
  if (last === null) return `-${end}`;
  return `${last.what}, ${last.open ? "open for" : "started"} ${age(last.ageMs)}${last.open ? "" : " ago"}${end}`;
}

function age(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows
    .map(
      (row) =>
        `  ${row.map((cell, i) => harmless(cell).padEnd(widths[i]!)).join("  ")}`.trimEnd() + "\n",
    )
    .join("");
}
