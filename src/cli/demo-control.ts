/** The job of the demonstration as its panel sees and steers it: what is broken, and whether the service could find it. */
import { UserError } from "../base/errors.ts";
import type { DemoControl, DemoFault, DemoState, ServiceView } from "../live/service/view.ts";
import type { Simulation } from "../simulate/cluster/times.ts";
import { chooseFault, type ChosenFault } from "./demo-faults.ts";
import type { DemoPlayer } from "./demo-player.ts";

export interface DemoJobOptions {
  readonly job: string;
  readonly simulation: Pick<Simulation, "spec" | "topology" | "lanes">;
  nowMs(this: void): number;
  /** 0 to below 1. */
  random(this: void): number;
  /** What acts from now on, as simulator faults: for the simulated metrics. */
  onChange(this: void, words: readonly string[]): void;
}

/** So many healthy iterations in a row are there to compare with what comes next. */
const CALM_ITERATIONS = 12;
/** Faults at once; a second one when the first has been there for so many iterations: it is found by then. */
const MOST_FAULTS = 2;
const FOUND_ITERATIONS = 10;
/** Draws of a second fault that is somewhere else. */
const MOST_DRAWS = 50;

/** An action of the service: what it is about. */
export interface DemoAction {
  readonly do: string;
  readonly machine: string | null;
  readonly rank: number | null;
}

interface Broken extends ChosenFault {
  readonly id: number;
  readonly kind: DemoFault["kind"];
  readonly sinceMs: number;
}

export class DemoJob implements DemoControl {
  readonly #options: DemoJobOptions;
  #player: DemoPlayer | null = null;
  #view: Pick<ServiceView, "job"> | null = null;
  #broken: Broken[] = [];
  #isStarting = false;
  #nextId = 1;
  /** The iteration in which something was broken last. */
  #brokenAt = 0;
  /** The last iteration that something was wrong in. */
  #wrongUntil = 0;

  constructor(options: DemoJobOptions) {
    this.#options = options;
  }

  /** Once both are there. */
  attach(player: DemoPlayer, view: Pick<ServiceView, "job">): void {
    this.#player = player;
    this.#view = view;
  }

  state(): DemoState {
    const news = this.#player?.news;
    return {
      job: this.#options.job,
      gpus: this.#options.simulation.spec.gpus,
      iteration: news?.iteration ?? 0,
      isHung: news?.isHung ?? false,
      isReady: this.#whyNotReady() === null,
      faults: this.#broken.map(({ id, kind, says, ranks, machine, sinceMs }) => ({
        id,
        kind,
        says,
        ranks,
        machine,
        sinceMs,
      })),
    };
  }

  breakIt(what: DemoFault): DemoState {
    const player = this.#running();
    if (this.#broken.length >= MOST_FAULTS)
      throw new UserError("two things are broken already", "fix them first", 2);
    if (player.news?.isHung) throw new UserError("the job hangs", "restart it first", 2);
    const why = this.#whyNotReady();
    if (why !== null) throw new UserError(why, "try again in a few seconds", 2);
    const chosen = this.#choose(what);
    const id = this.#nextId++;
    player.order({ do: "add", id, words: chosen.words });
    this.#brokenAt = player.news?.iteration ?? 0;
    const { nowMs } = this.#options;
    this.#broken = [...this.#broken, { ...chosen, id, kind: what.kind, sinceMs: nowMs() }];
    this.#changed();
    return this.state();
  }

  /** Somewhere else than what is broken already. */
  #choose(what: DemoFault): ChosenFault {
    const { random, simulation } = this.#options;
    for (let k = 0; k < MOST_DRAWS; k++) {
      const chosen = chooseFault(what, simulation, random);
      const isTaken = this.#broken.some(({ ranks }) =>
        ranks.some((rank) => chosen.ranks.includes(rank)),
      );
      if (!isTaken) return chosen;
    }
    throw new UserError("this is broken already", "choose another rank", 2);
  }

  mend(): DemoState {
    const player = this.#running();
    this.#take(() => true);
    // Nothing goes on by itself after a process has died.
    if (player.news?.isHung) this.restart().catch(() => undefined);
    return this.state();
  }

  async restart(): Promise<DemoState> {
    const player = this.#running();
    this.#isStarting = true;
    this.#broken = [];
    try {
      await player.restart();
      this.#wrongUntil = 0;
    } finally {
      this.#isStarting = false;
      this.#changed();
    }
    return this.state();
  }

  /** What an approved action does to the simulated cluster; one sentence. Taking out the wrong one fixes nothing. */
  carryOut({ do: word, machine, rank }: DemoAction): string {
    const player = this.#running();
    const isMeant = (one: Broken): boolean =>
      (machine !== null && one.machine === machine) || (rank !== null && one.ranks.includes(rank));
    const fixed = this.#take(isMeant);
    const isHung = player.news?.isHung ?? false;
    if (isHung && fixed > 0) this.restart().catch(() => undefined);
    const what =
      machine === null
        ? `${word} was carried out in the simulated cluster`
        : `a spare machine replaced ${machine}`;
    if (fixed === 0) return `${what}; nothing was wrong there`;
    return isHung ? `${what}, and the job was restarted` : what;
  }

  #take(isMeant: (one: Broken) => boolean): number {
    const gone = this.#broken.filter(isMeant);
    if (gone.length > 0) this.#wrongUntil = this.#player?.news?.iteration ?? 0;
    for (const { id } of gone) this.#player?.order({ do: "remove", id });
    this.#broken = this.#broken.filter((one) => !isMeant(one));
    this.#changed();
    return gone.length;
  }

  #changed(): void {
    this.#options.onChange(this.#broken.map(({ words }) => words));
  }

  #running(): DemoPlayer {
    if (!this.#player?.news || this.#isStarting)
      throw new UserError("the job is starting", "try again in a few seconds", 2);
    return this.#player;
  }

  /** null where the service knows what is normal, of this run, and sees nothing wrong: then it can notice. */
  #whyNotReady(): string | null {
    const news = this.#player?.news;
    if (!news || this.#isStarting) return "the job is starting";
    const seen = this.#view?.job(this.#options.job);
    if (!seen || seen.run !== news.run) return "the service has not seen the job yet";
    if (seen.baselineMs === null || seen.health === "learning")
      return "the service is still learning what is normal";
    if (this.#broken.length >= MOST_FAULTS) return "two things are broken already";
    if (this.#broken.length > 0) {
      const isFound = seen.lastIteration >= this.#brokenAt + FOUND_ITERATIONS;
      return isFound && seen.health === "slow"
        ? null
        : "the service is looking for the first fault";
    }
    const isCalm = seen.lastIteration >= this.#wrongUntil + CALM_ITERATIONS;
    return isCalm && seen.health === "healthy" ? null : "the job is still recovering";
  }
}
