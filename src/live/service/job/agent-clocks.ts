/**
 * By how much each agent's clock is off, measured by its beats, and its reports with that taken away. A clock that was set,
 * there or here, must not make its reports worthless.
 */
import { SLOT_MS } from "../../../model/rank-shares.ts";
import type { Report } from "../../wire/messages.ts";

/** Reports take their time, and clocks are never the same. */
const TOLERATED_MS = 2000;
/** A clock that is behind looks like a report that is late; so many beats in a row are not late by the same time. */
const AGREEING = 3;
const AGREE_MS = 1000;
const MOST_NAMED = 4;

interface Measured {
  /** The last differences, the agent's time less ours. */
  readonly last: number[];
  offsetMs: number;
}

export class AgentClocks {
  readonly #agents = new Map<string, Measured>();

  /** Of a beat; says what is new, null for nothing. */
  heard(agent: string, beatMs: number, nowMs: number): string | null {
    const known = this.#agents.get(agent) ?? { last: [], offsetMs: 0 };
    this.#agents.set(agent, known);
    const before = known.offsetMs;
    known.last.push(beatMs - nowMs);
    if (known.last.length > AGREEING) known.last.shift();
    known.offsetMs = offsetOf(known.last);
    if (Math.abs(known.offsetMs - before) <= TOLERATED_MS) return null;
    if (known.offsetMs === 0) return `the clock of ${agent} is right again`;
    return `the clock of ${agent} is ${apart(known.offsetMs)}; its times are corrected`;
  }

  forget(agent: string): void {
    this.#agents.delete(agent);
  }

  /** The clocks of these agents that are off, in a sentence; null where all are right. */
  words(agents: readonly string[]): string | null {
    const off = agents.filter((agent) => this.offsetMs(agent) !== 0);
    const named = off
      .slice(0, MOST_NAMED)
      .map((agent) => `${agent} ${apart(this.offsetMs(agent))}`);
    if (off.length === 0) return null;
    const more = off.length > named.length ? ` and ${off.length - named.length} more` : "";
    return `clocks are off, and times corrected: ${named.join(", ")}${more}`;
  }

  /** 0 where it is right. */
  offsetMs(agent: string): number {
    return this.#agents.get(agent)?.offsetMs ?? 0;
  }

  /** The report by our clock. What would still lie in the future ends now: the clock was set since its last beat. */
  corrected<R extends Report>(agent: string, report: R, nowMs: number): R {
    const offsetMs = this.offsetMs(agent);
    const at = (ms: number): number => ms - offsetMs;
    switch (report.kind) {
      case "points": {
        const newest = report.endMs.reduce((most, ms) => Math.max(most, ms), -Infinity);
        const ahead = at(newest) - nowMs;
        const aheadMs = ahead > TOLERATED_MS ? ahead : 0;
        if (offsetMs === 0 && aheadMs === 0) return report;
        return { ...report, endMs: report.endMs.map((ms) => at(ms) - aheadMs) };
      }
      case "shares": {
        // What would still lie in the future is told as the slots that ended last.
        const slots = report.inside.length / Math.max(1, report.ranks.length);
        const newest = Math.floor(nowMs / SLOT_MS) - slots;
        const firstSlot = report.firstSlot - Math.round(offsetMs / SLOT_MS);
        const aheadSlots = Math.max(0, firstSlot - newest);
        const isAhead = aheadSlots * SLOT_MS > TOLERATED_MS;
        return { ...report, firstSlot: isAhead ? newest : firstSlot };
      }
      case "job":
        return { ...report, startedMs: Math.min(at(report.startedMs), nowMs) };
      case "event":
        return { ...report, atMs: Math.min(at(report.atMs), nowMs) };
      case "beat":
        return report;
    }
  }
}

function offsetOf(last: readonly number[]): number {
  const newest = last.at(-1)!;
  if (newest > TOLERATED_MS) return newest;
  if (newest > -TOLERATED_MS || last.length < AGREEING) return 0;
  const [least, most] = [Math.min(...last), Math.max(...last)];
  return most - least <= AGREE_MS ? most : 0;
}

function apart(offsetMs: number): string {
  return `${duration(Math.abs(offsetMs))} ${offsetMs > 0 ? "ahead" : "behind, or its reports late"}`;
}

/** "back by 60 s", "ahead by 1.0 h" */
export function describeStep(ms: number): string {
  return `${ms < 0 ? "back" : "ahead"} by ${duration(Math.abs(ms))}`;
}

function duration(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  return ms < 2 * 3600_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3600_000).toFixed(1)} h`;
}
