/**
 * Whether a job stands still, or a process of it died. Silence alone is no hang: a job may save a checkpoint. After a few
 * of its own iterations it is suspected, and agents are asked for evidence; it stands still where the evidence proves it,
 * or where operators are open and do not move for longer than any pause of this job explains.
 */
import { rankWords } from "../../../base/text.ts";
import { median } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import type { BeatReport } from "../../wire/messages.ts";

export interface Standstill {
  readonly kind: "hang" | "crash";
  readonly ranks: readonly Rank[];
  readonly says: string;
  readonly sinceMs: number;
  /** Only evidence that proves it makes it an incident. */
  readonly isSuspicion: boolean;
}

/** How long the job takes for what, milliseconds. */
export interface Pace {
  /** An iteration; NaN before that is known. */
  readonly levelMs: number;
  /** The longest of the last iterations, pauses left out. */
  readonly longestMs: number;
  /** A pause that would be usual now (usual-pauses.ts); 0 for none. */
  readonly pauseMs: number;
}

export interface StandstillOptions {
  /** Open operators that do not move for so long are a hang, whatever the evidence shows. */
  readonly hangMs: number;
  /** A pause that explains itself (a checkpoint) may last so long. */
  readonly pauseMs: number;
}

/** A job is suspected after so long, and so many of its iterations. */
const SUSPECT_MS = 4000;
const SUSPECT_ITERATIONS = 4;
/** Agents have reported the silence for this share of it: they report every other second. */
const SEEN_SHARE = 0.5;
/** Of the agents that are heard and see open operators, this share sees none move. */
const MOST_AGENTS = 0.9;
/** The suspicion was not proven: the next comes when the silence is so many times as long. */
const AGAIN = 2;
/** What a beat says is true for so long. */
const FRESH_MS = 15_000;
/** Silence that is shorter than so many of the longest iteration so far is no hang. */
const USUAL_ITERATIONS = 3;
/** A pause of a kind that was there before may take so much longer. */
const USUAL_PAUSE = 1.5;
/** Where no agent sees operators: so many times the patience. */
const BLIND = 10;
/** A stopped process does not come back by itself: less patience. */
const STOPPED_SHARE = 0.2;
/** Others die within moments of the first: they belong into the same picture. */
const GRACE_MS = 2000;

type Beat = BeatReport["jobs"][number];

export class StandstillDetector {
  readonly #options: StandstillOptions;
  #movedMs = NaN;
  /** Only agents' beats tell when it last moved: the service came to a job that stood still already. */
  #isFound = false;
  #lost: { readonly ranks: Rank[]; readonly says: string; readonly atMs: number } | null = null;
  readonly #beats = new Map<string, { readonly beat: Beat; readonly heardMs: number }>();
  #failure: { readonly ranks: readonly Rank[]; readonly says: string } | null = null;
  #isTold = false;
  #iterationsSince = 0;
  /** Silence at which the job is suspected next: longer after each suspicion that was not proven. */
  #suspectMs = 0;
  /** What explains the silence, by the evidence. */
  #explained: string | null = null;

  constructor(options: StandstillOptions) {
    this.#options = options;
  }

  /** When points came last; NaN before the first. */
  get movedMs(): number {
    return this.#movedMs;
  }

  moved(nowMs: number): void {
    this.#movedMs = nowMs;
    this.#isFound = false;
    this.#suspectMs = 0;
    this.#explained = null;
  }

  heard(agent: string, beat: Beat, nowMs: number): void {
    this.#beats.set(agent, { beat, heardMs: nowMs });
    // A job that has not ended an iteration yet compiles and loads.
    if (beat.silentMs === 0 || beat.lastIteration < 0) return;
    if (!Number.isNaN(this.#movedMs) && !this.#isFound) return;
    const movedMs = nowMs - beat.silentMs;
    if (!(this.#movedMs >= movedMs)) this.#movedMs = movedMs;
    this.#isFound = true;
  }

  forget(agent: string): void {
    this.#beats.delete(agent);
  }

  /** Nobody listened for so long: times from before are moved along. */
  shift(ms: number): void {
    this.#movedMs += ms;
    if (this.#lost) this.#lost = { ...this.#lost, atMs: this.#lost.atMs + ms };
    for (const [agent, { beat, heardMs }] of this.#beats)
      this.#beats.set(agent, { beat, heardMs: heardMs + ms });
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

  /** The evidence explains the silence: a checkpoint, an evaluation, a compilation. */
  explain(pause: string): void {
    this.#explained = pause;
  }

  /** After a restart of the service an incident that was open goes on. */
  resume(): void {
    this.#isTold = true;
    this.#iterationsSince = 0;
  }

  /** A suspicion was proven: it is an incident now. */
  proven(): void {
    this.resume();
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

  /** Tells once of each. `hasEnded`: the job is over in order, so that silence is no wonder; a death still is. */
  look(nowMs: number, pace: Pace, hasEnded = false): Standstill | null {
    if (this.#isTold) return null;
    const seen = this.#dead(nowMs) ?? (hasEnded ? null : this.#silent(nowMs, pace));
    if (seen && !seen.isSuspicion) {
      this.#isTold = true;
      this.#iterationsSince = 0;
    }
    return seen;
  }

  /** The last iteration that ended, as most agents see it; -1 where none is heard. Few of its points may have come. */
  lastIteration(nowMs: number): number {
    const last = this.#fresh(nowMs).map((beat) => beat.lastIteration);
    return last.length > 0 ? median(last) : -1;
  }

  #fresh(nowMs: number): Beat[] {
    return [...this.#beats.values()]
      .filter(({ heardMs }) => nowMs - heardMs <= FRESH_MS)
      .map(({ beat }) => beat);
  }

  #dead(nowMs: number): Standstill | null {
    const lost = this.#lost;
    if (!lost || nowMs - lost.atMs < GRACE_MS) return null;
    const { ranks, says, atMs } = lost;
    return { kind: "crash", ranks, says, sinceMs: atMs, isSuspicion: false };
  }

  #silent(nowMs: number, pace: Pace): Standstill | null {
    const beats = this.#fresh(nowMs);
    // Nobody is heard: that is no silence of the job.
    if (Number.isNaN(this.#movedMs) || beats.every(({ alive }) => alive === 0)) return null;
    const silentMs = nowMs - this.#movedMs;
    const stopped = beats.flatMap((beat) => beat.stopped);
    const failure = this.#failure;
    const pause = this.#explained ?? beats.find((one) => one.pause !== undefined)?.pause ?? null;
    if (silentMs >= this.#patienceMs(pace, beats, pause, stopped)) {
      if (failure) return { kind: "crash", ...failure, sinceMs: this.#movedMs, isSuspicion: false };
      return this.#hang(silentMs, stopped, false);
    }
    if (pause !== null || !this.#isSuspect(silentMs, pace, beats)) return null;
    this.#suspectMs = AGAIN * silentMs;
    return this.#hang(silentMs, stopped, true);
  }

  #patienceMs(
    { levelMs, longestMs, pauseMs }: Pace,
    beats: readonly Beat[],
    pause: string | null,
    stopped: readonly Rank[],
  ): number {
    const { hangMs, pauseMs: mostPauseMs } = this.#options;
    const usualMs = Math.max(USUAL_ITERATIONS * longestMs, USUAL_PAUSE * pauseMs);
    const seesOpen = beats.some((beat) => beat.silentMs > 0 && beat.openOperators > 0);
    // A process that failed, and whose peers wait for it: not one that says what it does, such as to try an upload again.
    const hasFailed =
      this.#failure !== null && seesOpen && !beats.some((one) => one.pause !== undefined);
    if (stopped.length > 0 || hasFailed)
      return Math.max(STOPPED_SHARE * hangMs, USUAL_ITERATIONS * longestMs);
    if (pause !== null) return Math.max(mostPauseMs, usualMs);
    if (this.#failure) return Math.max(hangMs, usualMs);
    // Nobody knows how long its iterations are.
    const isStrange = this.#isFound && !(levelMs > 0);
    return Math.max((seesOpen && !isStrange ? 1 : BLIND) * hangMs, usualMs);
  }

  /** By the job's own pace; only where agents see operators that do not move, and hardly any that do. */
  #isSuspect(silentMs: number, { levelMs, pauseMs }: Pace, beats: readonly Beat[]): boolean {
    // A job that has not found its level compiles and warms up.
    if (!(levelMs > 0)) return false;
    const leastMs = Math.max(
      SUSPECT_MS,
      SUSPECT_ITERATIONS * levelMs,
      USUAL_PAUSE * pauseMs,
      this.#suspectMs,
    );
    if (silentMs < leastMs) return false;
    const open = beats.filter(({ openOperators }) => openOperators > 0);
    const still = open.filter((beat) => beat.silentMs >= SEEN_SHARE * silentMs);
    return still.length > 0 && still.length >= MOST_AGENTS * open.length;
  }

  #hang(silentMs: number, stopped: readonly Rank[], isSuspicion: boolean): Standstill {
    const who = stopped.length > 0 ? `; ${rankWords(stopped)} stopped` : "";
    return {
      kind: "hang",
      ranks: stopped,
      says: `no iteration has completed for ${Math.round(silentMs / 1000)} s${who}; searching for the root cause`,
      sinceMs: this.#movedMs,
      isSuspicion,
    };
  }
}
