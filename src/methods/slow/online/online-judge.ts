/**
 * Who is slow, since when, and is it over? Asked after each block of time, told nothing but how the time of all ranks passed.
 * README.md has the model.
 */
import type { Rank } from "../../../model/ids.ts";
import type { LiveJudgement } from "../../../model/live-judgement.ts";
import { Admission } from "./admission.ts";
import { CommonPace, type PaceGrowth } from "./common-pace.ts";
import { Culprits, type Ended, NAMED_FROM } from "./culprits.ts";
import { Evidence } from "./evidence.ts";
import {
  addRanks,
  addSpikes,
  addWires,
  type Candidate,
  Hypotheses,
  type Posterior,
} from "./hypotheses.ts";
import type { KeptBlock } from "./kept-block.ts";
import { type Kind, kindsOf, LEADS } from "./kinds.ts";
import { addMachines, machinesOf } from "./machines.ts";
import { PastShifts, TAIL_BLOCKS } from "./past-shifts.ts";
import { RecentBlocks } from "./recent-blocks.ts";
import { Spikes } from "./spikes.ts";
import { ofOneMachine, ofOneWire } from "./together.ts";
import type { Window } from "./windows.ts";

/** Blocks that may be a fault's with this probability are not learnt from. */
const DOUBTED_FROM = 0.05;

/** Whom the judge compares. Places count ranks from 0. */
export interface JudgedJob {
  readonly ranks: readonly Rank[];
  /** Process groups of two and more; that of all ranks is added. Each is a wire, too. */
  readonly groups: readonly JudgedGroup[];
  /** By place: which machine it is on, -1 where that is not known. */
  readonly machineOf?: ArrayLike<number>;
}
interface JudgedGroup {
  /** Words for it: "DATA_PARALLEL_1". */
  readonly name: string;
  readonly places: readonly number[];
}

/** Half a second or an iteration, whichever is longer (blocks.ts). Numbers by place; NaN: not heard of. */
export interface Block {
  readonly startMs: number;
  readonly lengthMs: number;
  /** The longest time in it in which no operator ended anywhere. */
  readonly silentMs: number;
  /** Iterations of the job that ended in it, and what one took lately; NaN where iterations are not known. */
  readonly iterations: number;
  readonly iterationMs: number;
  /** Shares of the block, as ShareColumns has them. */
  readonly inside: Float32Array;
  readonly late: Float32Array;
  readonly gpu: Float32Array;
  readonly onWire: Float32Array;
  /** Operators in all. */
  readonly issued: Float32Array;
  readonly ended: Float32Array;
  /** By group of the job: what one of its operators took the member that waited least; and how many ended. */
  readonly wireMs: Float32Array;
  readonly wireCount: Float32Array;
}

export class OnlineJudge {
  /** Place of the job's first rank. */
  readonly #first: number;
  readonly #kinds: readonly Kind[];
  readonly #machines: readonly (readonly number[])[];
  readonly #admission = new Admission();
  readonly #recent: RecentBlocks;
  /** By kind. */
  readonly #past: readonly PastShifts[];
  readonly #commonPace = new CommonPace();
  /** By kind. */
  readonly #spikes: readonly Spikes[];
  readonly #culprits: Culprits;
  #state: LiveJudgement["state"] = "learning";
  #untilMs = 0;

  constructor(job: JudgedJob) {
    this.#first = job.ranks.indexOf(0);
    this.#kinds = kindsOf(job);
    this.#machines = machinesOf(job.machineOf);
    this.#recent = new RecentBlocks(this.#kinds);
    this.#past = this.#kinds.map(() => new PastShifts());
    this.#spikes = this.#kinds.map((kind) => new Spikes(kind));
    this.#culprits = new Culprits(job, this.#kinds, this.#recent, this.#spikes);
  }

  /** Blocks one behind the other. */
  step(block: Block): LiveJudgement {
    this.#untilMs = block.startMs + block.lengthMs;
    const { blocks, isStanding, stood } = this.#admission.take(block);
    if (stood) this.#recent.dropLast();
    for (const one of blocks.slice(0, -1)) this.#recent.add(one);
    const ended = blocks.length === 0 ? [] : this.#judge(this.#recent.add(blocks.at(-1)!));
    const state = isStanding ? "stands" : this.#state;
    return { state, untilMs: this.#untilMs, culprits: this.#culprits.told(), ended };
  }

  #judge(last: KeptBlock): Ended[] {
    const ended = this.#culprits.end(this.#untilMs);
    const windows = this.#recent.windows(this.#culprits.floor);
    const { usual } = this.#recent;
    if (usual !== null)
      for (const [k, spikes] of this.#spikes.entries())
        spikes.add(last, last.apart[k]!, usual[k]!, this.#culprits.known(k));
    if (windows.length > 0) ended.push(...this.#weigh(last, windows));
    else if (this.#recent.isWarm) this.#recent.trustFrom(last.number);
    const isKnown = windows.length > 0 || this.#state !== "learning";
    this.#state = !this.#culprits.isNobody ? "slow" : isKnown ? "healthy" : "learning";
    return ended;
  }

  #weigh(last: KeptBlock, windows: readonly Window[]): Ended[] {
    const evidence = this.#kinds.map(
      (kind, index) => new Evidence(kind, index, windows, this.#past[index]!),
    );
    const culprits = this.#culprits;
    culprits.renew(evidence, last);
    const growths = this.#commonPace.growths(windows, this.#recent.quiet);
    const posterior = this.#posterior(evidence, last);
    const pace = (w: number): number => evidence[LEADS]!.pace(w);
    const all = culprits.isNobody ? this.#commonPace.weigh(growths, posterior, pace) : null;
    if (!culprits.isLasting) this.#learn(evidence, growths, posterior, all);
    const candidates = ofOneWire(posterior.candidates, this.#kinds);
    const named = candidates.filter(({ probability }) => probability >= NAMED_FROM);
    const sure = named.length > 0 || !all || all.probability < NAMED_FROM ? named : [all];
    const revised: Ended[] = [];
    for (const one of ofOneMachine(sure, culprits.hypotheses, this.#machines)) {
      culprits.name(one, one.probability);
      revised.push(...culprits.revise(one, evidence, this.#untilMs));
    }
    if (culprits.isLasting) this.#recent.nameFrom(last.number);
    return revised;
  }

  /** Who else is slow. */
  #posterior(evidence: readonly Evidence[], last: KeptBlock): Posterior {
    const to = new Hypotheses();
    const culprits = this.#culprits;
    const known = culprits.known(LEADS);
    const logHiccups = this.#spikes[LEADS]!.hiccups(known);
    addRanks(to, evidence[LEADS]!, known, logHiccups);
    for (const one of evidence)
      if (one.index !== LEADS) addWires(to, one, culprits.known(one.index), last);
    addMachines(to, evidence[LEADS]!, this.#machines, known, logHiccups);
    // Beside a slow rank others lead now and then, too.
    for (const [k, spikes] of this.#spikes.entries())
      if (spikes.isNew && !culprits.isLasting) {
        const found = spikes.weigh(culprits.known(k));
        addSpikes(to, this.#kinds[k]!, k, found, last, this.#first);
      }
    return to.posterior();
  }

  /** What this block shows is usual, unless something may have begun. */
  #learn(
    evidence: readonly Evidence[],
    growths: readonly PaceGrowth[],
    { nothing, candidates }: Posterior,
    all: Candidate | null,
  ): void {
    const isDoubted = all !== null && all.probability > DOUBTED_FROM;
    const likeliest = 1 - nothing > DOUBTED_FROM ? candidates[0] : isDoubted ? all : undefined;
    if (likeliest === undefined) {
      for (const [kind, one] of evidence.entries())
        this.#past[kind]!.add(
          one.windows.map((window, w) => ({
            window,
            shift: one.shifts[w]!,
            scaled: window.blocks === TAIL_BLOCKS ? one.scaled(w) : [],
          })),
        );
      this.#commonPace.learn(growths);
      this.#recent.trustFrom(-Infinity);
      return;
    }
    for (const past of this.#past) past.doubt();
    this.#commonPace.doubt();
    if (likeliest.shape === "lasting") this.#recent.doubtFrom(likeliest.since);
  }
}
