/** How a job's lines come to files: one for every rank or node, or all on one console; with times or without. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pick, randomInt, type Random } from "../../src/base/random.ts";
import { digestOf, type TestLine } from "../../test/support/methods/log-digest.ts";
import type { LogDigest } from "../../src/model/log-digest.ts";
import type { RawLine } from "./plant.ts";

export type LayoutKind = "rank files" | "node files" | "console by host" | "console by task";

export interface PlantedLine extends TestLine {
  /** root and cascade indicate the failure. */
  readonly kind: "healthy" | "benign" | "root" | "cascade" | "noise";
  /** From 1, in its file. */
  readonly line: number;
  readonly prefix: string;
}

export interface Rendered {
  readonly layout: LayoutKind;
  readonly lines: readonly PlantedLine[];
  readonly namesOf: (node: number) => string[];
}

const LAYOUTS: readonly LayoutKind[] = [
  "rank files",
  "node files",
  "console by host",
  "console by task",
];
/** Consoles get lines late, and not in order. */
const BUFFERED_MS = 2500;

export function renderer(
  random: Random,
  hosts: readonly string[],
  gpusPerNode: number,
  offsets: Float64Array,
): (raw: readonly RawLine[]) => Rendered {
  const layout = pick(random, LAYOUTS);
  const isConsole = layout.startsWith("console");
  const hasTimes = random() < (isConsole ? 0.5 : 0.75);
  const pids = hosts.map(() => 1000 + randomInt(random, 60_000));
  const delays = hosts.map(() => random() * BUFFERED_MS);
  const render = ({ node, local, atMs, text, kind, log, iteration }: RawLine): Unsorted => {
    const host = hosts[node];
    const rank = node * gpusPerNode + local;
    const clockMs = Math.round(atMs + (node < 0 ? 0 : offsets[node]!));
    const sortMs = isConsole && node >= 0 ? atMs + delays[node]! : atMs;
    const base = { sortMs, text, kind, ...(iteration === undefined ? {} : { iteration }) };
    const stamp = new Date(clockMs).toISOString().replace("T", " ").replace("Z", "");
    if (log === "scheduler" || host === undefined)
      return { ...base, file: isConsole ? "job.out" : "scheduler.out", prefix: "" };
    if (log === "kernel") {
      const prefix = `[${new Date(clockMs).toUTCString().replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT/, "$1 $3 $2 $5 $4")}] `;
      const seconds = Math.floor(clockMs / 1000) * 1000;
      return { ...base, file: `dmesg.${host}.log`, prefix, timeMs: seconds };
    }
    const timed = hasTimes ? { timeMs: clockMs } : {};
    const time = hasTimes ? `${stamp} ` : "";
    // NCCL writes its host and process before its lines, whoever collects them.
    const isNccl = text.startsWith("NCCL ");
    const nccl = isNccl
      ? `${host}:${pids[node]! + local}:${pids[node]! + local + 70} [${local}] `
      : "";
    const known = isNccl ? { host } : {};
    switch (layout) {
      case "rank files":
        return { ...base, ...timed, ...known, file: `rank${rank}.log`, prefix: time + nccl };
      case "node files":
        return {
          ...base,
          ...timed,
          ...known,
          file: `logs/${host}.log`,
          writer: `default${local}`,
          prefix: `[default${local}]:${time}${nccl}`,
        };
      case "console by host":
        return { ...base, ...timed, host, file: "job.out", prefix: `${host}: ${time}${nccl}` };
      case "console by task":
        return {
          ...base,
          ...timed,
          ...known,
          file: "job.out",
          writer: `task ${rank}`,
          prefix: `${rank}: ${time}${nccl}`,
        };
    }
  };
  const namesOf = (node: number): string[] => [
    hosts[node]!,
    `node ${node}`,
    ...Array.from({ length: gpusPerNode }, (_, local) => node * gpusPerNode + local).flatMap(
      (rank) => [`rank ${rank}`, `task ${rank}`, `rank${rank}`],
    ),
  ];
  return (raw) => ({ layout, lines: inFiles(raw.map(render)), namesOf });
}

type Unsorted = Omit<PlantedLine, "line"> & { readonly sortMs: number };

function inFiles(unsorted: readonly Unsorted[]): PlantedLine[] {
  const sorted = [...unsorted].sort(
    (a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.sortMs - b.sortMs,
  );
  let file = "";
  let line = 0;
  return sorted.map((one) => {
    line = one.file === file ? line + 1 : 1;
    file = one.file;
    return { ...one, line };
  });
}

/** The quick way: as a perfect reader of prefixes would see it. */
export function digestOfPlanted(lines: readonly PlantedLine[]): LogDigest {
  return digestOf(lines);
}

export function writePlanted(lines: readonly PlantedLine[], folder: string): string[] {
  const texts = new Map<string, string[]>();
  for (const { file, prefix, text } of lines) {
    const known = texts.get(file);
    if (known) known.push(prefix + text);
    else texts.set(file, [prefix + text]);
  }
  return [...texts].map(([file, list]) => {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${list.join("\n")}\n`);
    return path;
  });
}
