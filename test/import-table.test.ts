import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { declaredIn, reachable, readModules } from "../scripts/imports/modules.ts";

const root = mkdtempSync(join(tmpdir(), "faultline-imports-"));
afterAll(() => rmSync(root, { recursive: true }));

const FILES: Readonly<Record<string, string>> = {
  "src/cli/main.ts": `import { read as readAll } from "../pipeline.ts";\nawait import("./late.ts");\n`,
  "src/cli/late.ts": `import type { Shape } from "../pipeline.ts";\nexport const a: Shape = 1;\n`,
  "src/pipeline.ts": `import { type Shape } from "./ingest/shape.ts";\nexport {\n  read,\n} from "./ingest/reader.ts";\nexport { type Shape };\n`,
  "src/ingest/reader.ts": `import { Worker } from "node:worker_threads";\nexport const read = () => new Worker(new URL("./worker.js", import.meta.url));\n`,
  "src/ingest/shape.ts": `export type Shape = number;\n`,
  "src/ingest/worker.ts": `export {};\n`,
  "src/ingest/forgotten.ts": `export const forgotten = 1;\n`,
  "src/ingest/forgotten.test.ts": `import { forgotten } from "./forgotten.ts";\n`,
};
for (const [path, text] of Object.entries(FILES)) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const modules = readModules(root, ["src"]);

test("a name counts for the module that declares it, not for one that passes it on", () => {
  expect(declaredIn(modules, "src/pipeline.ts", "read")).toBe("src/ingest/reader.ts");
  expect(declaredIn(modules, "src/pipeline.ts", "Shape")).toBe("src/ingest/shape.ts");
  expect(declaredIn(modules, "src/ingest/shape.ts", "Shape")).toBe("src/ingest/shape.ts");
});

test("late imports and workers are reached; what only a test imports is not", () => {
  const reached = reachable(modules, ["src/cli/main.ts"]);
  expect([...modules.keys()].filter((path) => !reached.has(path))).toEqual([
    "src/ingest/forgotten.ts",
  ]);
});
