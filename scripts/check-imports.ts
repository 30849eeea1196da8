/**
 * Who may import whom. Stages meet in model/: a method never imports another method nor ingest, ingest
 * never imports a method. Anything not in the table fails `npm test`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  model: ["base"],
  maths: ["base"],
  library: ["model", "base"],
  ingest: ["library", "model", "base"],
  "methods/*": ["library", "model", "base", "maths"],
  "methods.ts": ["methods/*", "model"],
  verdict: ["model", "base"],
  report: ["model", "base"],
  simulate: ["model", "base"],
  history: ["library", "model", "base"],
  mitigate: ["model", "base"],
  // What agents and the service say to each other, and what carries it.
  "live/wire": ["model", "base"],
  // The agent reads what the probes write, and shares the layout with their reader. It runs no method, opens no store.
  "live/agent": ["live/wire", "ingest", "model", "base"],
  "live/controller": ["mitigate", "model", "base"],
  // A rehearsal: simulated machines in front of real agents.
  "live/fleet": ["live/agent", "live/wire", "simulate", "ingest", "model", "base"],
  "live/service": [
    "live/wire",
    "live/controller",
    "pipeline",
    "ingest",
    "methods/*",
    "verdict",
    "history",
    "mitigate",
    "maths",
    "model",
    "base",
  ],
  // Where stages are put one behind the other: the only place that knows all of them.
  pipeline: [
    "ingest",
    "library",
    "methods/*",
    "methods.ts",
    "verdict",
    "mitigate",
    "model",
    "base",
  ],
  cli: [
    "pipeline",
    "ingest",
    "methods/*",
    "library",
    "history",
    "live/*",
    "mitigate",
    "report",
    "simulate",
    "model",
    "base",
  ],
};

/** Only the edges touch the world; ingest/sources and workers are handed paths by them, stores in history, too. */
const WORLD = [
  "node:fs",
  "node:fs/promises",
  "node:net",
  "node:http",
  "node:https",
  "node:child_process",
];
const MAY_TOUCH_WORLD =
  /^(cli\/|history\/|live\/|library\/shipped\.ts$|ingest\/((sources|job-file)\.ts|logs\/files\.ts|prometheus\/http\.ts)$)/;

const src = fileURLToPath(new URL("../src", import.meta.url));
const web = fileURLToPath(new URL("../web", import.meta.url));
/** What the page's bundle may hold of src/; of the service and the history only types, which are nothing at run time. */
const PAGE_MAY_IMPORT = ["report", "model", "base"];
const PAGE_MAY_TYPE = ["live/service", "history"];

/** "methods/hang/x.ts" → "methods/hang"; "live/agent/x.ts" → "live/agent". */
function folderOf(file: string): string {
  const parts = file.split(sep);
  if (parts[0] === "methods") return parts.length > 2 ? `methods/${parts[1]}` : "methods.ts";
  if (parts[0] === "live" && parts.length > 2) return `live/${parts[1]}`;
  return parts[0]!;
}

function allowed(from: string, to: string): boolean {
  if (from === to) return true;
  const rule =
    MAY_IMPORT[from] ?? (from.startsWith("methods/") ? MAY_IMPORT["methods/*"] : undefined);
  if (!rule) return false;
  return rule.includes(to) || rule.includes(to.replace(/\/.*/, "/*"));
}

const problems: string[] = [];
for (const entry of readdirSync(src, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.tsx?$/.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const file = relative(src, path);
  if (/\.test\.tsx?$/.test(file)) continue;
  const text = readFileSync(path, "utf8");
  for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
    if (target!.startsWith(".")) {
      const to = folderOf(relative(src, join(dirname(path), target!)));
      if (!allowed(folderOf(file), to)) problems.push(`${file} may not import ${target}`);
    } else if (WORLD.includes(target!) && !MAY_TOUCH_WORLD.test(file)) {
      problems.push(`${file} may not touch the world (${target})`);
    }
  }
}
for (const entry of readdirSync(web, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.tsx?$/.test(entry.name) || /\.test\.tsx?$/.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const text = readFileSync(path, "utf8");
  for (const [, type, target] of text.matchAll(
    /(?:import|export)\s+(type\s)?[^;"]*from\s+"([^"]+)"/g,
  )) {
    const to = relative(src, join(dirname(path), target!));
    if (!target!.startsWith(".") || to.startsWith("..")) continue;
    const folder = folderOf(to);
    if (PAGE_MAY_IMPORT.includes(folder) || (type && PAGE_MAY_TYPE.includes(folder))) continue;
    problems.push(`${relative(web, path)} of the page may not import ${target}`);
  }
}
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exitCode = 1;
} else {
  console.log("imports follow the table");
}
