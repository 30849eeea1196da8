/**
 * The same messages under headers that were made up, one layout a file: what a reader with a list of known headers has
 * never seen it must learn from the file's own lines. The score of the messages alone is what there is to reach.
 */
import type { ParsingSet } from "./parsing-truth.ts";

/** What a header's fields are made of: the line's number, and numbers that vary from line to line. */
export interface Fields {
  readonly line: number;
  readonly random: (below: number) => number;
}

const two = (n: number): string => String(n).padStart(2, "0");
const three = (n: number): string => String(n).padStart(3, "0");
const of = <T>(list: readonly T[], { random }: Fields): T => list[random(list.length)]!;
const clock = (line: number): string =>
  `${two(Math.floor(line / 3600) % 24)}:${two(Math.floor(line / 60) % 60)}:${two(line % 60)}`;
const LEVELS = ["INFO", "INFO", "INFO", "WARN", "ERROR"];
const PARTS = ["fabric", "storage.disk", "boot", "power", "scheduler", "net.link", "cooling"];
const STATES = ["action", "changed", "state_change.up", "error", "start", "status"];
const THREADS = [
  "main",
  "event handler of jobs",
  "IPC Server handler 7 on 6001",
  "pool-2-thread-9",
];
const CLASSES = ["Master", "TaskAttempt", "Fetcher", "EventQueue", "job.Committer", "Remote"];
const EPOCH = 1_917_000_000;

export const LAYOUTS: Readonly<Record<string, (fields: Fields) => string>> = {
  none: () => "",
  "id node part state epoch flag": (f) =>
    `${1000 + f.random(9e5)} node-${f.random(200)} ${of(PARTS, f)} ${of(STATES, f)} ${EPOCH + f.line} ${f.random(2)} `,
  "time level [thread] class:": (f) =>
    `2031-05-06 ${clock(f.line)},${three(f.random(1000))} ${of(LEVELS, f)} [${of(THREADS, f)}] org.example.${of(CLASSES, f)}: `,
  "time, padded level, padded part": (f) =>
    `2031-05-06 ${clock(f.line)}, ${of(["Info", "Warning", "Error"], f).padEnd(22)}${of(["ABC", "XYZ", "CORE"], f).padEnd(7)}`,
  "month-day time pid tid letter tag:": (f) =>
    `05-06 ${clock(f.line)}.${three(f.random(1000))} ${String(f.random(9999)).padStart(5)} ${String(f.random(9999)).padStart(5)} ${of(["D", "I", "W", "E"], f)} ${of(CLASSES, f)}: `,
  syslog: (f) =>
    `May  6 ${clock(f.line)} host-${f.random(9)} ${of(["kernel", `agentd[${f.random(9999)}]`], f)}: `,
  glog: (f) =>
    `${of(["I", "W", "E"], f)}0506 ${clock(f.line)}.${three(f.random(1000))}123 ${f.random(9999)} ${of(CLASSES, f).toLowerCase()}.cc:${f.random(900)}] `,
  log4j: (f) =>
    `${clock(f.line)},${three(f.random(1000))} [${of(THREADS, f)}] ${of(LEVELS, f).padEnd(5)} org.example.${of(CLASSES, f)} - `,
  "python logging": (f) =>
    `2031-05-06 ${clock(f.line)},${three(f.random(1000))} - ${of(PARTS, f)} - ${of(LEVELS, f)} - `,
  json: () => "",
  NCCL: (f) => `gpu-${f.random(9)}:${f.random(9999)}:${f.random(9999)} [${f.random(8)}] NCCL INFO `,
  "level (thread) number time": (f) =>
    `${of(LEVELS, f)} (${of(THREADS, f)}) ${f.random(9999)} ${clock(f.line)} `,
  "node epoch part-number": (f) =>
    `rack${f.random(4)}-n${f.random(30)} ${EPOCH + f.line}.${three(f.random(1000))} unit${f.random(20)} `,
  "[time] <part> number hex": (f) =>
    `[${clock(f.line)}] <${of(PARTS, f)}> ${f.random(99)} 0x${f.random(2 ** 31).toString(16)} `,
};

export function underHeader(set: ParsingSet, layout: string): ParsingSet {
  let state = 20_001;
  // Park and Miller's.
  const random = (below: number): number => {
    state = (state * 48271) % 2147483647;
    return Math.floor((state / 2147483647) * below);
  };
  const lines = set.contents.map((message, line) => {
    if (layout === "json")
      return JSON.stringify({ ts: `2031-05-06T${clock(line)}Z`, level: "info", msg: message });
    return LAYOUTS[layout]!({ line, random }) + message;
  });
  return { ...set, lines };
}
