/**
 * Which machine is going bad, on simulated tasks with known truth, ours beside Minder and its variants:
 *
 *   npm run eval -- machines [--quick] [--faults N] [--seed S] [--workers N] [--only-ours]
 *
 * N faulty tasks and as many healthy ones as Minder §6 had them (150, 4 to 1,500 machines), every one from its own seed;
 * thresholds of Minder chosen on other seeds; then false alarms by size, machines that die, several culprits, time.
 * Prints Markdown; wrong answers of ours and progress go to stderr.
 */
import { parseArgs } from "node:util";
import { CONTINUITY_S } from "../../src/methods/machines/find-machines.ts";
import { DEFAULT_OPTIONS } from "../../src/methods/machines/minder/options.ts";
import { drawTask } from "./fleet/draw-task.ts";
import { alarmTable, deadTable, manyTable, nicTable, timeTable } from "./case-tables.ts";
import { THRESHOLDS } from "./minder-sweep.ts";
import { breakdowns, isVisible, mixTable, SIZES, strictTable, vaeWords } from "./mix-tables.ts";
import { OURS, PIECES } from "./ours.ts";
import { Pool } from "./pool.ts";
import { chosenThreshold } from "./scores.ts";
import type { TaskInput, TaskOutcome } from "./task-work.ts";

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    faults: { type: "string" },
    seed: { type: "string" },
    workers: { type: "string", default: "2" },
    "only-ours": { type: "boolean", default: false },
  },
});
const { quick } = given;
/** Whoever looks into what the quick run got wrong has not seen the other seeds. */
const SEED = Number(given.seed ?? (quick ? 700_000 : 900_000));
const FAULTS = Number(given.faults ?? (quick ? 16 : 150));
const TUNING_SEED = 600_000;
/** Half of them faulty. */
const TUNING = quick ? 16 : 40;
/** The quick run leaves out what takes minutes. */
const MOST_MACHINES = quick ? 128 : Infinity;
const MOST_TUNING_MACHINES = quick ? 64 : Infinity;
const SMALL_CALLS = quick ? 24 : 400;
const SMALL = SIZES.slice(0, 3);
const DEAD = quick ? 1 : 8;
const NICS = quick ? 6 : 20;
const TWO = quick ? 4 : 20;
const SWITCHES = quick ? 1 : 5;
const TIMED = quick ? [8, 32, 128] : [8, 32, 128, 512, 1024, 1500];

const ONLY_OURS = given["only-ours"];

const pool = new Pool(Number(given.workers));

/** As many seeds from `first` on as are wanted; those with too many machines are passed over. */
function drawn(
  first: number,
  count: number,
  isFaulty: boolean,
  most: number,
  asks: TaskInput["asks"],
) {
  const inputs: TaskInput[] = [];
  let passed = 0;
  for (let seed = first; inputs.length < count; seed++) {
    if (drawTask(seed, isFaulty).machines <= most) inputs.push({ seed, isFaulty, asks });
    else passed++;
  }
  return { inputs, passed };
}

/** The largest first, so that no worker is left with one of them at the end. */
async function runTasks(inputs: readonly TaskInput[]): Promise<TaskOutcome[]> {
  const size = ({ seed, isFaulty }: TaskInput): number => drawTask(seed, isFaulty).machines;
  return await pool.run(
    "task",
    [...inputs].sort((a, b) => size(b) - size(a)),
  );
}

const span = (inputs: readonly { readonly seed: number }[]): string =>
  `${inputs[0]!.seed} to ${inputs.at(-1)!.seed}`;
const range = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => first + i);

async function writeMix(): Promise<{ mix: TaskOutcome[]; tuning: TaskOutcome[] }> {
  const tuned = [true, false].map((isFaulty, half) =>
    drawn(TUNING_SEED + half * (TUNING / 2), TUNING / 2, isFaulty, MOST_TUNING_MACHINES, "minder"),
  );
  const asks = ONLY_OURS ? "ours" : "all";
  const faulty = drawn(SEED, FAULTS, true, MOST_MACHINES, asks);
  const healthy = drawn(SEED + 10_000, FAULTS, false, MOST_MACHINES, asks);
  const tuning = ONLY_OURS ? [] : await runTasks(tuned.flatMap(({ inputs }) => inputs));
  const mix = await runTasks([...faulty.inputs, ...healthy.inputs]);
  const faults = mix.filter(({ isFaulty }) => isFaulty);
  const invisible = faults.filter((one) => !isVisible(one)).length;
  const onlyDisk = faults.filter(({ seenIn }) => seenIn.join() === "disk").length;
  const checked = [...mix, ...tuning].reduce((sum, one) => sum + one.checked, 0);
  const differing = [...mix, ...tuning].reduce((sum, one) => sum + one.differing, 0);
  console.log(`## ${FAULTS} faulty and ${FAULTS} healthy tasks as in Minder §6\n`);
  console.log(
    [
      `Faulty: seeds ${span(faulty.inputs)}; healthy: ${span(healthy.inputs)}. ${quick ? `Passed over, more than ${MOST_MACHINES} machines: ${faulty.passed + healthy.passed}.` : "No seed is passed over."}`,
      ONLY_OURS
        ? "Ours alone (--only-ours); nothing of it is chosen here."
        : `Minder's threshold is chosen for every variant alike, from ${THRESHOLDS.join(", ")} by F1, on ${tuning.length} other tasks (faulty: seeds ${span(tuned[0]!.inputs)}, healthy: ${span(tuned[1]!.inputs)}${quick ? `; passed over, more than ${MOST_TUNING_MACHINES} machines: ${tuned[0]!.passed + tuned[1]!.passed}` : ""}). Ours has nothing chosen here; its constants come from other seeds of the same simulator.`,
      "Minder takes a window at every sample up to 200 machines, at every fifth up to 600 (CON and INT: tenth), then at every tenth (twentieth).",
      "TP: the right machine is named first. FN: another first, or nobody, during a fault. FP: somebody named in a healthy task. Precision depends on there being as many healthy tasks as faulty ones.",
      'A machine of which only a GPU\'s samples are gone while the job goes on is named with a score of 0.5 and "look at its exporter first": where its exporter is indeed broken that is no accusation, and counted apart; anywhere else it is an alarm; for a culprit it is not enough and counts as missed.',
      `Nothing is left out of the first table. ${invisible} of ${faults.length} faults show in no metric that the task's site records, have no state and take no samples away; ${onlyDisk} more show in disk usage alone, and count as visible.`,
      ONLY_OURS
        ? ""
        : `Minder's answers come from one pass over all thresholds; of ${checked} asked of runMinder as well, ${differing} differ.`,
    ].join("\n"),
  );
  console.log(`\n${mixTable(mix, tuning)}\n`);
  for (const [name, what] of Object.entries(PIECES)) console.log(`- ours ${name}: ${what}`);
  console.log(`\n${vaeWords(mix, tuning)}\n`);
  console.log("Strictly, a wrong machine named first during a fault is FN and FP:\n");
  console.log(`${strictTable(mix, tuning)}\n`);
  console.log(`## Our recall, by fault\n\n${breakdowns(mix, tuning)}`);
  for (const { seed, isFaulty, ours, machines, type, seenIn, said } of mix) {
    const { first, extra } = ours[OURS]!;
    if (isFaulty ? first !== "right" || extra > 0 : first !== "nobody")
      console.error(
        `${isFaulty ? "faulty" : "healthy"} ${seed}: ${first}, ${machines} machines, ${type ?? ""} seen in [${seenIn.join()}], ${said}`,
      );
  }
  return { mix, tuning };
}

async function writeAlarms(mix: readonly TaskOutcome[]): Promise<void> {
  const inputs = SMALL.flatMap(([least, most], group) =>
    range(SEED + 20_000 + 2000 * group, SMALL_CALLS).map((seed) => ({ seed, least, most })),
  );
  const calls = await pool.run("healthy", inputs);
  console.log("## False alarms a call, ours\n");
  console.log(
    `A call sees 15 to 25 minutes. ${SMALL_CALLS} calls for each of the small sizes (seeds from ${SMALL.map((_, group) => SEED + 20_000 + 2000 * group).join(", ")}), and the healthy tasks of above.\n`,
  );
  console.log(`${alarmTable(calls, mix)}\n`);
  for (const { seed, machines, answer, said } of calls)
    if (answer.first !== "nobody") console.error(`healthy ${seed}: ${machines} machines, ${said}`);
}

async function writeDead(threshold: number): Promise<void> {
  const inputs = [1, 15, 30].flatMap((stepS) =>
    (["wait", "none"] as const).flatMap((reaction) =>
      range(SEED + 30_000, DEAD).map((seed) => ({ seed, stepS, reaction, threshold })),
    ),
  );
  const outcomes = await pool.run("dead", inputs);
  console.log("## A machine that dies\n");
  console.log(
    `All its samples stop; the others wait for it, or (none) do not notice. 8 to 64 machines, seeds ${span(inputs)}; asked every 5 s, or at every sample. Must be: two intervals and the continuity, ${CONTINUITY_S} s. Minder (threshold ${threshold}) fills gaps with the nearest sample, so that the last value goes on; where the others wait it may see that this one alone seems to work.\n`,
  );
  console.log(`${deadTable(outcomes, CONTINUITY_S)}\n`);
}

async function writeMany(threshold: number): Promise<void> {
  const nics = (badMachines: number, first: number) =>
    range(first, NICS).map((seed) => ({ seed, badMachines, threshold }));
  const bad = await pool.run("nic", nics(2, SEED + 40_000));
  const healthy = await pool.run("nic", nics(0, SEED + 41_000));
  console.log("## NICs by the millisecond: 4 machines, 2 of them with one bad NIC (Minder §6.6)\n");
  console.log(
    `Seeds from ${SEED + 40_000}, sound ones from ${SEED + 41_000}. Minder (threshold ${threshold}) with a continuity of 1 s, for there are 3 s of data; two that are equally far take turns at being the farthest, which interrupts its runs, so that the farthest two by distance alone, as the paper tells it, have a row of their own.\n\n${nicTable(bad, healthy)}\n`,
  );
  const many = [
    ...range(SEED + 50_000, TWO).map((seed) => ({
      seed,
      what: "two machines" as const,
      threshold,
    })),
    ...(["switch, machines silent", "switch, NICs down"] as const).flatMap((what) =>
      range(SEED + 51_000, SWITCHES).map((seed) => ({ seed, what, threshold })),
    ),
  ];
  const outcomes = await pool.run("many", many);
  console.log("## Several machines at once\n");
  console.log(
    `Two of 16 to 128 with the same fault, types as in the mix (seeds from ${SEED + 50_000}); the 32 machines of a switch of 600 (from ${SEED + 51_000}): silent, or with their NICs down and all that this does to them.\n\n${manyTable(outcomes)}\n`,
  );
}

async function writeTime(): Promise<void> {
  const inputs = TIMED.map((machines) => ({ machines, seed: SEED + 60_000 }));
  const outcomes = await pool.run("time", inputs, 1);
  console.log("## Time of a call\n");
  console.log(
    `900 samples of every second, all metrics, nothing wrong (seed ${SEED + 60_000}), so that Minder goes through all of its seven; median of 3 calls, one process, Node ${process.version}.\n\n${timeTable(outcomes)}\n`,
  );
}

const { mix, tuning } = await writeMix();
const threshold = ONLY_OURS
  ? DEFAULT_OPTIONS.similarityThreshold
  : THRESHOLDS[chosenThreshold(tuning, "minder")]!;
await writeAlarms(mix);
await writeDead(threshold);
await writeMany(threshold);
await writeTime();
pool.close();
