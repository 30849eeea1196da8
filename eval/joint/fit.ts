/**
 * What a method's word is worth, and how often verdicts of a probability are right, from rows of `npm run eval -- joint --json
 * FILE`: `npm run eval -- fit --rows FILE,… [--calibrate FILE,…] [--write]`. The first rows give a curve a method
 * (src/verdict/reliability.ts), the second, of other seeds and made with those curves, the knots of the
 * calibration (src/verdict/calibration.ts). Figures for the evaluation come from a third set of seeds.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { logOdds, probabilityOf } from "../../src/verdict/reliability.ts";
import { fitCurve, isotonic, type Case } from "./curves.ts";
import type { Row } from "./examine.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    calibrate: { type: "string" },
    write: { type: "boolean", default: false },
  },
});

/** With fewer, a method is taken at its word. */
const FEWEST_CASES = 8;

function rowsOf(paths: string): Row[] {
  return paths
    .split(",")
    .flatMap((path) => readFileSync(path, "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function put(file: string, name: string, text: string): void {
  const path = fileURLToPath(new URL(`../../src/verdict/${file}`, import.meta.url));
  const before = readFileSync(path, "utf8");
  const pattern = new RegExp(`(const ${name}[^=]*=\\s*)[^;]*;`);
  if (!pattern.test(before)) throw new Error(`${file} has no ${name}`);
  writeFileSync(
    path,
    before.replace(pattern, (_, head: string) => `${head}${text};`),
  );
}

if (values.rows !== undefined) {
  const byMethod = new Map<string, Case[]>();
  for (const { accusations } of rowsOf(values.rows))
    // Who it is; what ails it another method may know better.
    for (const { method, weight, component } of accusations)
      // The judge of slowness states probabilities, which recordings calibrate.
      if (method !== "slow/judge")
        byMethod.set(method, [
          ...(byMethod.get(method) ?? []),
          { stated: weight, right: component },
        ]);
  const curves: string[] = [];
  console.log("| method | accusations | right | mean weight | at 0.5 | at 0.7 | at 0.9 |");
  console.log("|---|---|---|---|---|---|---|");
  for (const [method, cases] of [...byMethod].sort(([a], [b]) => a.localeCompare(b))) {
    const { offset, slope } = fitCurve(cases);
    const at = (weight: number): string =>
      probabilityOf(offset + slope * logOdds(weight)).toFixed(2);
    const right = cases.filter((one) => one.right).length;
    const mean = cases.reduce((sum, { stated }) => sum + stated, 0) / cases.length;
    console.log(
      `| ${method} | ${cases.length} | ${((100 * right) / cases.length).toFixed(1)} % | ${mean.toFixed(2)} | ${at(0.5)} | ${at(0.7)} | ${at(0.9)} |`,
    );
    if (cases.length >= FEWEST_CASES)
      curves.push(`  "${method}": { offset: ${round(offset)}, slope: ${round(slope)} },`);
  }
  if (values.write) put("reliability.ts", "RELIABILITY", `{\n${curves.join("\n")}\n}`);
}

if (values.calibrate !== undefined) {
  const rows = rowsOf(values.calibrate);
  const cases = rows.flatMap(({ probability, score }) =>
    probability === null ? [] : [{ stated: probability, right: score.right }],
  );
  const knots = isotonic(cases);
  console.log(`\n${cases.length} verdicts with a suspect; knots ${JSON.stringify(knots)}`);
  if (values.write) put("calibration.ts", "KNOTS", JSON.stringify(knots));
  for (const kind of ["healthy", "undetermined", "hang", "fail-slow"]) {
    const nobody = rows.filter(
      ({ verdict }) => verdict.kind === kind && verdict.suspects.length === 0,
    );
    const right = nobody.filter(({ score }) => score.right).length;
    console.log(`nobody accused, ${kind}: ${right} of ${nobody.length} right`);
  }
}
