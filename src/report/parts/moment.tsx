/** Moments for people. The report says UTC; the page hands in its own way, with the viewer's zone. */
import type { ComponentChild } from "preact";

/** Milliseconds since 1970. */
export type ShowTime = (ms: number) => ComponentChild;

/** The last moment that a Date can hold. */
const LAST_MS = 8.64e15;

/** "2026-11-15 00:41:49 UTC"; "–" for what no calendar has. */
export function utcWords(ms: number): string {
  if (!(Math.abs(ms) <= LAST_MS)) return "–";
  return `${new Date(ms).toISOString().slice(0, -5).replace("T", " ")} UTC`;
}

export function utcTime(ms: number): ComponentChild {
  const words = utcWords(ms);
  return words === "–" ? words : <time datetime={new Date(ms).toISOString()}>{words}</time>;
}

/** A verdict's moments are what the inputs say: "2026-11-15T00:41:49.457Z", or whatever stood there. */
export function shownMoment(text: string, time: ShowTime = utcTime): ComponentChild {
  const isIso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(text);
  const ms = isIso ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? text.slice(0, 200) : time(ms);
}
