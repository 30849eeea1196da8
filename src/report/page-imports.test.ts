import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
/** Renders to a string: for the report alone. */
const REPORT_ONLY = ["markup-of.ts"];

test("nothing that the page imports from here needs Node", () => {
  const parts = readdirSync(join(here, "parts"))
    .filter((name) => !name.endsWith(".test.ts") && !REPORT_ONLY.includes(name))
    .map((name) => join(here, "parts", name));
  const waiting = [...parts, join(here, "markdown.ts"), join(here, "picture-trace.ts")];
  const seen = new Set(waiting);
  for (const file of waiting) {
    const text = readFileSync(file, "utf8");
    for (const [, type, target] of text.matchAll(/^import (type )?[^;]*?"([^"]+)";/gm)) {
      if (type) continue;
      expect([file, target]).not.toEqual([file, expect.stringMatching(/^node:|render-to-string/)]);
      if (!target!.startsWith(".")) continue;
      const path = join(dirname(file), target!);
      expect(REPORT_ONLY.some((name) => path.endsWith(`/${name}`))).toBe(false);
      if (!seen.has(path)) {
        seen.add(path);
        waiting.push(path);
      }
    }
  }
  expect(seen.size).toBeGreaterThan(30);
});
