/** What a GPU-hour costs, as the viewer says, and what lost time is worth then. */
import { useObservable } from "../live/observable.ts";
import { kept } from "./kept.ts";
import { figure, thousands } from "./words.ts";

export interface Price {
  /** Before the figure where it is a sign, behind it where it is a word: "$", "€", "CHF". */
  readonly currency: string;
  readonly perGpuHour: number;
}

export const PRESET: Price = { currency: "$", perGpuHour: 2.5 };
const MOST_PRICE = 100_000;

export const price = kept<Price>("price", PRESET, readPrice, (value) => JSON.stringify(value));

export function readPrice(text: string): Price | null {
  try {
    const { currency, perGpuHour } = JSON.parse(text) as Partial<Record<keyof Price, unknown>>;
    if (typeof currency !== "string" || typeof perGpuHour !== "number") return null;
    if (!(perGpuHour >= 0 && perGpuHour <= MOST_PRICE)) return null;
    return { currency: currency.trim().slice(0, 4), perGpuHour };
  } catch {
    return null;
  }
}

/** "$31.30", "31.30 CHF", "$1,230", "$1.23 million" */
export function moneyWords(amount: number, currency: string): string {
  if (!Number.isFinite(amount)) return "–";
  const size =
    amount >= 1e6
      ? `${(amount / 1e6).toFixed(2)} million`
      : amount >= 1000
        ? thousands(Math.round(amount))
        : amount.toFixed(2);
  if (currency === "") return size;
  return /^\p{L}/u.test(currency) ? `${size} ${currency}` : `${currency}${size}`;
}

export interface Waste {
  /** "12.5 GPU-hours" */
  readonly hours: string;
  /** "$31.30" */
  readonly money: string;
}

export function wasteOf(gpuMs: number, at: Price = price.value): Waste {
  const hours = Math.max(0, gpuMs) / 3_600_000;
  const shown = figure(hours);
  return {
    hours: `${shown} ${shown === "1.00" ? "GPU-hour" : "GPU-hours"}`,
    money: moneyWords(hours * at.perGpuHour, at.currency),
  };
}

/** As wasteOf, in a component: follows the price. */
export function useWaste(gpuMs: number): Waste {
  return wasteOf(gpuMs, useObservable(price));
}
