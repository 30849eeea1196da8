// Compiles src/ to dist/, bundles what users run and import, and web/ to dist/web, and marks the moment, so that ./faultline
// knows when to build again.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { bundleProgram, emitTypes } from "./build/bundle.mjs";
import { writeLicenses } from "./build/licenses.mjs";
import { root } from "./build/root.mjs";

rmSync(`${root}dist`, { recursive: true, force: true });
// The stamp's time is that of the start: a file changed while we compile is newer than the build.
const started = new Date();
execFileSync(
  process.execPath,
  [`${root}node_modules/typescript/bin/tsc`, "-p", `${root}tsconfig.build.json`],
  { stdio: "inherit" },
);
const packages = await bundleProgram();
emitTypes();
// The page, with what it needs of src/.
const { build } = await import("vite");
await build({ configFile: `${root}web/vite.config.ts` });
// Data files that the compiler does not know of.
cpSync(`${root}src/library/records`, `${root}dist/library/records`, { recursive: true });
cpSync(`${root}src/cli/collect-hang.sh`, `${root}dist/cli/collect-hang.sh`);
writeLicenses([...packages, "uplot"], `${root}dist/THIRD-PARTY-LICENSES.txt`);
writeFileSync(`${root}dist/.built`, started.toISOString());
utimesSync(`${root}dist/.built`, started, started);
