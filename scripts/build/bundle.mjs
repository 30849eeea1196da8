/**
 * Loading a thousand modules takes Node longer than a diagnosis does, so that the command line, the library and the reading
 * thread are bundled, with chunks for what they share. Every package that is plain JavaScript is inside: the package has no
 * dependencies to install. The modules stay beside the bundle for benchmarks; the package leaves them out (package.json).
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import { root } from "./root.mjs";

/** Has a binary of 70 MB; wanted by `serve` alone. */
export const OUTSIDE = ["@duckdb/node-api"];

export function isOutside(id) {
  return id.startsWith("node:") || builtinModules.includes(id) || OUTSIDE.includes(id);
}

/** What the program knows of its own build (src/base/built.ts). */
export function builtConstants(isSingle) {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  return { FAULTLINE_BUILT: JSON.stringify({ version, commit: commitOf(), isSingle }) };
}

/** "" outside a git checkout; FAULTLINE_COMMIT where the build has no .git (an image). */
function commitOf() {
  if (process.env.FAULTLINE_COMMIT) return process.env.FAULTLINE_COMMIT.slice(0, 12);
  try {
    const options = { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], options).trim();
  } catch {
    return "";
  }
}

/** Writes the bundle over the compiled entries; returns the names of the packages inside. */
export async function bundleProgram() {
  const packages = new Set();
  const bundle = await rolldown({
    input: {
      "cli/main": `${root}dist/cli/main.js`,
      "api/index": `${root}dist/api/index.js`,
      "ingest/ingest-worker": `${root}dist/ingest/ingest-worker.js`,
      "live/service/slowdown/judge-worker": `${root}dist/live/service/slowdown/judge-worker.js`,
    },
    platform: "node",
    external: isOutside,
    transform: { define: builtConstants(false) },
    plugins: [notePackages(packages), ownPlace()],
  });
  await bundle.write({
    dir: `${root}dist`,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
  });
  await bundle.close();
  return packages;
}

/** A module finds its files beside itself: entries and chunks all lie one folder deep in dist/. */
function ownPlace() {
  return {
    name: "own-place",
    transform: (code, id) =>
      code.includes("import.meta.url") && id.startsWith(`${root}dist/`)
        ? code.replaceAll(
            "import.meta.url",
            `new URL("../${relative(`${root}dist`, id)}", import.meta.url).href`,
          )
        : null,
  };
}

export function notePackages(packages) {
  return {
    name: "note-packages",
    moduleParsed({ id }) {
      const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
      if (name !== undefined) packages.add(name);
    },
  };
}

/** Declarations of the library, and of the modules that these name. */
export function emitTypes() {
  rmSync(`${root}dist/types`, { recursive: true, force: true });
  execFileSync(
    process.execPath,
    [`${root}node_modules/typescript/bin/tsc`, "-p", `${root}tsconfig.types.json`],
    { stdio: "inherit" },
  );
  const types = `${root}dist/types`;
  const named = new Set();
  const visit = (file) => {
    if (named.has(file)) return;
    named.add(file);
    for (const [, target] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)"/g))
      visit(resolve(dirname(file), target.replace(/\.ts$/, ".d.ts")));
  };
  visit(`${types}/api/index.d.ts`);
  for (const entry of readdirSync(types, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile() && !named.has(file)) rmSync(file);
  }
}
