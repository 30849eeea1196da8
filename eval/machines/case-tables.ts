/** Tables of the single cases: false alarms by size, dead machines, several culprits, time. */
import type { DeadOutcome } from "./dead-work.ts";
import type { HealthyOutcome } from "./healthy-work.ts";
import type { ManyOutcome, NicOutcome } from "./many-work.ts";
import { SIZES, sizeName } from "./mix-tables.ts";
import { OURS } from "./ours.ts";
import { shareWords, table } from "./scores.ts";
import type { TaskOutcome } from "./task-work.ts";
import type { TimeOutcome } from "./time-work.ts";

/** Alarms a call that somebody on duty would bear. */
const MOST_ALARMS = 0.005;

/** Fewer calls cannot tell. */
const LEAST_CALLS = 200;

function targetWords(alarms: number, calls: number): string {
  if (calls < LEAST_CALLS) return "too few calls to say";
  return alarms <= MOST_ALARMS * calls ? "met" : "missed";
}

export function alarmTable(calls: readonly HealthyOutcome[], mix: readonly TaskOutcome[]): string {
  const rows = SIZES.map(([least]) => {
    const name = sizeName(least);
    const answers = [
      ...calls.filter(({ machines }) => sizeName(machines) === name).map(({ answer }) => answer),
      ...mix
        .filter(({ isFaulty, machines }) => !isFaulty && sizeName(machines) === name)
        .map(({ ours }) => ours[OURS]!),
    ];
    const alarms = answers.filter(({ first }) => first !== "nobody");
    return [
      name,
      shareWords(alarms.length, answers.length),
      targetWords(alarms.length, answers.length),
      String(alarms.filter(({ isBroken }) => isBroken).length),
      String(answers.reduce((sum, { exporter }) => sum + exporter, 0)),
    ];
  });
  const head = [
    "",
    "calls with an alarm, 95 %",
    "target of 0.5 % a call",
    "of these on a machine with a broken exporter",
    "told to look at the exporter, rightly",
  ];
  return table(head, rows);
}

export function deadTable(outcomes: readonly DeadOutcome[], continuityS: number): string {
  const keys = [...new Set(outcomes.map(({ stepS, reaction }) => `${stepS} s, ${reaction}`))];
  const rows = keys.map((key) => {
    const cases = outcomes.filter(({ stepS, reaction }) => `${stepS} s, ${reaction}` === key);
    const delays = cases.map(({ delayS }) => delayS);
    const most = 2 * cases[0]!.stepS + continuityS;
    const inTime = delays.filter((delay) => delay !== null && delay <= most).length;
    const minder = (answer: DeadOutcome["minder"]): number =>
      cases.filter((one) => one.minder === answer).length;
    return [
      key,
      delays.map((delay) => (delay === null ? "never" : String(delay))).join(", "),
      `${inTime}/${cases.length} within ${most} s`,
      `${minder("right")} right, ${minder("wrong")} another, ${minder("nobody")} nobody`,
    ];
  });
  const head = [
    "interval, the others",
    "seconds until named first",
    "in time",
    "Minder, 420 s after",
  ];
  return table(head, rows);
}

export function nicTable(bad: readonly NicOutcome[], healthy: readonly NicOutcome[]): string {
  const both = (of: (one: NicOutcome) => number): string =>
    shareWords(bad.filter((one) => of(one) === 2).length, bad.length);
  const minder = (answer: NicOutcome["minder"]): string =>
    shareWords(bad.filter((one) => one.minder === answer).length, bad.length);
  const healthyNamed = healthy.filter(({ others }) => others > 0).length;
  const healthyMinder = healthy.filter((one) => one.minder !== "nobody").length;
  return table(
    ["", "ours", "Minder, every NIC as a machine"],
    [
      ["both machines named", both(({ machines }) => machines), "names one at most"],
      ["both with the right NIC", both(({ nics }) => nics), ""],
      ["one of the bad NICs named", "", minder("right")],
      ["the two farthest NICs are the bad ones", "", both(({ farthest }) => farthest)],
      [
        "a sound one named",
        shareWords(bad.filter(({ others }) => others > 0).length, bad.length),
        minder("wrong"),
      ],
      [
        "somebody named, all NICs sound",
        shareWords(healthyNamed, healthy.length),
        shareWords(healthyMinder, healthy.length),
      ],
    ],
  );
}

export function manyTable(outcomes: readonly ManyOutcome[]): string {
  const kinds = [...new Set(outcomes.map(({ what }) => what))];
  const rows = kinds.map((kind) => {
    const cases = outcomes.filter(({ what }) => what === kind);
    const sum = (of: (one: ManyOutcome) => number): number =>
      cases.reduce((total, one) => total + of(one), 0);
    const culprits = sum(({ culprits }) => culprits);
    const visible = cases.filter((one) => one.isVisible);
    return [
      kind,
      String(cases.length),
      `${sum(({ named }) => named)}/${culprits}`,
      cases.map(({ named, culprits }) => `${named}/${culprits}`).join(" "),
      `${visible.filter(({ named, culprits }) => named === culprits).length} of ${visible.length}`,
      String(sum(({ others }) => others)),
      `${cases.filter(({ minder }) => minder === "right").length}/${culprits}`,
      String(cases.filter(({ minder }) => minder === "wrong").length),
    ];
  });
  const head = [
    "",
    "tasks",
    "culprits named, ours",
    "task by task",
    "all of them, in tasks where the fault is visible",
    "others named, ours",
    "culprits named, Minder (one a task at most)",
    "others named, Minder",
  ];
  return table(head, rows);
}

export function timeTable(outcomes: readonly TimeOutcome[]): string {
  const ms = (value: number): string => Math.round(value).toLocaleString("en");
  const rows = outcomes.map(({ machines, makeMs, oursMs, sevenMs, minderMs, strideMs }) => [
    String(machines),
    ms(oursMs),
    ms(sevenMs),
    ms(minderMs),
    ms(strideMs),
    ms(makeMs),
  ]);
  const head = [
    "machines",
    "ours, all metrics, ms",
    "ours, Minder's seven metrics, ms",
    "Minder, stride 1, ms",
    "Minder, stride 5, ms",
    "(simulating it, ms)",
  ];
  return table(head, rows);
}
