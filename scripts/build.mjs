// Compiles src/ to dist/, bundles web/ to dist/web, and marks the moment, so that ./faultline knows when to build again.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
// The stamp's time is that of the start: a file changed while we compile is newer than the build.
const started = new Date();
execFileSync(
  process.execPath,
  [`${root}node_modules/typescript/bin/tsc`, "-p", `${root}tsconfig.build.json`],
  {
    stdio: "inherit",
  },
);
// The page, with what it needs of src/.
const { build } = await import("vite");
await build({ configFile: `${root}web/vite.config.ts` });
// Data files that the compiler does not know of.
cpSync(`${root}src/library/records`, `${root}dist/library/records`, { recursive: true });
writeFileSync(`${root}dist/.built`, started.toISOString());
const { utimesSync } = await import("node:fs");
utimesSync(`${root}dist/.built`, started, started);
