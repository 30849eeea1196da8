/** The axes of the small plots: one time axis for all of them, and each its own amounts. */
import { largest, smallest } from "../../base/numbers.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import { type ClockZone, UTC } from "../parts/clock-zone.ts";
import { digits, shownUnit } from "./machines-words.ts";

/** In the SVG's own units, about a pixel each. Above the plot is one row for the time of the deviation. */
export const WIDTH = 260;
export const HEIGHT = 118;
export const LEFT = 52;
export const RIGHT = 252;
export const TOP = 18;
export const BOTTOM = 98;

/** Beyond these a number is broken, and its differences and powers are no numbers at all. */
const LARGEST = 1e30;
const SMALLEST = 1e-30;
/** More than two decades apart, and a linear axis shows the smaller as nothing. */
const LOG_FROM = 100;
/** More decades than this would flatten what matters; what is below lies on the axis. */
const MOST_DECADES = 6;
/** A range narrower than this part of the level makes a mountain out of noise. */
const LEAST_RANGE = 0.05;
const ROOM = 0.06;

export interface TimeAxis {
  readonly fromS: number;
  readonly toS: number;
  /** Whose clocks the labels are of. */
  readonly zone: ClockZone;
  readonly x: (seconds: number) => number;
}

/** Of all plots of a page: who was first is seen by holding one plot against another. */
export function timeAxis(
  pictures: readonly Pick<MachinePicture, "timeS">[],
  zone: ClockZone = UTC,
): TimeAxis {
  let [fromS, toS] = [Infinity, -Infinity];
  for (const { timeS } of pictures) {
    const half = stepOf(timeS) / 2;
    const times = timeS.filter(Number.isFinite);
    fromS = Math.min(fromS, smallest(times, Infinity) - half);
    toS = Math.max(toS, largest(times, -Infinity) + half);
  }
  if (!Number.isFinite(fromS) || !Number.isFinite(toS)) [fromS, toS] = [0, 0];
  // One moment alone stands in the middle.
  const isMoment = !(toS > fromS);
  const x = (seconds: number): number => {
    const share = isMoment ? 0.5 : (seconds - fromS) / (toS - fromS);
    return LEFT + (RIGHT - LEFT) * Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
  };
  return { fromS, toS, zone, x };
}

/** The usual distance of two points; 0 where there are none. */
export function stepOf(timeS: readonly number[]): number {
  const steps = timeS.slice(1).map((time, i) => time - timeS[i]!);
  return medianOf(steps.filter((step) => step > 0 && Number.isFinite(step))) ?? 0;
}

export interface AmountAxis {
  readonly isLog: boolean;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
  readonly y: (value: number) => number;
}

export function isAmount(value: number | null | undefined): value is number {
  return typeof value === "number" && Math.abs(value) < LARGEST;
}

/** null where there is nothing to draw. */
export function amountAxis(picture: MachinePicture): AmountAxis | null {
  const { value, low, middle, high, unit } = picture;
  const all = [...value, ...low, ...middle, ...high].filter(isAmount).map(plain);
  if (all.length === 0) return null;
  const least = smallest(all, Infinity);
  const most = largest(all, -Infinity);
  // Shares have a whole that they are part of, and a fall to nothing is plain on a linear axis. What rises so far
  // that the peers could not be distinguished from zero is not.
  const mayBeLog = unit !== "share" && unit !== "%" && least >= 0;
  const positive = all.filter((amount) => amount > 0);
  const usual =
    medianOf(middle.filter(isAmount).filter((amount) => plain(amount) > 0)) ??
    medianOf(positive) ??
    most;
  return mayBeLog && most > LOG_FROM * usual
    ? logAxis(smallest(positive, most), most, least === 0, unit)
    : linearAxis(least, most, unit);
}

function medianOf(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

function plain(value: number): number {
  return Math.abs(value) < SMALLEST ? 0 : value;
}

function place(share: number): number {
  return BOTTOM - (BOTTOM - TOP) * Math.min(1, Math.max(0, share));
}

function linearAxis(least: number, most: number, unit: string): AmountAxis {
  const size = Math.max(Math.abs(least), Math.abs(most)) || 1;
  let [bottom, top] = [least, most];
  if (least >= 0 && least < most / 2) bottom = 0;
  if (top - bottom < LEAST_RANGE * size) {
    const middle = (bottom + top) / 2;
    [bottom, top] = [middle - (LEAST_RANGE / 2) * size, middle + (LEAST_RANGE / 2) * size];
  }
  const room = ROOM * (top - bottom);
  top += room;
  if (bottom !== 0) bottom -= room;
  // Where all is zero, the axis still goes up from it.
  if (least >= 0 && bottom < 0) [bottom, top] = [0, Math.max(top, 1)];
  const { worth, suffix } = shownUnit(unit, size);
  const y = (value: number): number => place((value - bottom) / (top - bottom));
  const ticks = roundBetween(bottom / worth, top / worth).map((tick) => ({
    at: y(tick * worth),
    label: `${digits(tick)}${suffix}`,
  }));
  return { isLog: false, ticks, y };
}

/** Three round numbers within the range, or two where there are no three. */
function roundBetween(bottom: number, top: number): number[] {
  const power = 10 ** Math.ceil(Math.log10(top - bottom));
  const steps = [1, 0.5, 0.2, 0.1, 0.05, 0.02].map((times) => times * power);
  const found = steps.map((step) => {
    const first = Math.ceil(bottom / step - 1e-9);
    const last = Math.floor(top / step + 1e-9);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
  });
  return (
    found.find(({ length }) => length === 3) ??
    found.find(({ length }) => length === 2) ??
    found.find(({ length }) => length > 2)?.filter((_, k) => k % 2 === 0) ??
    []
  );
}

/** Whole decades. Zero has no logarithm: it lies on the axis, which then says 0 instead of its decade. */
function logAxis(least: number, most: number, hasZero: boolean, unit: string): AmountAxis {
  const last = Math.ceil(Math.log10(most) - 1e-9);
  const lowest = Math.floor(Math.log10(least) + 1e-9);
  const isCut = lowest < last - MOST_DECADES;
  const onAxis = hasZero || isCut;
  const first = Math.max(lowest, last - MOST_DECADES) - (hasZero && !isCut ? 1 : 0);
  const y = (value: number): number =>
    value > 0 ? place((Math.log10(value) - first) / (last - first)) : BOTTOM;
  const decades = [first, Math.round((first + last) / 2), last];
  const ticks = decades.map((decade, i) => {
    const value = 10 ** decade;
    const { worth, suffix } = shownUnit(unit, value * 1.000001);
    const label = onAxis && i === 0 ? "0" : `${digits(value / worth)}${suffix}`;
    return { at: y(value), label };
  });
  return { isLog: true, ticks, y };
}
