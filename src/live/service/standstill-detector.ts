/**
 * Whether a job stands still, or a process of it died. Silence alone is no hang: a job may save a checkpoint. It is one
 * where agents see operators that are open and do not move, or where it lasts many times as long as anything before.
 */
import { rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { BeatReport } from "../wire/messages.ts";

export interface Standstill {
  readonly kind: "hang" | "crash";
  readonly ranks: readonly Rank[];
  readonly says: string;
  readonly sinceMs: number;
}

/** Silence that is shorter than so many of the longest iteration so far is no hang. */
const USUAL_ITERATIONS = 3;
/** Where no agent sees operators: so many times the patience. */
const BLIND = 10;
/** A stopped process does not come back by itself: less patience. */
const STOPPED_SHARE = 0.2;
/** Others die within moments of the first: they belong into the same picture. */
const GRACE_MS = 2000;

export class StandstillDetector {
  readonly #hangMs: number;
  #movedMs = NaN;
  #lost: { readonly ranks: Rank[]; readonly says: string; readonly atMs: number } | null = null;
  readonly #beats = new Map<string, BeatReport["jobs"][number]>();
  #failure: { readonly ranks: readonly Rank[]; readonly says: string } | null = null;
  #isTold = false;
  #iterationsSince = 0;

  constructor(hangMs: number) {
    this.#hangMs = hangMs;
  }

  /** When points came last; NaN before the first. */
  get movedMs(): number {
    return this.#movedMs;
  }

  moved(nowMs: number): void {
    this.#movedMs = nowMs;
  }

  heard(agent: string, beat: BeatReport["jobs"][number]): void {
    this.#beats.set(agent, beat);
  }

  forget(agent: string): void {
    this.#beats.delete(agent);
  }

  /** A process died, and not in order. */
  lost(ranks: readonly Rank[], says: string, nowMs: number): void {
    if (this.#lost) this.#lost.ranks.push(...ranks);
    else this.#lost = { ranks: [...ranks], says, atMs: nowMs };
  }

  get hasLost(): boolean {
    return this.#lost !== null;
  }

  /** A log says that something failed: what that means is seen when nothing goes on after it. */
  failed(ranks: readonly Rank[], says: string): void {
    this.#failure ??= { ranks, says };
  }

  /** After a restart of the service an incident that was open goes on. */
  resume(): void {
    this.#isTold = true;
    this.#iterationsSince = 0;
  }

  /** Whether a job that stood still goes on: two iterations, one may have been on its way. */
  goesOn(iterations: number): boolean {
    if (iterations > 0) this.#failure = null;
    if (!this.#isTold) return false;
    this.#iterationsSince += iterations;
    if (this.#iterationsSince < 2) return false;
    this.#isTold = false;
    this.#lost = null;
    return true;
  }

  /** Tells once. `hasEnded`: the job is over in order, so that silence is no wonder; a death still is. */
  look(nowMs: number, longestMs: number, hasEnded = false): Standstill | null {
    if (this.#isTold) return null;
    const seen = this.#dead(nowMs) ?? (hasEnded ? null : this.#silent(nowMs, longestMs));
    if (seen) {
      this.#isTold = true;
      this.#iterationsSince = 0;
    }
    return seen;
  }

  #dead(nowMs: number): Standstill | null {
    const lost = this.#lost;
    if (!lost || nowMs - lost.atMs < GRACE_MS) return null;
    const { ranks, says, atMs } = lost;
    return { kind: "crash", ranks, says, sinceMs: atMs };
  }

  #silent(nowMs: number, longestMs: number): Standstill | null {
    const beats = [...this.#beats.values()];
    if (Number.isNaN(this.#movedMs) || beats.every(({ alive }) => alive === 0)) return null;
    const silentMs = nowMs - this.#movedMs;
    const stopped = beats.flatMap((beat) => beat.stopped);
    const seesOpen = beats.some((beat) => beat.silentMs > 0 && beat.openOperators > 0);
    const failure = this.#failure;
    const patience = stopped.length > 0 || failure ? STOPPED_SHARE : seesOpen ? 1 : BLIND;
    if (silentMs < Math.max(patience * this.#hangMs, USUAL_ITERATIONS * longestMs)) return null;
    if (failure) return { kind: "crash", ...failure, sinceMs: this.#movedMs };
    const who = stopped.length > 0 ? `; ${rankWords(stopped)} stopped` : "";
    return {
      kind: "hang",
      ranks: stopped,
      says: `no iteration has completed for ${Math.round(silentMs / 1000)} s${who}; searching for the root cause`,
      sinceMs: this.#movedMs,
    };
  }
}
