/** The modules of the product and what they import, by their text: no compiler, so that a check takes a second. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

export interface Import {
  /** As written. */
  readonly target: string;
  /** From the root: "src/base/errors.ts". */
  readonly to: string;
  /** As the other module calls them; empty where all of it is meant: `import * as`, `import()`, a worker. */
  readonly names: readonly string[];
  readonly isType: boolean;
}

export interface Module {
  /** From the root. */
  readonly path: string;
  readonly imports: readonly Import[];
  /** Packages and what Node has built in. */
  readonly outside: readonly string[];
  /** What is passed on: the name here, and where it comes from. */
  readonly passedOn: ReadonlyMap<string, { readonly to: string; readonly name: string }>;
  /** It has an `export *`, which does not say what it passes on. */
  readonly passesOnAll: boolean;
}

/** `import a, { b as c } from "./x.ts"`, `export * from "./x.ts"`, `import "./x.ts"`. */
const STATEMENT = /^\s*(import|export)\s+(?:(type)\s+)?(?:([^;"']*?)\s*from\s*)?"([^"]+)"/gm;
/** `import("./x.ts")`, as a value or a type; `new URL("./x.js", import.meta.url)`, how workers are started. */
const CALL = /(?:\bimport\(|\bnew URL\()\s*"([^"]+)"/g;
const OWN_EXPORT = /^export\s+(?:type\s+)?\{([^}]*)\}\s*;/gm;

/** Of all TypeScript files in these folders but for tests. */
export function readModules(root: string, folders: readonly string[]): Map<string, Module> {
  const modules = new Map<string, Module>();
  for (const folder of folders)
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.tsx?$/.test(entry.name) || /\.test\.tsx?$/.test(entry.name))
        continue;
      const path = relative(root, join(entry.parentPath, entry.name)).split(sep).join("/");
      modules.set(path, readModule(root, path));
    }
  return modules;
}

function readModule(root: string, path: string): Module {
  const text = readFileSync(join(root, path), "utf8");
  const imports: Import[] = [];
  const outside: string[] = [];
  const passedOn = new Map<string, { to: string; name: string }>();
  /** Names as they are called here, and where they come from. */
  const known = new Map<string, { to: string; name: string }>();
  for (const [, keyword, type, clause = "", target] of text.matchAll(STATEMENT)) {
    if (!target!.startsWith(".")) {
      outside.push(target!);
      continue;
    }
    const to = resolve(path, target!);
    const names = namesIn(clause);
    imports.push({ target: target!, to, names: names.map(({ name }) => name), isType: !!type });
    for (const { name, as } of names)
      (keyword === "export" ? passedOn : known).set(as, { to, name });
  }
  for (const [, target] of text.matchAll(CALL)) {
    if (!target!.startsWith(".")) outside.push(target!);
    else {
      const to = [target!, target!.replace(/\.js$/, ".ts")]
        .map((one) => resolve(path, one))
        .find((one) => /\.tsx?$/.test(one) && existsSync(join(root, one)));
      if (to) imports.push({ target: target!, to, names: [], isType: false });
    }
  }
  for (const [, list] of text.matchAll(OWN_EXPORT))
    for (const { name, as } of namesIn(`{${list}}`)) {
      const origin = known.get(name);
      if (origin) passedOn.set(as, origin);
    }
  return { path, imports, outside, passedOn, passesOnAll: /^export\s*\*/m.test(text) };
}

/** "{ a, type b as c }" → a as a, b as c. A default import and a namespace have no names that could be followed. */
function namesIn(clause: string): { name: string; as: string }[] {
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  return braces
    .split(",")
    .map((part) => part.trim().replace(/^type\s+/, ""))
    .filter((part) => part !== "")
    .map((part) => {
      const [name, as] = part.split(/\s+as\s+/);
      return { name: name!, as: as ?? name! };
    });
}

function resolve(from: string, target: string): string {
  return join(dirname(from), target).split(sep).join("/");
}

/** Paths from src/: "methods/hang/x.ts" → "methods/hang"; "live/agent/x.ts" → "live/agent"; "pipeline.ts" → itself. */
export function folderOf(file: string): string {
  const parts = file.split("/");
  if (parts[0] === "methods") return parts.length > 2 ? `methods/${parts[1]}` : "methods.ts";
  if (parts[0] === "live" && parts.length > 2) return `live/${parts[1]}`;
  return parts[0]!;
}

/**
 * The module that declares a name, followed through those that only pass it on. methods.ts is the door of its folders: what
 * it passes on counts as its own.
 */
export function declaredIn(
  modules: ReadonlyMap<string, Module>,
  path: string,
  name: string,
): string {
  if (path === "src/methods/methods.ts") return path;
  const origin = modules.get(path)?.passedOn.get(name);
  return origin ? declaredIn(modules, origin.to, origin.name) : path;
}

export function reachable(
  modules: ReadonlyMap<string, Module>,
  entries: readonly string[],
): ReadonlySet<string> {
  const reached = new Set(entries);
  for (const path of reached)
    for (const { to } of modules.get(path)?.imports ?? []) reached.add(to);
  return reached;
}
