/**
 * What a method's word is worth, and how often verdicts of a probability are right, from rows of `npm run eval -- joint --json
 * FILE`: `npm run eval -- fit --rows FILE,… [--calibrate FILE,…] [--write]`. The first rows give a curve a method
 * (src/verdict/reliability-table.ts), the second, of other seeds and made with those curves, the knots of the
 * calibration (src/verdict/calibration-table.ts). Figures for the evaluation come from a third set of seeds.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { logOdds, probabilityOf } from "../../src/verdict/reliability.ts";
import type { Row } from "./examine.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    calibrate: { type: "string" },
    write: { type: "boolean", default: false },
  },
});

interface Case {
  readonly stated: number;
  readonly right: boolean;
}

/** A method with few cases stays near "as stated": the strength of that belief, in cases. */
const RIDGE_OFFSET = 2;
const RIDGE_SLOPE = 8;
const FEWEST_CASES = 8;

/** offset + slope × log-odds, by Newton's method, leaning to 0 and 1. */
export function fitCurve(cases: readonly Case[]): { offset: number; slope: number } {
  let [offset, slope] = [0, 1];
  for (let step = 0; step < 30; step++) {
    let [g0, g1] = [-RIDGE_OFFSET * offset * 0.25, -RIDGE_SLOPE * (slope - 1) * 0.25];
    let [h00, h01, h11] = [RIDGE_OFFSET * 0.25, 0, RIDGE_SLOPE * 0.25];
    for (const { stated, right } of cases) {
      const x = logOdds(stated);
      const p = probabilityOf(offset + slope * x);
      const miss = (right ? 1 : 0) - p;
      g0 += miss;
      g1 += miss * x;
      const v = p * (1 - p);
      h00 += v;
      h01 += v * x;
      h11 += v * x * x;
    }
    const det = h00 * h11 - h01 * h01;
    offset += (h11 * g0 - h01 * g1) / det;
    slope = Math.max(0, slope + (h00 * g1 - h01 * g0) / det);
  }
  return { offset, slope };
}

/** Pool adjacent violators, with each block drawn towards its own probability by a few cases. */
export function isotonic(cases: readonly Case[]): [number, number][] {
  const PULL = 4;
  const sorted = [...cases].sort((a, b) => a.stated - b.stated);
  const perBlock = Math.max(10, Math.ceil(sorted.length / 8));
  const blocks: { n: number; x: number; right: number }[] = [];
  for (let i = 0; i < sorted.length; i += perBlock) {
    const part = sorted.slice(i, i + perBlock);
    blocks.push({
      n: part.length,
      x: part.reduce((sum, { stated }) => sum + stated, 0),
      right: part.filter(({ right }) => right).length,
    });
    for (let last = blocks.length - 1; last > 0; last = blocks.length - 1) {
      const [a, b] = [blocks[last - 1]!, blocks[last]!];
      if (a.right / a.n <= b.right / b.n) break;
      blocks.splice(last - 1, 2, { n: a.n + b.n, x: a.x + b.x, right: a.right + b.right });
    }
  }
  const inside = blocks.map(({ n, x, right }): [number, number] => [
    round(x / n),
    round((right + PULL * (x / n)) / (n + PULL)),
  ]);
  return [[0, 0], ...inside, [1, inside.at(-1)?.[1] ?? 1]];
}

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
  const pattern = new RegExp(`(export const ${name}[^=]*= )[^;]*;`);
  if (!pattern.test(before)) throw new Error(`${file} has no ${name}`);
  writeFileSync(
    path,
    before.replace(pattern, (_, head: string) => `${head}${text};`),
  );
}

if (values.rows !== undefined) {
  const byMethod = new Map<string, Case[]>();
  for (const { accusations } of rowsOf(values.rows))
    for (const { method, weight, right } of accusations)
      byMethod.set(method, [...(byMethod.get(method) ?? []), { stated: weight, right }]);
  const curves: string[] = [];
  console.log("| method | accusations | right | mean weight | at 0.5 | at 0.7 | at 0.9 |");
  console.log("|---|---|---|---|---|---|---|");
  for (const [method, cases] of [...byMethod].sort()) {
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
  if (values.write) put("reliability-table.ts", "RELIABILITY", `{\n${curves.join("\n")}\n}`);
}

if (values.calibrate !== undefined) {
  const rows = rowsOf(values.calibrate);
  const cases = rows.flatMap(({ probability, score }) =>
    probability === null ? [] : [{ stated: probability, right: score.right }],
  );
  const knots = isotonic(cases);
  console.log(`\n${cases.length} verdicts with a suspect; knots ${JSON.stringify(knots)}`);
  if (values.write) put("calibration-table.ts", "KNOTS", JSON.stringify(knots));
  for (const kind of ["healthy", "undetermined", "hang", "fail-slow"]) {
    const nobody = rows.filter(
      ({ verdict }) => verdict.kind === kind && verdict.suspects.length === 0,
    );
    const right = nobody.filter(({ score }) => score.right).length;
    console.log(`nobody accused, ${kind}: ${right} of ${nobody.length} right`);
  }
}
