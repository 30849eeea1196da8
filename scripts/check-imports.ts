/**
 * Who may import whom. Stages meet in model/: a method never imports another method nor ingest, ingest
 * never imports a method. Anything not in the table fails `npm test`. A name counts for the layer that declares it,
 * whichever file passes it on; and product code that neither the command line nor the page reaches fails, too.
 */
import { fileURLToPath } from "node:url";
import { declaredIn, folderOf, reachable, readModules, type Module } from "./imports/modules.ts";

/** A row: a folder, or a file directly in src/. What it may import: folders, or single files of one. */
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
  // The agent reads what the probes write, and shares the layout with their reader. It opens no store, and runs no method
  // but the period finder: iterations are cut where the calls are.
  "live/agent": [
    "live/wire",
    "ingest",
    "methods/iterations/call-classes.ts",
    "methods/iterations/call-segments.ts",
    "model",
    "base",
  ],
  // A rehearsal: simulated machines in front of real agents.
  "live/fleet": ["live/agent", "live/wire", "simulate", "ingest", "model", "base"],
  "live/service": [
    "live/wire",
    "pipeline",
    "ingest/job-file.ts",
    "ingest/live-job.ts",
    "ingest/prometheus",
    "methods/*",
    "verdict/story/plain-metrics.ts",
    "report/digest-words.ts",
    "report/action-words.ts",
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
  // Faultline as a library.
  api: ["pipeline", "model", "base"],
  cli: [
    "pipeline",
    "ingest/job-file.ts",
    "ingest/prometheus",
    "ingest/tar.ts",
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

/** Only the edges touch the world; base/own-files reads what comes with the program; ingest/sources and workers are handed paths by them, stores in history, too. */
const WORLD = [
  "node:fs",
  "node:fs/promises",
  "node:net",
  "node:http",
  "node:https",
  "node:child_process",
];
const MAY_TOUCH_WORLD =
  /^(cli\/|history\/|live\/|base\/own-files\.ts$|ingest\/((sources|job-file)\.ts|logs\/files\.ts|prometheus\/http\.ts)$)/;

/** What the page's bundle may hold of src/; of the service and the history only types, which are nothing at run time. */
const PAGE_MAY_IMPORT = ["report", "model", "base"];
const PAGE_MAY_TYPE = ["live/service", "history"];

/** Where a user comes in. Worker threads are found through the module that starts them. */
const ENTRIES = ["src/cli/main.ts", "src/api/index.ts", "web/main.tsx"];

function allowed(from: string, to: string): boolean {
  const folder = folderOf(to);
  if (from === folder) return true;
  const rule =
    MAY_IMPORT[from] ?? (from.startsWith("methods/") ? MAY_IMPORT["methods/*"] : undefined);
  return (
    rule?.some(
      (may) =>
        may === folder ||
        may === folder.replace(/\/.*/, "/*") ||
        `src/${to}/`.startsWith(`src/${may}/`),
    ) ?? false
  );
}

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = readModules(root, ["src", "web"]);
const problems: string[] = [];

for (const module of modules.values())
  if (module.path.startsWith("src/")) checkProduct(module);
  else checkPage(module);

const reached = reachable(modules, ENTRIES);
for (const { path } of modules.values())
  if (path.startsWith("src/") && !reached.has(path))
    problems.push(
      `${path}: neither the command line, the library nor the page reaches it; what evaluations need belongs in eval/, what tests need in test/support/`,
    );

function checkProduct({ path, imports, outside, passesOnAll }: Module): void {
  const file = path.slice("src/".length);
  if (passesOnAll) problems.push(`${file}: name what is passed on instead of export *`);
  const from = folderOf(file);
  for (const { target, to, names } of imports) {
    if (!to.startsWith("src/") || !allowed(from, to.slice("src/".length))) {
      problems.push(`${file} may not import ${target}`);
      continue;
    }
    for (const name of names) {
      const origin = declaredIn(modules, to, name).slice("src/".length);
      if (!allowed(from, origin))
        problems.push(
          `${file} may not import ${name} of ${origin}, not by way of ${target} either`,
        );
    }
  }
  for (const target of outside)
    if (WORLD.includes(target) && !MAY_TOUCH_WORLD.test(file))
      problems.push(`${file} may not touch the world (${target})`);
}

function checkPage({ path, imports }: Module): void {
  for (const { target, to, names, isType } of imports) {
    if (!to.startsWith("src/")) continue;
    for (const origin of [to, ...names.map((name) => declaredIn(modules, to, name))]) {
      const folder = folderOf(origin.slice("src/".length));
      if (PAGE_MAY_IMPORT.includes(folder) || (isType && PAGE_MAY_TYPE.includes(folder))) continue;
      problems.push(`${path} of the page may not import ${target}`);
      break;
    }
  }
}

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exitCode = 1;
} else {
  console.log(`imports follow the table, and ${reached.size} modules are reached`);
}
