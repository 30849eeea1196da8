/**
 * One executable with Node inside: `node scripts/build/single.mjs NODE OUT POSTJECT [MAKER]`, after the build. NODE is the
 * program of the platform that the executable is for; where it does not run here, MAKER is one of the same version that does.
 * Node's single executable application: nothing is unpacked, so that it runs on a read-only system and for any user.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import { builtConstants, isOutside, OUTSIDE } from "./bundle.mjs";
import { root } from "./root.mjs";

/** Node looks for it in its own file (lib/internal/main/…, "Single executable applications" of its manual). */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
/** Of dist/, beside what is bundled. */
const FOLDERS = ["library/records", "web"];
const FILES = ["cli/collect-hang.sh", "THIRD-PARTY-LICENSES.txt"];

const dist = `${root}dist/`;

export async function buildSingle(node, out, postject, maker = node) {
  // What is put inside has another layout in another version of Node: an executable of a wrong one crashes at its start.
  const version = versionOf(maker);
  if (version === null || !readFileSync(node).includes(`node-${version}`))
    throw new Error(`${maker} must run here and be of the version of ${node}`);
  const folder = mkdtempSync(join(tmpdir(), "faultline-single-"));
  try {
    // The modules that tsc wrote, not the bundle that took their place.
    execFileSync(
      process.execPath,
      [
        `${root}node_modules/typescript/bin/tsc`,
        "-p",
        `${root}tsconfig.build.json`,
        "--outDir",
        `${dist}single`,
      ],
      { stdio: "inherit" },
    );
    const modules = `${dist}single/`;
    for (const [from, to] of [
      ["cli/main.js", "main.cjs"],
      ["ingest/ingest-worker.js", "ingest-worker.cjs"],
      ["live/service/slowdown/judge-worker.js", "judge-worker.cjs"],
    ])
      await bundleFrom(modules, from, join(folder, to));
    const assets = {
      "ingest/ingest-worker.js": join(folder, "ingest-worker.cjs"),
      "live/service/slowdown/judge-worker.js": join(folder, "judge-worker.cjs"),
    };
    for (const name of FILES) assets[name] = `${dist}${name}`;
    for (const below of FOLDERS)
      for (const entry of readdirSync(`${dist}${below}`, {
        recursive: true,
        withFileTypes: true,
      })) {
        if (!entry.isFile()) continue;
        const file = join(entry.parentPath, entry.name);
        assets[relative(dist, file)] = file;
      }
    writeFileSync(join(folder, "index.json"), JSON.stringify(Object.keys(assets).sort()));
    assets["index.json"] = join(folder, "index.json");
    const config = {
      main: join(folder, "main.cjs"),
      output: join(folder, "blob"),
      disableExperimentalSEAWarning: true,
      // A code cache is tied to the machine type that made it.
      useCodeCache: maker === node,
      assets,
    };
    writeFileSync(join(folder, "sea.json"), JSON.stringify(config));
    execFileSync(maker, ["--experimental-sea-config", join(folder, "sea.json")], {
      stdio: "ignore",
    });
    mkdirSync(dirname(resolve(out)), { recursive: true });
    copyFileSync(node, out);
    chmodSync(out, 0o755);
    stripSymbols(out);
    execFileSync(
      process.execPath,
      [postject, out, "NODE_SEA_BLOB", join(folder, "blob"), "--sentinel-fuse", FUSE],
      { stdio: "ignore" },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(`${dist}single`, { recursive: true, force: true });
  }
}

/** One file of CommonJS, which is what Node takes; modules find their files by a name that own-files.ts knows. */
async function bundleFrom(modules, from, file) {
  const made = await rolldown({
    input: modules + from,
    platform: "node",
    external: (id) => isOutside(id) && !OUTSIDE.includes(id),
    transform: { define: builtConstants(true) },
    plugins: [
      {
        // Never called: the history is a plain file there (src/history/local-history.ts).
        name: "no-duckdb",
        resolveId: (id) => (OUTSIDE.includes(id) ? `\0${id}` : null),
        load: (id) =>
          id.startsWith("\0@duckdb")
            ? "export const LIST = () => null, listValue = LIST, DOUBLE = null, VARCHAR = null, DuckDBDataChunk = null, DuckDBInstance = null;"
            : null,
      },
      {
        name: "inside-place",
        transform: (code, id) => {
          if (!code.includes("import.meta.url")) return null;
          const name = id.startsWith(modules) ? relative(modules, id) : "module.js";
          const place = JSON.stringify(`file:///faultline-inside/dist/${name}`);
          return code.replaceAll("import.meta.url", place);
        },
      },
    ],
  });
  await made.write({ file, format: "cjs", codeSplitting: false, minify: true });
  await made.close();
}

function versionOf(node) {
  try {
    return execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}

/** A fifth of the file. Where there is no strip for that machine type, it stays as it is. */
function stripSymbols(file) {
  const machine = readFileSync(file).readUInt16LE(18);
  const program = machine === 183 ? "aarch64-linux-gnu-strip" : "strip";
  try {
    execFileSync(program, ["--strip-all", file], { stdio: "ignore" });
  } catch {
    // Not installed.
  }
}

if (process.argv[1] === import.meta.filename) {
  const [node, out, postject, maker] = process.argv.slice(2);
  await buildSingle(node, out, postject, maker);
}
