/**
 * What planted jobs are made of: real healthy logs, taken apart into what every node writes, what one writes for all and
 * what iterations look like; and real failure lines with their labels. Nothing of it is kept in this repository.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { testShape } from "../../test/support/methods/log-digest.ts";

export interface HealthyScript {
  readonly name: string;
  /** Every node writes these while it starts, less its host's prefix. */
  readonly everyNode: readonly string[];
  /** One writer alone writes these, before training. */
  readonly firstOnly: readonly string[];
  /** Lines of one iteration, the report first; numbers are replaced. */
  readonly iteration: readonly string[];
  /** After training. */
  readonly ending: readonly string[];
  /** Whether all ranks report iterations. */
  readonly everyRankReports: boolean;
}

export interface FailureScript {
  readonly name: string;
  readonly category: string;
  /** In the order of the original; prefixes are gone. */
  readonly lines: readonly { readonly text: string; readonly isLabelled: boolean }[];
}

export interface Material {
  readonly healthy: readonly HealthyScript[];
  readonly failures: readonly FailureScript[];
  /** Of healthy kernels. */
  readonly kernel: readonly string[];
}

const HOST_PREFIX = /^[a-z][\w.-]*:\d+:\d+ (?:\[\d+\] )?(?=NCCL|transport)/;
const PREFIXES = [
  /^\[default\d+\]:/,
  /^[.a-z][\w.-]*:\d+:\d+ (?:\[\d+\] )?/i,
  /^\d+: /,
  /^[a-z]\w*\d+: (?=\[)/,
  /^\[(?:[A-Z][a-z]{2} )?[\w :.]*\d\] (?=\S)/,
  /^(?:[A-Z][a-z]{2} +\d+ [\d:]+ \S+ )?kernel: /,
];
const REPORT = /\biteration +\d+\/ *\d+ \|/;
/** Shell traces of module systems fill such logs; a few will do. */
const SHELL = /^(?:\+|unset|export|eval|_?[A-Z_]+=|\s*(?:\\|esac|fi|done|case|if |else|shift|\)))/;
const MOST_FIRST_ONLY = 250;
const MOST_EVERY_NODE = 24;
/** Of our own: some logs keep the first rank's lines only, but a node that writes nothing at all cannot fall silent. */
const LAUNCHED = "launcher: starting 8 processes";

/** Folders as the archives hold them; either may be missing. */
export function readMaterial(normalFolder: string, failuresFolder: string): Material {
  const healthy: HealthyScript[] = [];
  let kernel: string[] = [];
  for (const name of existsSync(normalFolder) ? readdirSync(normalFolder).sort() : []) {
    const lines = readFileSync(join(normalFolder, name), "utf8").split("\n");
    // The end of the kernel's log is a failure.
    if (name.includes("dmesg")) kernel = lines.slice(0, 6000).map(stripped);
    else if (name.endsWith(".out")) healthy.push(healthyScript(name, lines));
  }
  const failures: FailureScript[] = [];
  for (const name of existsSync(failuresFolder) ? readdirSync(failuresFolder).sort() : []) {
    const folder = join(failuresFolder, name);
    if (!existsSync(join(folder, "meta.json"))) continue;
    const meta = JSON.parse(readFileSync(join(folder, "meta.json"), "utf8")) as {
      root_cause_category: string;
      failure_indicating_lines: number[];
    };
    const labelled = new Set(meta.failure_indicating_lines);
    const lines = readFileSync(join(folder, "log.txt"), "utf8")
      .split("\n")
      .map((text, i) => ({ text: stripped(text), isLabelled: labelled.has(i + 1) }))
      .filter(({ text }) => text.trim() !== "");
    failures.push({ name, category: meta.root_cause_category, lines });
  }
  return { healthy: healthy.filter(({ iteration }) => iteration.length > 0), failures, kernel };
}

export function stripped(text: string): string {
  let rest = text;
  for (const prefix of PREFIXES) rest = rest.replace(prefix, "");
  return rest;
}

/** What as many lines say as there are nodes, every node says. */
function healthyScript(name: string, lines: readonly string[]): HealthyScript {
  const nodes = Number(/_n(\d+)/.exec(name)?.[1] ?? 4);
  const first = lines.findIndex((line) => REPORT.test(line));
  const last = lines.findLastIndex((line) => REPORT.test(line));
  const before = first < 0 ? lines : lines.slice(0, first);
  const count = new Map<string, number>();
  for (const line of before) {
    const shape = testShape(line.replace(HOST_PREFIX, ""));
    count.set(shape, (count.get(shape) ?? 0) + 1);
  }
  const seen = new Set<string>();
  const everyNode: string[] = [];
  const firstOnly: string[] = [];
  for (const line of before) {
    const text = line.replace(HOST_PREFIX, "");
    const shape = testShape(text);
    if (text.trim() === "" || SHELL.test(text)) continue;
    if (count.get(shape)! < nodes) firstOnly.push(text);
    else if (!seen.has(shape)) everyNode.push(text);
    seen.add(shape);
  }
  const second = lines.findIndex((line, i) => i > first && REPORT.test(line));
  return {
    name,
    everyNode: [LAUNCHED, ...everyNode].slice(0, MOST_EVERY_NODE),
    firstOnly: firstOnly.slice(-MOST_FIRST_ONLY),
    iteration: first < 0 || second < 0 ? [] : lines.slice(first, second).slice(0, 6),
    ending:
      first < 0
        ? []
        : lines
            .slice(last + 1)
            .filter((line) => line.trim() !== "")
            .slice(-4),
    everyRankReports: false,
  };
}
