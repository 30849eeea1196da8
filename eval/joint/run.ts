/**
 * One truth, told by operators, metrics, logs and stacks, often with something that misleads:
 * `npm run eval -- joint [--quick] [--count N] [--seed S] [--gpus N] [--faint] [--kinds all,no-logs,…] [--json FILE]`.
 * Jobs above 256 GPUs (--reduced-up-to N) are asked about with all inputs only. Prints tables and every wrong answer; --json writes a row a scenario and set of inputs, --rows FILE,… prints the tables
 * of such rows again, of several runs together.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { drawScenario, type DrawOptions } from "./scenarios/draw-scenario.ts";
import { FAINT_COST } from "./scenarios/draw-fault.ts";
import type { Family, Misleading } from "./scenarios/scenario.ts";
import { examine, INPUT_SETS, type Row } from "./examine.ts";
import { failureText, printTables } from "./tables.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    count: { type: "string" },
    seed: { type: "string", default: "1" },
    seeds: { type: "string" },
    gpus: { type: "string" },
    family: { type: "string" },
    misleading: { type: "string" },
    kinds: { type: "string" },
    json: { type: "string" },
    rows: { type: "string" },
    "reduced-up-to": { type: "string", default: "256" },
    faint: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
});

if (values.rows !== undefined) {
  const known = values.rows
    .split(",")
    .flatMap((path) => readFileSync(path, "utf8").split("\n"))
    .filter((text) => text !== "")
    .map((text) => JSON.parse(text) as Row);
  printTables(known, (line) => console.log(line));
  process.exit(0);
}

const QUICK_SIZES = [64, 64, 128];
const count = Number(values.count ?? (values.quick ? 12 : 300));
const first = Number(values.seed);
const seeds =
  values.seeds?.split(",").map(Number) ?? Array.from({ length: count }, (_, i) => first + i);
const inputs = (values.kinds ?? Object.keys(INPUT_SETS).join()).split(",");
const unknown = inputs.find((name) => !(name in INPUT_SETS));
if (unknown !== undefined) {
  console.error(`eval joint: --kinds ${unknown} is none of ${Object.keys(INPUT_SETS).join(", ")}`);
  process.exit(2);
}

const began = performance.now();
const json = values.json === undefined ? null : openSync(values.json, "w");
const rows: Row[] = [];
for (const [i, seed] of seeds.entries()) {
  const options: DrawOptions = {
    ...(values.gpus !== undefined
      ? { gpus: Number(values.gpus) }
      : values.quick
        ? { gpus: QUICK_SIZES[seed % QUICK_SIZES.length]! }
        : {}),
    ...(values.faint ? { cost: FAINT_COST } : {}),
    ...(values.family === undefined ? {} : { family: values.family as Family }),
    ...(values.misleading === undefined ? {} : { misleading: values.misleading as Misleading }),
  };
  try {
    const scenario = drawScenario(seed, options);
    // Five verdicts of a large job take minutes, and what is missing weighs the same at any size.
    const isLarge = scenario.spec.gpus > Number(values["reduced-up-to"]);
    const sets = isLarge && inputs.includes("all") ? ["all"] : inputs;
    const examined = await examine(scenario, sets);
    rows.push(...examined);
    for (const row of examined) {
      if (json !== null) writeSync(json, `${JSON.stringify(row)}\n`);
      if (!row.score.right || values.verbose)
        console.log(`${row.score.right ? "right" : "WRONG"} ${failureText(row)}`);
    }
  } catch (error) {
    console.log(
      `seed ${seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
    process.exitCode = 1;
  }
  if (process.stderr.isTTY) process.stderr.write(`\r${i + 1} of ${seeds.length} `);
}
if (json !== null) closeSync(json);
printTables(rows, (line) => console.log(line));
const written = rows.filter(({ inputs: name }) => name === inputs[0]);
const most = (key: keyof Row["seconds"]): string =>
  Math.max(0, ...rows.map(({ seconds }) => seconds[key])).toFixed(1);
console.log(
  `\n${written.length} scenarios from seed ${first}, ${rows.length} verdicts, ${((performance.now() - began) / 1000).toFixed(0)} s; ` +
    `at most ${most("write")} s to write a job, ${most("read")} s to read it, ${most("answer")} s to answer`,
);
