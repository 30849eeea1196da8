/**
 * When a running job is slow, since when, and when it is over. The tracker of iteration times decides (Greyhound §4.1,
 * Holmes §3). A plain jump is searched three iterations after it began, and iterations that are slow now and then are
 * searched from the third on; both become an incident only if the search names a suspect. All of it is numbers in,
 * decisions out.
 */
import { median, spread } from "../../../maths/robust.ts";
import { IntermittentWindow, longestRun, quietIterations } from "./intermittent-window.ts";
import type { JobIteration } from "../job/job-run.ts";
import { PeriodicHabits } from "./periodic-habits.ts";

export interface SuspectedSlowdown {
  readonly slowFrom: number;
  /** When its first slow iteration began, milliseconds since 1970. */
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  /** Where somebody else was slow already: what the iterations right before took. The stretch is compared with those. */
  readonly besideMs?: number;
  /** Seen by its size alone; the tracker has not spoken. */
  readonly isTentative: boolean;
  /** Where iterations are slow now and then: which, ascending, and of how many. Absent where all are slow. */
  readonly intermittent?: { readonly slow: readonly number[]; readonly of: number };
}

export type SlowdownDecision =
  | { readonly do: "suspect"; readonly suspicion: SuspectedSlowdown }
  /** Enough iterations to look for who is at fault, or to look again; `isLast`: whatever comes out is told. */
  | {
      readonly do: "localize";
      readonly suspicion: SuspectedSlowdown;
      /** Slow iterations so far. */
      readonly slow: number;
      /** Somebody was found already. */
      readonly isAgain: boolean;
      readonly isLast: boolean;
    }
  | { readonly do: "recovered"; readonly suspicion: SuspectedSlowdown }
  | { readonly do: "forget"; readonly suspicion: SuspectedSlowdown };

/** A jump that needs no test: so much of the level, and so many deviations, three times in a row. */
const PLAIN = 1.1;
const PLAIN_SIGMAS = 5;
const PLAIN_ITERATIONS = 3;
/**
 * Where iterations vary so much that no three are plain: so many in a row, each longer than this share of the healthy ones
 * before them, and the middle of them by as much as a plain jump.
 */
const STEADY_ITERATIONS = 8;
const LONGER_THAN = 0.8;
/**
 * Where they vary even more, so that hardly eight in a row are longer: the middle of so many lies above that of the healthy
 * ones by as much as a plain jump, and by so many of its standard errors.
 */
const WIDE_ITERATIONS = 16;
const WIDE_SIGMAS = 4;
/** Of a median, in standard deviations of one value divided by the root of their number. */
const MEDIAN_ERROR = 1.25;
/** What is slow now and then lasts when plainly more in a row are slow than so many times the longest run before, or so many. */
const LONGER_THAN_RUNS = 2;
const LASTING = 10;
/** They are not over sooner, however short iterations are: people would hear of the end, and at once of the next ones. */
const QUIET_MS = 10_000;
/** Healthy iterations that tell the deviation. */
const NOISE_ITERATIONS = 30;
/** Those that are remembered: as many, and those that may turn out slow. */
const REMEMBERED = NOISE_ITERATIONS + WIDE_ITERATIONS;
const LEAST_NOISE = 0.005;
/**
 * What the tracker saw is told without a suspect only once it has lasted so long: of a job with iterations of 90 ms, all of
 * eight healthy ranks were slow together for two seconds in ten minutes.
 */
const LASTS_MS = 3000;
/** And so many iterations: two spikes in a row, or one stretch of a fluctuation, are over before that. */
const LASTS_ITERATIONS = 2 * PLAIN_ITERATIONS;
/** Slow iterations at which to look (again); with more of them causes are told apart that look alike at first. */
const ATTEMPTS = [3, 4, 5, 7, 10, 14];
/**
 * Of an intermittent slowdown: so many searches with every slow iteration, then with each so many more; anew where those
 * searched last and those of now have less than this share of the fewer in common: hiccups came first.
 */
const SEARCH_EACH = 8;
const SEARCH_EVERY = 3;
const SAME_PATTERN = 0.5;
/** Once a suspect is known, so many more slow iterations are looked at alone; it is over when twice they name somebody else. */
const LOOK_AGAIN = 10;
const MOST_MISSES = 2;
/**
 * Where somebody was found, once more soon; then where the job became slower or faster, and after twice as many iterations
 * each time: another may be slow by now.
 */
const SECOND_LOOK = 7;
const LOOK_EVERY = 20;
const CHANGED = 1.1;
/** Where somebody was found, so many iterations in a row that take longer than those before them: somebody else came to it. */
const BESIDE_ITERATIONS = 4;
const BESIDE_BEFORE = 8;
/** Back: the middle of the last ones is nearer to before than to after by this much of the way; so much of before at least, and at most. */
const BACK = 0.3;
const BACK_LEAST = 0.03;
const BACK_MOST = 0.1;
const BACK_ITERATIONS = 4;
/** Healthy iterations in a row that end a slow stretch, where another one follows before the job counts as back. */
const GAP = 2;
/** A change of the level by less is none of ours. */
const MATTERS = 1.05;

interface Last {
  readonly iteration: number;
  readonly startMs: number;
  readonly ms: number;
}

export class SlowdownDetector {
  #suspicion: SuspectedSlowdown | null = null;
  #slow = 0;
  #attempts = 0;
  #isSettled = false;
  /** The tracker saw it, and it has not lasted long enough to be told. */
  #isHeldBack = false;
  /** The last iteration of the stretch before, which is over. */
  #overAt = -Infinity;
  /** What an iteration took when the job was last searched again. */
  #searchedMs = NaN;
  /** What the tracker saw while the job was known to be slow now and then. */
  #pending: JobIteration["shift"] = null;
  readonly #window = new IntermittentWindow();
  readonly #habits = new PeriodicHabits();
  /** Of an intermittent slowdown: iterations since the last slow one, and their time. */
  #quiet = { iterations: 0, ms: 0 };
  /** Searches in a row that no longer came to the suspect of an intermittent slowdown. */
  #misses = 0;
  /** Of an intermittent slowdown: what was searched last, and how often in a row. */
  #searched = { slow: [] as readonly number[], at: 0, times: 0 };
  readonly #healthy: number[] = [];
  readonly #last: Last[] = [];

  /** The last iterations that were healthy, oldest first: what the tracker begins with after an incident. */
  get healthy(): readonly number[] {
    return this.#healthy;
  }

  get suspicion(): SuspectedSlowdown | null {
    return this.#suspicion;
  }

  /** After a restart of the service an incident that was open goes on; `isSettled`: it is known who is at fault. */
  resume(suspicion: SuspectedSlowdown, isSettled: boolean): void {
    this.#suspicion = suspicion;
    this.#slow = isSettled ? SECOND_LOOK + 1 : 0;
    this.#isSettled = isSettled;
  }

  /** The numbers went back: what is open goes on from here. */
  rebase(): void {
    this.#last.length = 0;
    this.#overAt = -Infinity;
    this.#window.clear();
    if (this.#suspicion) this.#suspicion = { ...this.#suspicion, slowFrom: -1 };
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Whether the last iterations were slow: what a search found counts only while the stretch lasts. */
  get lasts(): boolean {
    const suspicion = this.#suspicion;
    if (!suspicion || suspicion.intermittent) return suspicion !== null;
    const last = this.#last.filter(({ iteration }) => iteration >= suspicion.slowFrom).slice(-GAP);
    const back = backMs(suspicion);
    return last.length < GAP || last.some(({ ms }) => ms >= back);
  }

  /** Somebody was found: one more look, to be surer. */
  settle(): void {
    this.#isSettled = true;
    this.#misses = 0;
    if (this.#suspicion?.intermittent) this.#slow = 0;
  }

  /** A later search did not come to the suspect of an intermittent slowdown. */
  miss(): void {
    this.#misses++;
  }

  /** Whoever was found is slow no longer, and the job is: a stretch of somebody else began with this iteration or later. */
  beginAgain(iteration: number): void {
    const suspicion = this.#suspicion;
    if (!suspicion || suspicion.intermittent || !this.#isSettled) return;
    const back = backMs(suspicion);
    const first = this.#last.find((one) => one.iteration >= iteration && one.ms >= back);
    if (!first || first.iteration <= suspicion.slowFrom) return;
    // What is left may be far less slow than what was fixed.
    const since = this.#last.filter((one) => one.iteration >= first.iteration);
    this.#goOnFrom({ ...suspicion, afterMs: median(since.map(({ ms }) => ms)) }, first);
  }

  #goOnFrom(
    { beforeMs, afterMs, ...known }: SuspectedSlowdown,
    { iteration, startMs }: Last,
  ): void {
    const isTentative = known.isTentative && !this.#isSettled;
    const stretch = { slowFrom: iteration, fromMs: startMs, beforeMs, afterMs, isTentative };
    this.#begin(stretch, iteration);
  }

  push({ iteration, durationMs, endMs, levelMs, shift: seen }: JobIteration): SlowdownDecision[] {
    // After a restart agents tell again of what was before: another story, but what was healthy is of use.
    if (this.#suspicion && iteration < this.#suspicion.slowFrom) {
      if (durationMs < MATTERS * this.#suspicion.beforeMs) this.#remember(durationMs);
      return [];
    }
    const one = { iteration, startMs: endMs - durationMs, ms: durationMs };
    this.#last.push(one);
    const isHabit = this.#habits.has(iteration, durationMs, levelMs);
    // A jump that only we saw may turn out to be one of several that are over soon.
    if (!isHabit && (!this.#isLasting || this.#suspicion!.isTentative)) this.#window.push(one);
    if (this.#last.length > NOISE_ITERATIONS) this.#last.shift();
    const decisions: SlowdownDecision[] = [];
    const shift = this.#unlessOneOfSeveral(seen) ?? this.#jumpBeside();
    if (shift && shift.afterMs > MATTERS * shift.beforeMs) {
      const known = this.#suspicion;
      const isNew = !known || (known.isTentative && !this.#isSettled);
      const isHeldBack = isNew && !hasLasted(iteration, endMs, shift.fromIteration, shift.fromMs);
      const suspicion: SuspectedSlowdown = {
        slowFrom: shift.fromIteration,
        fromMs: shift.fromMs,
        // Slower once more: healthy is what it was before the first time.
        beforeMs: known ? Math.min(known.beforeMs, shift.beforeMs) : shift.beforeMs,
        afterMs: shift.afterMs,
        ...(this.#isBeside(shift.beforeMs) ? { besideMs: shift.beforeMs } : {}),
        isTentative: isHeldBack,
      };
      const isSame =
        known !== null &&
        !known.intermittent &&
        // The tracker may date it to a stretch before this one, which is over.
        suspicion.slowFrom <= known.slowFrom + PLAIN_ITERATIONS;
      if (isSame) {
        this.#suspicion = { ...known, afterMs: shift.afterMs, isTentative: isHeldBack };
        if (!isHeldBack) this.#window.drop((number) => number >= known.slowFrom);
        this.#slow++;
      } else this.#begin(suspicion, shift.fromIteration);
      this.#isHeldBack = isHeldBack;
      // What was found before the tracker spoke stands.
      if (!isHeldBack && (!isSame || known.isTentative))
        decisions.push({ do: "suspect", suspicion: this.#suspicion! });
    } else if (!this.#isLasting && this.#isPlain(levelMs, this.#plainIterations)) {
      this.#beginTentatively(this.#plainIterations, levelMs);
    } else if (this.#mayBeSteady && this.#isSteady()) {
      this.#beginTentatively(STEADY_ITERATIONS, median(this.#healthy.slice(0, -STEADY_ITERATIONS)));
    } else if (this.#mayBeSteady && this.#isWide()) {
      this.#beginTentatively(WIDE_ITERATIONS, median(this.#healthy.slice(0, -WIDE_ITERATIONS)));
    } else if (this.#isLasting) {
      this.#slow++;
      const { slowFrom, fromMs } = this.#suspicion!;
      if (this.#isHeldBack && this.lasts && hasLasted(iteration, endMs, slowFrom, fromMs))
        decisions.push({ do: "suspect", suspicion: this.#speak(this.#suspicion!) });
    }
    if (this.#isLasting) return [...decisions, ...this.#follow(this.#suspicion!)];
    if (isHabit) return decisions;
    const isSlow = this.#lookForIntermittent();
    const given = this.#suspicion;
    if (isSlow && given && this.#isHabitOfJob(given)) {
      this.#suspicion = null;
      return [{ do: "forget", suspicion: given }];
    }
    const { intermittent } = this.#suspicion ?? {};
    if (levelMs > 0 && intermittent?.slow.at(-1) !== iteration) this.#remember(durationMs);
    return this.#suspicion
      ? this.#followIntermittent(this.#suspicion, isSlow, durationMs)
      : decisions;
  }

  /** Where iterations are slow now and then, a shift of the level counts once it lasts longer than one stretch of those. */
  #unlessOneOfSeveral(seen: JobIteration["shift"]): JobIteration["shift"] {
    if (!this.#suspicion?.intermittent) {
      this.#pending = null;
      return seen;
    }
    if (seen && seen.afterMs > MATTERS * seen.beforeMs) this.#pending = seen;
    const shift = this.#pending;
    if (!shift) return null;
    const back = backMs(shift);
    const since = this.#last.filter(({ iteration }) => iteration >= shift.fromIteration);
    const isOver = since.length >= GAP && since.slice(-GAP).every(({ ms }) => ms < back);
    const inARow = since.slice(-this.#plainIterations);
    const isLong = inARow.length === this.#plainIterations && inARow.every(({ ms }) => ms >= back);
    if (isOver || isLong) this.#pending = null;
    return isLong ? shift : null;
  }

  /** Whether somebody is known who makes it as slow as it was. */
  #isBeside(ms: number): boolean {
    return this.#isLasting && this.#isSettled && ms > MATTERS * this.#suspicion!.beforeMs;
  }

  /** A jump that is too small for the tracker, beside whoever is known. */
  #jumpBeside(): JobIteration["shift"] {
    if (!this.#isLasting || !this.#isSettled) return null;
    const { slowFrom } = this.#suspicion!;
    const since = this.#last.filter(({ iteration }) => iteration >= slowFrom);
    const before = since.slice(0, -BESIDE_ITERATIONS).map(({ ms }) => ms);
    const last = since.slice(-BESIDE_ITERATIONS);
    if (before.length < BESIDE_BEFORE) return null;
    const beforeMs = median(before);
    const noise = Math.max(LEAST_NOISE * beforeMs, stepNoise(before));
    const least = Math.max(MATTERS * beforeMs, beforeMs + PLAIN_SIGMAS * noise);
    if (!last.every(({ ms }) => ms > least)) return null;
    const [{ iteration, startMs }] = last as [Last];
    const afterMs = median(last.map(({ ms }) => ms));
    return { fromIteration: iteration, fromMs: startMs, beforeMs, afterMs };
  }

  /** One of several short stretches is no jump yet: it has to be longer than those. */
  get #plainIterations(): number {
    const suspicion = this.#suspicion;
    if (!suspicion?.intermittent) return PLAIN_ITERATIONS;
    const back = backMs(suspicion);
    const fast = this.#last.findLastIndex(({ ms }) => ms < back);
    const from = this.#last[fast + 1]?.iteration ?? Infinity;
    const longer = LONGER_THAN_RUNS * longestRun(suspicion.intermittent.slow, from);
    return Math.min(LASTING, longer + PLAIN_ITERATIONS);
  }

  get #mayBeSteady(): boolean {
    return !this.#suspicion || (this.#suspicion.intermittent !== undefined && !this.#isSettled);
  }

  get #isLasting(): boolean {
    return this.#suspicion !== null && !this.#suspicion.intermittent;
  }

  /** Whether the newest iteration is one of several that are slow now and then. */
  #lookForIntermittent(): boolean {
    const found = this.#window.look();
    const known = this.#suspicion;
    if (!found || (!known && found.slow.length < ATTEMPTS[0]!)) return false;
    const { slow, of, beforeMs, afterMs, fromMs } = found;
    if (!known) {
      this.#isSettled = false;
      this.#searched = { slow: [], at: 0, times: 0 };
    }
    this.#slow = known ? this.#slow + 1 : slow.length;
    const since = known ?? { slowFrom: slow[0]!, fromMs, isTentative: true };
    this.#suspicion = { ...since, beforeMs, afterMs, intermittent: { slow, of } };
    return true;
  }

  /** Whether what is slow now and then always was, every so many iterations: nobody is searched for. */
  #isHabitOfJob({ beforeMs, afterMs, intermittent }: SuspectedSlowdown): boolean {
    if (this.#isSettled) return false;
    const isOfHabit = this.#habits.learn(intermittent!.slow, beforeMs, afterMs);
    if (isOfHabit) this.#window.drop(isOfHabit);
    return isOfHabit !== null;
  }

  #followIntermittent(
    suspicion: SuspectedSlowdown,
    isSlow: boolean,
    ms: number,
  ): SlowdownDecision[] {
    const { slow, of } = suspicion.intermittent!;
    const { iterations, ms: quietMs } = this.#quiet;
    if (isSlow) this.#quiet = { iterations: 0, ms: 0 };
    else if (ms < backMs(suspicion)) this.#quiet = { iterations: iterations + 1, ms: quietMs + ms };
    const isQuiet = this.#quiet.iterations >= quietIterations(slow) && this.#quiet.ms >= QUIET_MS;
    if (isQuiet || this.#misses >= MOST_MISSES) {
      this.#suspicion = null;
      this.#misses = 0;
      const isOver = new Set(slow);
      this.#window.drop((iteration) => isOver.has(iteration));
      return [{ do: this.#isSettled ? "recovered" : "forget", suspicion }];
    }
    if (!isSlow) return [];
    if (this.#isSettled) {
      if (this.#slow % LOOK_AGAIN !== 0) return [];
      const last = { ...suspicion, intermittent: { slow: slow.slice(-LOOK_AGAIN), of } };
      return [{ do: "localize", suspicion: last, slow: LOOK_AGAIN, isAgain: true, isLast: false }];
    }
    const now = new Set(slow);
    const { slow: last, at, times } = this.#searched;
    const both = last.filter((number) => now.has(number)).length;
    const isSame = both >= SAME_PATTERN * Math.min(last.length, slow.length);
    if (isSame && times >= SEARCH_EACH && this.#slow < at + SEARCH_EVERY) return [];
    this.#searched = { slow, at: this.#slow, times: isSame ? times + 1 : 1 };
    return [{ do: "localize", suspicion, slow: this.#slow, isAgain: false, isLast: false }];
  }

  #remember(ms: number): void {
    this.#healthy.push(ms);
    if (this.#healthy.length > REMEMBERED) this.#healthy.shift();
  }

  #begin(suspicion: SuspectedSlowdown, from: number): void {
    const wasLasting = this.#isLasting;
    this.#suspicion = suspicion;
    if (!suspicion.isTentative) this.#window.drop((iteration) => iteration >= from);
    // Those that turned out slow were taken for healthy.
    const late = this.#last.filter(({ iteration }) => iteration >= from).length - 1;
    if (late > 0 && !wasLasting)
      this.#healthy.splice(Math.max(0, this.#healthy.length - late), late);
    this.#slow = this.#last.filter(({ iteration }) => iteration >= from).length;
    this.#attempts = 0;
    this.#isSettled = false;
    this.#isHeldBack = false;
  }

  #speak(suspicion: SuspectedSlowdown): SuspectedSlowdown {
    this.#isHeldBack = false;
    // Its last attempt may have come before: what was too unsure then is told now.
    this.#attempts = Math.min(this.#attempts, ATTEMPTS.length - 1);
    this.#window.drop((iteration) => iteration >= suspicion.slowFrom);
    this.#suspicion = { ...suspicion, isTentative: false };
    return this.#suspicion;
  }

  /** With the last so many iterations. */
  #beginTentatively(iterations: number, beforeMs: number): void {
    const slow = this.#last.slice(-iterations);
    const { iteration, startMs } = slow[0]!;
    const afterMs = median(slow.map(({ ms }) => ms));
    this.#begin(
      { slowFrom: iteration, fromMs: startMs, beforeMs, afterMs, isTentative: true },
      iteration,
    );
  }

  #follow(suspicion: SuspectedSlowdown): SlowdownDecision[] {
    const back = backMs(suspicion);
    const since = this.#last.filter(({ iteration }) => iteration >= suspicion.slowFrom);
    if (
      since.length > BACK_ITERATIONS &&
      median(since.slice(-BACK_ITERATIONS).map(({ ms }) => ms)) < back
    ) {
      const slow = since.filter(({ ms }) => ms >= back).map(({ iteration }) => iteration);
      const isShort = slow.length > 0 && slow.length < LASTING;
      if (this.#isSettled && suspicion.isTentative && isShort) {
        // The same culprit may be back soon: one fault is one incident.
        this.#suspicion = { ...suspicion, intermittent: { slow, of: since.length } };
        this.#quiet = { iterations: 0, ms: 0 };
        this.#slow = 0;
        return [];
      }
      this.#suspicion = null;
      this.#overAt = since.at(-1)!.iteration;
      // A short jump that nobody was found for may be one of several; an incident that is over is another story.
      if (this.#isSettled || !suspicion.isTentative)
        this.#window.drop((iteration) => iteration >= suspicion.slowFrom);
      for (const { ms } of since.slice(-BACK_ITERATIONS)) if (ms < back) this.#remember(ms);
      return [{ do: "recovered", suspicion }];
    }
    const last = since.at(-1);
    const gap = since.slice(-1 - GAP, -1);
    if (last && last.ms >= back && gap.length === GAP && gap.every(({ ms }) => ms < back)) {
      // Slow again after a healthy gap: this may be somebody else, so the stretch before it is not searched with it.
      this.#goOnFrom(suspicion, last);
      return [];
    }
    if (this.#isSettled) {
      if (!this.#isDueAgain()) return [];
      return [{ do: "localize", suspicion, slow: this.#slow, isAgain: true, isLast: false }];
    }
    const due = ATTEMPTS[this.#attempts];
    if (due === undefined) {
      if (!suspicion.isTentative || this.#isHeldBack) return [];
      this.#suspicion = null;
      this.#overAt = since.at(-1)?.iteration ?? -Infinity;
      return [{ do: "forget", suspicion }];
    }
    if (this.#slow < due) return [];
    while (this.#attempts < ATTEMPTS.length && ATTEMPTS[this.#attempts]! <= this.#slow)
      this.#attempts++;
    const isLast = this.#attempts === ATTEMPTS.length;
    return [{ do: "localize", suspicion, slow: this.#slow, isAgain: false, isLast }];
  }

  #isDueAgain(): boolean {
    const turn = this.#slow / LOOK_EVERY;
    if (this.#slow !== SECOND_LOOK && !Number.isInteger(turn)) return false;
    const nowMs = median(this.#last.map(({ ms }) => ms));
    const ratio = Math.max(nowMs / this.#searchedMs, this.#searchedMs / nowMs);
    const isTurn = this.#slow === SECOND_LOOK || Number.isInteger(Math.log2(turn));
    if (!isTurn && !(ratio > CHANGED)) return false;
    this.#searchedMs = nowMs;
    return true;
  }

  #isPlain(levelMs: number, iterations: number): boolean {
    // The last ones are those in question.
    const healthy = this.#healthy.slice(0, 1 - PLAIN_ITERATIONS);
    if (!(levelMs > 0) || healthy.length < NOISE_ITERATIONS / 3) return false;
    const noise = Math.max(LEAST_NOISE * levelMs, stepNoise(healthy));
    const least = Math.max(PLAIN * levelMs, levelMs + PLAIN_SIGMAS * noise);
    const last = this.#last.slice(-iterations);
    return last.length === iterations && last.every(({ ms }) => ms > least);
  }

  #isSteady(): boolean {
    // Those in question were taken for healthy.
    const healthy = this.#healthy.slice(0, -STEADY_ITERATIONS).toSorted((a, b) => a - b);
    const last = this.#last.slice(-STEADY_ITERATIONS).map(({ ms }) => ms);
    if (healthy.length < NOISE_ITERATIONS / 2 || last.length < STEADY_ITERATIONS) return false;
    const most = healthy[Math.floor(LONGER_THAN * healthy.length)]!;
    return last.every((ms) => ms > most) && median(last) > PLAIN * median(healthy);
  }

  #isWide(): boolean {
    // Those in question were taken for healthy.
    const healthy = this.#healthy.slice(0, -WIDE_ITERATIONS);
    const last = this.#last
      .filter(({ iteration }) => iteration > this.#overAt)
      .slice(-WIDE_ITERATIONS)
      .map(({ ms }) => ms);
    if (healthy.length < WIDE_ITERATIONS || last.length < WIDE_ITERATIONS) return false;
    const level = median(healthy);
    const errors = spread(healthy) ** 2 / healthy.length + spread(last) ** 2 / last.length;
    return (
      median(last) - level >
      Math.max((PLAIN - 1) * level, WIDE_SIGMAS * MEDIAN_ERROR * Math.sqrt(errors))
    );
  }
}

function hasLasted(iteration: number, endMs: number, from: number, fromMs: number): boolean {
  return endMs - fromMs >= LASTS_MS && iteration - from + 1 >= LASTS_ITERATIONS;
}

/** Iterations that take less are as before. */
export function backMs({
  beforeMs,
  afterMs,
}: Pick<SuspectedSlowdown, "beforeMs" | "afterMs">): number {
  const way = Math.min(BACK_MOST * beforeMs, BACK * (afterMs - beforeMs));
  return beforeMs + Math.max(BACK_LEAST * beforeMs, way);
}

/** From one iteration to the next: a level that moved a little in between, or a slow stretch nobody saw, is no noise. */
function stepNoise(ms: readonly number[]): number {
  const steps = ms.slice(1).map((one, i) => one - ms[i]!);
  return spread(steps, 0) / Math.SQRT2;
}
