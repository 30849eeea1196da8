/**
 * Made series of the kinds that public statistics and monitoring have, with the truth known: what the settings
 * of eval/change-points/online-changes.ts are chosen on, so that no public benchmark has to be looked at for it.
 * Lengths 50 to 600, any unit and sign, some rounded; six kinds have 1 to 4 changes, the others none.
 */
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";

export interface SyntheticSeries {
  readonly kind: Kind;
  readonly values: readonly number[];
  /** First points of the new behaviour. */
  readonly changes: readonly number[];
}

export const KINDS = [
  "steps",
  "steps in AR(1)",
  "slope changes",
  "seasonal with steps",
  "variance changes",
  "steps with outliers",
  "no change",
  "trend",
  "random walk",
  "seasonal",
  "AR(1)",
  "outliers",
  "transients",
] as const;
export type Kind = (typeof KINDS)[number];

/** With changes as often as 60 in 100 series. */
const WITH_CHANGES: readonly Kind[] = KINDS.slice(0, 6);
const WITHOUT: readonly Kind[] = KINDS.slice(6);

export function syntheticSeries(seed: number): SyntheticSeries {
  const random = seeded(Math.imul(seed + 1, 0x9e3779b1));
  const kind = pick(random, random() < 0.6 ? WITH_CHANGES : WITHOUT);
  const length = Math.round(between(random, Math.log(50), Math.log(600), Math.exp));
  const changes = WITH_CHANGES.includes(kind) ? changePoints(random, length) : [];
  return { kind, values: inSomeUnit(random, made(kind, random, length, changes)), changes };
}

/** In units of the noise; nothing here depends on the unit. */
function made(kind: Kind, random: Random, length: number, changes: readonly number[]): number[] {
  const white = (): number[] => Array.from({ length }, () => normal(random));
  switch (kind) {
    case "steps":
      return sum(white(), steps(random, length, changes));
    case "steps in AR(1)":
      return sum(autoregressive(random, length), steps(random, length, changes));
    case "slope changes":
      return sum(coloured(random, length), bends(random, length, changes));
    case "seasonal with steps":
      return sum(white(), season(random, length), steps(random, length, changes));
    case "variance changes":
      return scaled(random, white(), changes);
    case "steps with outliers":
      return sum(heavy(random, length), steps(random, length, changes));
    case "no change":
      return white();
    case "trend":
      return sum(
        coloured(random, length),
        random() < 0.5 ? bends(random, length, []) : curve(random, length),
      );
    case "random walk":
      return cumulative(white(), random() < 0.5 ? 0 : normal(random) * 0.3);
    case "seasonal":
      return sum(white(), season(random, length), random() < 0.5 ? [] : bends(random, length, []));
    case "AR(1)":
      return autoregressive(random, length);
    case "outliers":
      return heavy(random, length);
    case "transients":
      return sum(coloured(random, length), transients(random, length));
  }
}

/** 1 to 4, as many as fit: no two, and none and an end, closer than a twelfth of the series or ten points. */
function changePoints(random: Random, length: number): number[] {
  const gap = Math.max(10, Math.round(length / 12));
  const count = Math.min(1 + randomInt(random, 4), Math.floor(length / gap) - 2);
  for (;;) {
    const points = Array.from({ length: count }, () => gap + randomInt(random, length - 2 * gap));
    points.sort((a, b) => a - b);
    if (points.every((point, i) => i === 0 || point - points[i - 1]! >= gap)) return points;
  }
}

function steps(random: Random, length: number, changes: readonly number[]): number[] {
  const sizes = changes.map(
    () => sign(random) * between(random, Math.log(1.5), Math.log(12), Math.exp),
  );
  return Array.from({ length }, (_, t) => total(changes.map((at, i) => (t >= at ? sizes[i]! : 0))));
}

/** A broken line. A bend counts by how far the line that went on would be off at the end of its piece. */
function bends(random: Random, length: number, changes: readonly number[]): number[] {
  const first = (normal(random) * 20) / length;
  const slopes = changes.map((at, i) => {
    const piece = Math.min((changes[i + 1] ?? length) - at, 60);
    return (sign(random) * between(random, Math.log(6), Math.log(40), Math.exp)) / piece;
  });
  return Array.from(
    { length },
    (_, t) => first * t + total(changes.map((at, i) => Math.max(0, t - at) * slopes[i]!)),
  );
}

/** Smooth growth or a slow wave: nowhere does anything change at once. */
function curve(random: Random, length: number): number[] {
  const height = sign(random) * between(random, Math.log(5), Math.log(60), Math.exp);
  const phase = random();
  const shape = pick(random, [
    (u: number) => u * u,
    (u: number) => Math.exp(3 * (u - 1)),
    (u: number) => Math.sin(Math.PI * (u + phase)),
  ]);
  return Array.from({ length }, (_, t) => height * shape(t / length));
}

/** Twelve months, seven days and others; a sine or any shape, the height 1 to 6 of the noise. */
function season(random: Random, length: number): number[] {
  const period = random() < 0.6 ? pick(random, [4, 7, 12, 24]) : 4 + randomInt(random, 27);
  const height = between(random, 1, 6);
  const phase = random() * 2 * Math.PI;
  const isSine = random() < 0.5;
  const shape = Array.from({ length: period }, (_, i) =>
    isSine ? Math.sin((2 * Math.PI * i) / period + phase) : normal(random),
  );
  return Array.from({ length }, (_, t) => height * shape[t % period]!);
}

/** Each piece louder or quieter than the one before by 2.5 to 8. */
function scaled(random: Random, values: readonly number[], changes: readonly number[]): number[] {
  let isLoud = random() < 0.5;
  let next = 0;
  let factor = 1;
  return values.map((value, t) => {
    if (t === changes[next]) {
      const by = between(random, Math.log(2.5), Math.log(8), Math.exp);
      factor *= isLoud ? 1 / by : by;
      isLoud = !isLoud;
      next++;
    }
    return value * factor;
  });
}

/** Deviation 1 whatever the correlation. */
function autoregressive(random: Random, length: number, phi = between(random, 0.3, 0.9)): number[] {
  let last = normal(random);
  return Array.from({ length }, () => {
    last = phi * last + Math.sqrt(1 - phi * phi) * normal(random);
    return last;
  });
}

function coloured(random: Random, length: number): number[] {
  return autoregressive(random, length, random() < 0.5 ? 0 : between(random, 0.2, 0.8));
}

/** Student's t with 2 degrees of freedom, or a few points of a hundred far away. */
function heavy(random: Random, length: number): number[] {
  const share = between(random, 0.01, 0.06);
  const isStudent = random() < 0.5;
  return Array.from({ length }, () => {
    const x = normal(random);
    if (isStudent) return (0.7 * x) / Math.sqrt(-Math.log(1 - random()));
    return random() < share ? x + sign(random) * between(random, 5, 30) : x;
  });
}

/** 1 to 4 bursts of 1 to 8 points: a level, or a peak that decays. */
function transients(random: Random, length: number): number[] {
  const values = Array.from({ length }, () => 0);
  for (let left = 1 + randomInt(random, 4); left > 0; left--) {
    const points = 1 + randomInt(random, 8);
    const at = randomInt(random, length - points);
    const height = sign(random) * between(random, 4, 20);
    const decays = random() < 0.5;
    for (let i = 0; i < points; i++) values[at + i]! += decays ? height * (1 - i / points) : height;
  }
  return values;
}

function cumulative(values: readonly number[], drift: number): number[] {
  let at = 0;
  return values.map((value) => (at += value + drift));
}

/** Any offset and unit; every third one is rounded to a half of the noise. */
function inSomeUnit(random: Random, values: readonly number[]): number[] {
  const unit = 10 ** between(random, -4, 6);
  const offset = normal(random) * 30;
  const isRounded = random() < 1 / 3;
  return values.map(
    (value) => unit * (isRounded ? Math.round(2 * (value + offset)) / 2 : value + offset),
  );
}

function between(
  random: Random,
  low: number,
  high: number,
  map: (x: number) => number = (x) => x,
): number {
  return map(low + (high - low) * random());
}

function sign(random: Random): number {
  return random() < 0.5 ? -1 : 1;
}

/** Box and Muller's. */
export function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function sum(first: readonly number[], ...others: readonly (readonly number[])[]): number[] {
  return first.map((value, t) => value + total(others.map((other) => other[t] ?? 0)));
}
