import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FILES = [
  "../../maths/level-tracker.ts",
  "../../maths/level-evidence.ts",
  "../../maths/transition.ts",
  "./iteration-tracker.ts",
  "./normal.ts",
  "./episodes.ts",
  "./slow-downs.ts",
  "./track-series.ts",
];

test("CONSTANTS.md names every constant of the tracker, and none that is gone", () => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");
  const declared = FILES.flatMap((path) =>
    [...read(path).matchAll(/^(?:export )?const ([A-Z][A-Z_]+)\b/gm)].map(
      ([, name]) => `${path.split("/").at(-1)} ${name}`,
    ),
  );
  const listed = [...read("./CONSTANTS.md").matchAll(/^\| `([\w-]+\.ts)` \| `([A-Z_]+)` \|/gm)].map(
    ([, file, name]) => `${file} ${name}`,
  );
  expect(listed.toSorted()).toEqual(declared.toSorted());
});
