// Compiles src/ to dist/, bundles the command line and web/ to dist/web, and marks the moment, so that ./faultline knows when to build again.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
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
await bundleCommandLine();
// The page, with what it needs of src/.
const { build } = await import("vite");
await build({ configFile: `${root}web/vite.config.ts` });
// Data files that the compiler does not know of.
cpSync(`${root}src/library/records`, `${root}dist/library/records`, { recursive: true });
writeFileSync(`${root}dist/.built`, started.toISOString());
const { utimesSync } = await import("node:fs");
utimesSync(`${root}dist/.built`, started, started);

/**
 * Loading a thousand modules takes Node longer than a diagnosis does. The command line is bundled, a chunk for what commands
 * share; the modules stay beside it for workers and benchmarks. Packages with binaries, and those of the service, stay outside.
 */
async function bundleCommandLine() {
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    input: { main: `${root}dist/cli/main.js` },
    platform: "node",
    external: (id) =>
      !/^[./]|^(commander|zod|picocolors|fzstd|hyparquet|preact)(\/|$)|^preact-/.test(id),
    plugins: [
      {
        // A module finds its files beside itself: chunks lie one folder deep in dist/, as main.js does.
        name: "own-place",
        transform: (code, id) =>
          code.includes("import.meta.url")
            ? code.replaceAll(
                "import.meta.url",
                `new URL("../${relative(`${root}dist`, id)}", import.meta.url).href`,
              )
            : null,
      },
    ],
  });
  await bundle.write({
    dir: `${root}dist`,
    format: "esm",
    entryFileNames: "cli/[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
  });
  await bundle.close();
}
