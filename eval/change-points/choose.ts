/**
 * Chooses the prices of eval/change-points/online-changes.ts on made series, and confirms them on others:
 * `node --import tsx eval/change-points/choose.ts [TRAINING [CONFIRMATION]]` (counts of series). Five minutes.
 */
import { CHANGE_PRICES, OnlineChanges, type ChangePrices } from "./online-changes.ts";
import { mean, score, type Score } from "./scores.ts";
import { KINDS, syntheticSeries, type SyntheticSeries } from "./synthetic.ts";

const TRAINING = { first: 0, count: Number(process.argv[2] ?? 300) };
const CONFIRMATION = { first: 2_000_000, count: Number(process.argv[3] ?? 1000) };
const GRID: Readonly<Record<keyof ChangePrices, readonly number[]>> = {
  change: [15, 20, 25],
  slope: [1, 2, 3, 4],
  spread: [4, 8],
};

interface Seen extends Score {
  readonly series: SyntheticSeries;
  readonly reported: number;
  /** Points from a reported place to its report. */
  readonly delays: readonly number[];
}

function look({ first, count }: typeof TRAINING, prices: ChangePrices | null): Seen[] {
  return Array.from({ length: count }, (_, i) => {
    const series = syntheticSeries(first + i);
    const found: number[] = [];
    const delays: number[] = [];
    const detector = prices && new OnlineChanges(prices);
    series.values.forEach((value, now) => {
      const at = detector?.push(value) ?? null;
      if (at === null) return;
      found.push(at);
      delays.push(now - at);
    });
    const scores = score([series.changes], found, series.values.length);
    return { ...scores, series, reported: found.length, delays };
  });
}

function row(name: string, seen: readonly Seen[]): string {
  const f1 = mean(seen.map((one) => one.f1));
  const covering = mean(seen.map((one) => one.covering));
  const extra = mean(seen.map((one) => one.reported - one.series.changes.length));
  const figures = [f1, covering, (f1 + covering) / 2, extra].map((x) => x.toFixed(3));
  return `| ${[name, seen.length, ...figures].join(" | ")} |`;
}

const HEAD =
  "| | series | F1 | covering | mean | reported less true |\n| --- | --: | --: | --: | --: | --: |";

console.log(`Training\n\n${HEAD}`);
console.log(row("never report", look(TRAINING, null)));
let best = CHANGE_PRICES;
let most = 0;
for (const change of GRID.change)
  for (const slope of GRID.slope)
    for (const spread of GRID.spread) {
      const prices = { change, slope, spread };
      const seen = look(TRAINING, prices);
      console.log(row(JSON.stringify(prices), seen));
      const goal = mean(seen.map((one) => one.f1 + one.covering));
      if (goal <= most) continue;
      most = goal;
      best = prices;
    }
console.log(`\nBest: ${JSON.stringify(best)}; default: ${JSON.stringify(CHANGE_PRICES)}`);

console.log(`\nConfirmation of the default\n\n${HEAD}`);
const seen = look(CONFIRMATION, CHANGE_PRICES);
for (const kind of KINDS) {
  const those = seen.filter((one) => one.series.kind === kind);
  if (those.length > 0) console.log(row(kind, those));
}
console.log(row("all", seen));
console.log(row("never report", look(CONFIRMATION, null)));
const delays = seen.flatMap((one) => one.delays).sort((a, b) => a - b);
console.log(
  `\nMedian delay ${delays[delays.length >> 1]} points, 90 %: ${delays[Math.floor(delays.length * 0.9)]}`,
);
