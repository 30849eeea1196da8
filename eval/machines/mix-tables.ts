/** The mix of tasks as tables: every method side by side, then ours by type, size and interval. */
import { Rates } from "../traces/rates.ts";
import { THRESHOLDS, VARIANT_NAMES, type VariantName } from "./minder-sweep.ts";
import { OURS, PIECES, SAME_TASKS } from "./ours.ts";
import { chosenThreshold, ratesOf, scoresOf, shareWords, table, type Asked } from "./scores.ts";
import type { TaskOutcome } from "./task-work.ts";

/** Figure 9. The others are bars in Figures 12 to 15, without figures. */
const PAPER: Readonly<Partial<Record<VariantName, string>>> = {
  minder: "0.904 / 0.883 / 0.893",
  MD: "0.788 / 0.767 / 0.777",
};

interface Row {
  readonly name: string;
  readonly threshold: string;
  readonly paper: string;
  readonly asked: Asked;
}

function rowsOf(tuning: readonly TaskOutcome[]): Row[] {
  const ours = [OURS, ...Object.keys(PIECES), SAME_TASKS].map((name) => ({
    name: name === OURS || name === SAME_TASKS ? name : `ours ${name}`,
    threshold: "",
    paper: "",
    asked: (outcome: TaskOutcome) => outcome.ours[name],
  }));
  if (tuning.length === 0) return ours;
  const minder = VARIANT_NAMES.map((name) => {
    const at = chosenThreshold(tuning, name);
    return {
      name: name === "minder" ? "Minder" : `Minder, ${name}`,
      threshold: String(THRESHOLDS[at]),
      paper: PAPER[name] ?? "",
      asked: ({ minder }: TaskOutcome) => minder[name][at],
    };
  });
  return [...ours, ...minder];
}

export const isVisible = ({ isFaulty, seenIn }: TaskOutcome): boolean =>
  !isFaulty || seenIn.length > 0;

export function mixTable(mix: readonly TaskOutcome[], tuning: readonly TaskOutcome[]): string {
  const rows = rowsOf(tuning).map(({ name, threshold, paper, asked }) => {
    const scores = scoresOf(mix, asked);
    const { right, wrong, missed, alarms, healthy } = scores;
    const { precision, recall, f1 } = ratesOf(scores, false);
    return [
      name,
      threshold,
      `${right}, ${wrong} + ${missed}, ${alarms}`,
      [precision, recall, f1].map((rate) => rate.toFixed(3)).join(" / "),
      shareWords(right, right + wrong + missed),
      shareWords(alarms, healthy),
      paper,
    ];
  });
  const head = [
    "",
    "threshold",
    "TP, FN (wrong + nobody), FP",
    "precision / recall / F1",
    "recall, 95 %",
    "healthy tasks with an alarm, 95 %",
    "paper: precision / recall / F1",
  ];
  return table(head, rows);
}

export function strictTable(mix: readonly TaskOutcome[], tuning: readonly TaskOutcome[]): string {
  const rows = rowsOf(tuning).map(({ name, asked }) => {
    const scores = scoresOf(mix, asked);
    const strict = ratesOf(scores, true);
    const seen = scoresOf(mix.filter(isVisible), asked);
    const visible = ratesOf(seen, false);
    return [
      name,
      `${strict.precision.toFixed(3)} / ${strict.f1.toFixed(3)}`,
      shareWords(seen.right, seen.right + seen.wrong + seen.missed),
      visible.f1.toFixed(3),
      String(scores.extra),
      `${scores.alarmsBroken} of ${scores.alarms}`,
      String(scores.exporter),
      String(scores.weakCulprits),
    ];
  });
  const head = [
    "",
    "strict precision / F1",
    "recall, visible faults, 95 %",
    "F1, visible faults",
    "machines named that are no culprits, in faulty tasks",
    "alarms on machines with a broken exporter",
    "told to look at the exporter, rightly",
    "so told of the culprit (counts as missed)",
  ];
  return table(head, rows);
}

/** Whether a model that takes noise away adds anything, at equal tuning. */
export function vaeWords(mix: readonly TaskOutcome[], tuning: readonly TaskOutcome[]): string {
  if (tuning.length === 0) return "";
  const f1 = (asked: Asked): string => ratesOf(scoresOf(mix, asked), false).f1.toFixed(3);
  const variant = (name: VariantName): string => {
    const at = chosenThreshold(tuning, name);
    return f1(({ minder }) => minder[name][at]);
  };
  return [
    "Does the VAE add anything? At equal tuning F1 is",
    `${variant("minder")} with its latent variable, ${variant("reconstruction")} with its reconstruction and ${variant("RAW")} on the samples as they are (RAW);`,
    `our detector has ${f1(({ ours }) => ours[SAME_TASKS])} on the samples and ${f1(({ ours }) => ours["with VAE"])} behind the VAE (tasks of up to 200 machines).`,
    "The simpler one, without a model, is the default.",
  ].join(" ");
}

export const SIZES: readonly (readonly [least: number, most: number])[] = [
  [4, 8],
  [9, 32],
  [33, 128],
  [129, 600],
  [601, 1500],
];

export const sizeName = (machines: number): string => {
  const [least, most] = SIZES.find(([, most]) => machines <= most) ?? SIZES.at(-1)!;
  return `${least} to ${most} machines`;
};

const DURATIONS = ["under 4 min", "4 to 5 min", "over 5 min"];
const durationName = (lastsS: number): string =>
  DURATIONS[lastsS < 240 ? 0 : lastsS < 300 ? 1 : 2]!;

/** Ours, by what the fault was. */
export function breakdowns(mix: readonly TaskOutcome[], tuning: readonly TaskOutcome[]): string {
  const at = tuning.length === 0 ? 0 : chosenThreshold(tuning, "minder");
  const faulty = mix.filter(({ isFaulty }) => isFaulty);
  const by = (
    title: string,
    of: (outcome: TaskOutcome) => string,
    kinds: readonly string[],
  ): string => {
    const all = new Rates("ours");
    const seen = new Rates("ours, visible faults");
    const minder = new Rates(`Minder, threshold ${THRESHOLDS[at]}`);
    for (const outcome of faulty) {
      const isRight = outcome.ours[OURS]?.first === "right";
      all.add(of(outcome), isRight);
      if (isVisible(outcome)) seen.add(of(outcome), isRight);
      if (tuning.length > 0) minder.add(of(outcome), outcome.minder.minder[at]!.first === "right");
    }
    return `${title}\n\n${Rates.columns(
      tuning.length > 0 ? [all, seen, minder] : [all, seen],
      kinds.filter((kind) => faulty.some((one) => of(one) === kind)),
    )}\n`;
  };
  const distinct = (values: readonly string[]): string[] => [...new Set(values)];
  const types = distinct(faulty.map(({ type }) => type!)).sort();
  const steps = [1, 5, 10, 15, 30].map((stepS) => `${stepS} s`);
  return [
    by("By type of fault (the paper's Figure 10):", ({ type }) => type!, types),
    by(
      "By size:",
      ({ machines }) => sizeName(machines),
      SIZES.map(([least]) => sizeName(least)),
    ),
    by("By sampling interval:", ({ stepS }) => `${stepS} s`, steps),
    by("By how long it lasts within the data:", ({ lastsS }) => durationName(lastsS), DURATIONS),
  ].join("\n");
}
