/**
 * Simulated jobs of 8 to 256 GPUs through the files that `diagnose` reads, against known truth:
 * `node --import tsx eval/localize/files.ts [--cases N] [--seed N] [--emit flight-recorder]`.
 * A fault that lengthens iterations by less than 3 % is counted apart: there must be no wrong accusation.
 */
import { parseArgs } from "node:util";
import { median } from "../../src/maths/robust.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../../src/simulate/run.ts";
import { diagnoseFiles } from "../../test/support/in-memory.ts";
import { groupBy } from "../../src/base/group-by.ts";
import type { Suspect, Verdict } from "../../src/model/verdict.ts";
import { SURE } from "../recordings/tally.ts";
import { drawFileCase, FILE_KINDS, type FileCase } from "./file-cases.ts";

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "220" },
    seed: { type: "string", default: "70000" },
    emit: { type: "string", default: "flight-recorder,logs" },
    only: { type: "string" },
    seeds: { type: "string" },
    quiet: { type: "boolean" },
  },
});

const DECIDABLE = 0.03;
interface Count {
  all: number;
  exact: number;
  cause: number;
  none: number;
  wrong: number;
  within: number;
  /** With exact suspects and the true cause as one of two that the answer leaves open. */
  open: number;
  sureAndWrong: number;
}
const decidable = new Map<string, Count>();
const faint = new Map<string, Count>();

const first = Number(values.seed);
const seeds =
  values.seeds?.split(",").map(Number) ??
  Array.from({ length: Number(values.cases) }, (_, i) => first + i);
for (const seed of seeds) {
  const one = drawFileCase(seed);
  if (values.only !== undefined && !values.only.split(",").includes(one.kind)) continue;
  const output = memoryOutput();
  runSimulation(one.spec, values.emit.split(","), output);
  const verdict = await diagnoseFiles([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
  const growth = one.fault === "" ? 1 : growthOf(one);
  const table = growth >= DECIDABLE ? decidable : faint;
  const count = table.get(one.kind) ?? {
    all: 0,
    exact: 0,
    cause: 0,
    none: 0,
    wrong: 0,
    within: 0,
    open: 0,
    sureAndWrong: 0,
  };
  table.set(one.kind, count);
  count.all++;
  const blamed = [...new Set(verdict.suspects.flatMap(({ ranks }) => ranks))].sort((a, b) => a - b);
  const exact = blamed.join() === one.ranks.join();
  if (exact) count.exact++;
  const isTrue = ({ cause }: Suspect): boolean => one.causes.includes(cause);
  const isRight = exact && verdict.suspects.every(isTrue);
  const pairs = [...groupBy(verdict.suspects, ({ ranks }) => ranks.join()).values()];
  const isOpen = exact && !isRight && pairs.every((own) => own.some(isTrue));
  // Who says nothing of a faint fault says nothing false.
  const isSilent = growth < DECIDABLE && blamed.length === 0;
  if (isRight) count.cause++;
  if (isOpen) count.open++;
  if (!isRight && !isOpen && !isSilent && verdict.confidence >= SURE) count.sureAndWrong++;
  if (!exact && one.ranks.length > 0 && one.ranks.every((rank) => blamed.includes(rank)))
    count.within++;
  if (blamed.length === 0) count.none++;
  if (blamed.length > 0 && !blamed.some((rank) => one.ranks.includes(rank))) count.wrong++;
  const isBad = growth >= DECIDABLE ? !exact : !exact && blamed.length > 0;
  if (isBad && values.quiet !== true) tell(one, verdict, growth, blamed);
}
print(
  `faults that lengthen iterations by ${100 * DECIDABLE} % and more, and healthy jobs`,
  decidable,
);
print("fainter ones", faint);
sumUp("all that can be decided", decidable);
sumUp("fainter ones", faint);

function growthOf({ spec }: FileCase): number {
  const since = spec.faults[0]!.from;
  const times = (given: ClusterSpec): number[] => {
    const all: number[] = [];
    for (const { iteration, startNs, endNs } of simulate(given).iterations())
      if (iteration >= since) all.push((endNs - startNs) / 1e6);
    return all;
  };
  const [slow, usual] = [times(spec), times({ ...spec, faults: [] })];
  // Spikes are rare: what the slow ones among them cost.
  const ratios = slow.map((ms, i) => ms / usual[i]!).sort((a, b) => b - a);
  return median(ratios.slice(0, Math.max(4, Math.ceil(ratios.length / 4)))) - 1;
}

function tell(one: FileCase, verdict: Verdict, growth: number, blamed: readonly number[]): void {
  const { gpus, tp, pp, dp, ep, cp, schedule, microBatches, layersPerStage } = one.spec;
  const shape = `${gpus} tp${tp} pp${pp} dp${dp} ep${ep} cp${cp} ${schedule} mb${microBatches} l${layersPerStage}`;
  console.error(
    `${one.seed} ${one.kind} | ${shape} | ${one.fault} | +${(100 * growth).toFixed(1)} % | truth ${one.ranks.join()} | said ${verdict.kind} ${blamed.join()} ${verdict.suspects[0]?.cause ?? ""} ${verdict.confidence}`,
  );
}

function print(title: string, table: ReadonlyMap<string, Count>): void {
  console.log(
    `\n${title}\n\n| | jobs | exact | and cause | among others | nobody | wrong |\n|---|---|---|---|---|---|---|`,
  );
  for (const kind of FILE_KINDS) {
    const count = table.get(kind);
    if (count) {
      const { all, exact, cause, within, none, wrong } = count;
      console.log(`| ${kind} | ${all} | ${exact} | ${cause} | ${within} | ${none} | ${wrong} |`);
    }
  }
}

/** "right" is exact suspects with the true cause; of fainter faults, who names nobody is among the wrong ones, and never sure. */
function sumUp(title: string, table: ReadonlyMap<string, Count>): void {
  const sum = (of: (count: Count) => number): number =>
    [...table.values()].reduce((total, count) => total + of(count), 0);
  const [all, right, open] = [
    sum((one) => one.all),
    sum((one) => one.cause),
    sum((one) => one.open),
  ];
  const accused = table.get("healthy");
  const forNothing = accused ? accused.all - accused.none : 0;
  console.log(
    `\n${title}: right ${right} of ${all}, open ${open}, wrong ${all - right - open}, sure and wrong ${sum((one) => one.sureAndWrong)}, accused for nothing ${forNothing}`,
  );
}
