/** The tables that `npm run eval -- joint` prints. */
import { calibrationError, reliability, shareOf, shareText } from "./figures.ts";
import type { Row } from "./examine.ts";

/** ≥ 97 % with all inputs, ≥ 90 % with any one removed, calibration ≤ 0.05, healthy accused ≤ 0.5 %. */
export function printTables(rows: readonly Row[], log: (line: string) => void): void {
  const all = rows.filter(({ inputs }) => inputs === "all");
  const main = all.length > 0 ? all : rows;
  log("\n## By inputs\n");
  log(
    "| inputs | jobs | component and cause | component | one component | machine | cause's very word | kind | innocent accused |",
  );
  log("|---|---|---|---|---|---|---|---|---|");
  for (const [inputs, some] of by(rows, (row) => row.inputs)) log(line(inputs, some));
  log("\n## Of jobs with a fault\n");
  log(
    "| inputs | jobs | component and cause | component | one component | machine | cause's very word | kind | innocent accused |",
  );
  log("|---|---|---|---|---|---|---|---|---|");
  for (const [inputs, some] of by(
    rows.filter(({ truths }) => truths.length > 0),
    (row) => row.inputs,
  ))
    log(line(inputs, some));
  log("\n## Healthy jobs\n");
  log("| inputs | jobs | accused |");
  log("|---|---|---|");
  for (const [inputs, some] of by(
    rows.filter(({ truths }) => truths.length === 0),
    (row) => row.inputs,
  ))
    log(
      `| ${inputs} | ${some.length} | ${shareText(shareOf(some.map(({ score }) => score.accused)))} |`,
    );
  for (const [title, key] of [
    ["family", (row: Row) => row.family],
    ["misleading element", (row: Row) => row.misleading],
    ["GPUs", (row: Row) => String(row.gpus)],
  ] as const) {
    log(`\n## By ${title}, ${main[0]?.inputs ?? "no"} inputs\n`);
    log(
      `| ${title} | jobs | component and cause | component | one component | machine | cause's very word | kind | innocent accused |`,
    );
    log("|---|---|---|---|---|---|---|---|---|");
    for (const [name, some] of by(main, key)) log(line(name, some));
  }
  printAlone(main, log);
  printCalibration(main, log);
}

function line(name: string, rows: readonly Row[]): string {
  const of = (key: keyof Row["score"]): string =>
    shareText(shareOf(rows.map(({ score }) => score[key])));
  return `| ${name} | ${rows.length} | ${of("right")} | ${of("component")} | ${of("exact")} | ${of("machine")} | ${of("word")} | ${of("kind")} | ${of("accused")} |`;
}

/** A method that found nothing said that nothing is wrong. */
function printAlone(rows: readonly Row[], log: (line: string) => void): void {
  const methods = [...new Set(rows.flatMap(({ alone }) => Object.keys(alone)))].sort();
  const right = (row: Row, method: string): boolean =>
    row.alone[method]?.right ?? row.truths.length === 0;
  const shares = methods
    .map((method) => ({ method, share: shareOf(rows.map((row) => right(row, method))) }))
    .sort((a, b) => b.share.right - a.share.right);
  log("\n## What each method alone would have answered\n");
  log("| method | component and cause |");
  log("|---|---|");
  for (const { method, share } of shares) log(`| ${method} | ${shareText(share)} |`);
  const any = shareOf(rows.map((row) => methods.some((method) => row.alone[method]?.right)));
  log(`| (any of them) | ${shareText(any)} |`);
  const together = shareOf(rows.map(({ score }) => score.right));
  const best = shares[0];
  if (best) {
    const points = (100 * (together.right - best.share.right)) / Math.max(1, together.of);
    log(
      `\nAll together: ${shareText(together)}, ${points.toFixed(1)} points more than ${best.method} alone`,
    );
  }
}

function printCalibration(rows: readonly Row[], log: (line: string) => void): void {
  const bins = reliability(
    rows.map(({ verdict, score }) => ({ confidence: verdict.confidence, right: score.right })),
  );
  log("\n## How far confidence can be trusted\n");
  log("| confidence | jobs | mean confidence | right |");
  log("|---|---|---|---|");
  for (const { from, to, count, confidence, right } of bins)
    if (count > 0)
      log(
        `| ${from.toFixed(1)} to ${to.toFixed(1)} | ${count} | ${confidence.toFixed(3)} | ${right.toFixed(3)} |`,
      );
  log(
    `\nExpected calibration error: ${calibrationError(bins).toFixed(3)} (${rows.length} jobs, ten bins)`,
  );
}

/** What went wrong, a line a job: what to look at next. */
export function failureText(row: Row): string {
  const [truth] = row.truths;
  const [suspect] = row.verdict.suspects;
  const where = truth
    ? `${truth.kind} ${truth.cause} of ${truth.name ?? truth.link?.join("–") ?? `rank ${truth.ranks[0]}`}${truth.ranks.length > 1 && truth.machine ? ` (${truth.machine})` : ""}`
    : "nothing";
  const said = suspect
    ? `${suspect.cause} of ${suspect.name ?? ""} ${suspect.type} ${suspect.ranks.slice(0, 4).join()} (${suspect.machine})`
    : "nobody";
  const grows = row.growth > 0 ? ` +${(100 * row.growth).toFixed(0)} %` : "";
  return `seed ${row.seed} ${row.gpus} GPUs ${row.layout} ${row.family}${grows} / ${row.misleading}${row.lost ? ` (${row.lost})` : ""} [${row.inputs}]: true is ${where}; said ${row.verdict.kind}, ${said}, ${row.verdict.confidence}`;
}

function by(rows: readonly Row[], key: (row: Row) => string): [string, Row[]][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return [...groups];
}
