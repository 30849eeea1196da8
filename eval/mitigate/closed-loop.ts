/**
 * Detect, localize, plan, apply, measure, in the simulator (Greyhound §7.3, §7.5). The loop sees what a service would
 * see: iteration times, operators of all ranks, and a test of links that it has to stop the job for. Faults are unknown
 * to it.
 */
import { LevelTracker } from "../../src/maths/level-tracker.ts";
import { median } from "../../src/maths/robust.ts";
import { hash } from "../../src/simulate/cluster/noise.ts";
import { makeMitigator, type Mitigator, type Order, type Trouble } from "./mitigator.ts";
import type { RemedyOptions } from "../../src/mitigate/remedies.ts";
import type { SlowLink } from "../../src/model/mitigation.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { Steering } from "../../src/simulate/cluster/steering.ts";
import type { IterationTimes, Simulation } from "../../src/simulate/cluster/times.ts";
import { diagnoseFiles } from "../../test/support/in-memory.ts";
import { knownJob, placeOfRank, ranksAt, seatsOf, type KnownJob } from "./known-job.ts";
import { OperatorWindow } from "./operator-window.ts";
import { profileOf, type Profile } from "./profile.ts";

export interface LoopOptions extends RemedyOptions {
  /** Without it nothing is done: the other half of an A/B test. */
  readonly isMitigating: boolean;
  readonly log?: (line: string) => void;
}

export interface Step {
  readonly iteration: number;
  readonly atMs: number;
  readonly order: Order;
}

export interface Belief {
  readonly iteration: number;
  readonly slow: readonly number[];
  readonly links: readonly (readonly [number, number])[];
}

export interface LoopResult {
  readonly iterationMs: readonly number[];
  readonly totalMs: number;
  readonly healthyMs: number;
  readonly steps: readonly Step[];
  /** The largest bound that the planner stated, with tests of links: loss, as a multiple of what the best in hindsight loses. */
  readonly bound: number;
  /** Iterations at which a slow-down was known, and what was named. */
  readonly diagnoses: readonly { readonly iteration: number; readonly named: string }[];
  /** What was believed to be slow from an iteration on, by slot of the unmoved layout. */
  readonly beliefs: readonly Belief[];
}

/** Iterations from which the loop learns what is healthy. */
const LEARN = 10;
/** A place is slow from this factor on. */
const SLOW = 1.08;
/** A factor must change so much to be a change. */
const CHANGED = 0.1;
const LATEST = 3;
/** An exchange is slow from this factor on. */
const SLOW_EXCHANGE = 1.5;
const UNEXPLAINED = 1.1;
/** Greyhound §7.4: all validation tests of links end within 5 s. */
const VALIDATION_MS = 5000;
/** How far such a test is off at most, and from where on a way is called slow. */
const VALIDATION_NOISE = 0.1;
const SLOW_LINK = 1.25;
const NEARLY_ALL = 0.75;

export async function closedLoop(spec: ClusterSpec, options: LoopOptions): Promise<LoopResult> {
  // A replica may take a multiple of its share when many others are slow.
  const simulation = simulate(spec, { mostMicroBatches: Math.min(4, spec.dp) * spec.microBatches });
  const loop = new Loop(simulation, options);
  for (const times of simulation.iterations((iteration) => loop.steer(iteration)))
    await loop.iteration(times);
  return loop.result();
}

class Loop {
  readonly #simulation: Simulation;
  readonly #options: LoopOptions;
  readonly #window: OperatorWindow;
  readonly #iterationMs: number[] = [];
  readonly #profiles: Profile[] = [];
  readonly #steps: Step[] = [];
  readonly #beliefs: Belief[] = [];
  readonly #diagnoses: { iteration: number; named: string }[] = [];
  #tracker = new LevelTracker();
  /** Healthy iterations, as shares of the level. */
  #usual: number[] = [];
  #pushed = 0;
  #bound = 1;
  #tests = 0;
  #job: KnownJob | null = null;
  #mitigator: Mitigator | null = null;
  /** By slot (physical): factors that are believed. */
  #compute = new Map<number, number>();
  #links: SlowLink[] = [];
  #network = new Map<number, number>();
  #slotAt: Int32Array;
  #next: Steering | null = null;
  /** Time of the iteration that was a pause. */
  #pauseMs = 0;
  /** What the tracker's series is divided by, and iterations that tell it anew. */
  #levelMs = 0;
  #calibrating: number[] | null = null;
  #askAgainAt = 0;
  /** Time lost since the network was suspected; null where it is not, or was tested. */
  #untested: number | null = null;

  constructor(simulation: Simulation, options: LoopOptions) {
    this.#simulation = simulation;
    this.#options = options;
    this.#window = new OperatorWindow(simulation);
    this.#slotAt = Int32Array.from(
      { length: simulation.spec.dp * simulation.spec.pp },
      (_, i) => i,
    );
  }

  steer(_iteration: number): Steering | null {
    const next = this.#next;
    this.#next = null;
    return next;
  }

  async iteration(times: IterationTimes): Promise<void> {
    const ms = (times.endNs - times.startNs) / 1e6;
    this.#iterationMs.push(ms);
    const ownMs = ms - this.#pauseMs;
    this.#pauseMs = 0;
    const profile = profileOf(this.#simulation, times);
    this.#profiles.push(profile);
    if (this.#profiles.length > LEARN) this.#profiles.shift();
    this.#window.push(times);
    if (!this.#options.isMitigating) return;
    if (!this.#job) {
      if (this.#iterationMs.length < LEARN) return;
      // The first iterations warm up.
      this.#job = knownJob(this.#simulation, this.#profiles.slice(2), this.#iterationMs.slice(2));
      this.#mitigator = makeMitigator(this.#job.placed, this.#options);
      this.#levelMs = this.#job.healthyMs;
      this.#usual = this.#iterationMs.slice(2).map((past) => past / this.#levelMs);
      this.#restartTracker();
      return;
    }
    await this.#follow(times, ownMs);
    this.#testLinks(times, ownMs);
    const order = this.#mitigator!.observe(ownMs);
    if (order) this.#carryOut(times, order);
  }

  async #follow(times: IterationTimes, ownMs: number): Promise<void> {
    if (this.#calibrating) {
      this.#calibrating.push(ownMs);
      if (this.#calibrating.length < LATEST) return;
      // The first one after a change may hold what comes with it.
      this.#levelMs = median(this.#calibrating.slice(1));
      this.#calibrating = null;
      this.#restartTracker();
      // Slower than what is known explains: something came while it was being learnt.
      if (this.#levelMs > UNEXPLAINED * this.#mitigator!.expectedMs)
        this.#askAgainAt = times.iteration + LATEST;
      return;
    }
    const shift = this.#tracker.push(this.#pushed++, ownMs / this.#levelMs);
    const isDue = this.#askAgainAt > 0 && times.iteration >= this.#askAgainAt;
    if ((shift && shift.after > shift.before) || isDue) {
      this.#askAgainAt = 0;
      await this.#diagnose(times, !isDue);
    }
    this.#remeasure(times);
  }

  /** What is known is normal from now on: the tracker begins with iterations as they were when nothing was new. */
  #restartTracker(): void {
    this.#tracker = new LevelTracker();
    this.#usual.forEach((value, i) => this.#tracker.push(i, value));
    this.#pushed = this.#usual.length;
  }

  async #diagnose(times: IterationTimes, mayAskAgain: boolean): Promise<void> {
    const verdict = await diagnoseFiles(this.#window.files(times));
    const names = verdict.suspects.map(({ type, ranks, cause, machine, name }) =>
      [
        cause,
        type,
        name ?? machine ?? "",
        ranks.length > 4 ? `${ranks.length} ranks` : ranks.join(" "),
      ].join(" "),
    );
    const found = this.#believe(times, verdict);
    this.#diagnoses.push({ iteration: times.iteration, named: names.join("; ") || "nobody" });
    this.#options.log?.(
      `iteration ${times.iteration}: ${verdict.kind}, ${names.join("; ") || "nobody"}; slow places ${[...this.#compute].map(([slot, f]) => `${slot}×${f.toFixed(2)}`).join(" ")} links ${this.#links.map(({ a, b, factor }) => `${a}-${b}×${factor.toFixed(1)}`).join(" ")}`,
    );
    if (found) this.#tell(times);
    else if (mayAskAgain) this.#askAgainAt = times.iteration + LATEST;
  }

  /** Takes a verdict over: which places are slow, measured; which links are, tested. */
  #believe(times: IterationTimes, { suspects, kind }: Verdict): boolean {
    if (kind !== "fail-slow" && kind !== "regression") return false;
    const isNetwork =
      suspects.some(({ cause }) => cause === "network-slow") || this.#isExchangeSlow();
    const before = this.#compute.size + this.#links.length;
    if (suspects.some(({ cause }) => cause !== "network-slow")) {
      for (const place of this.#slowPlaces())
        this.#compute.set(this.#slotAt[place]!, this.#factorAt(place));
    }
    if (isNetwork && this.#untested === null) this.#untested = 0;
    return this.#compute.size + this.#links.length > before || isNetwork;
  }

  /** Tests stop the job, so they are rented, too: they come when as much was lost as they cost. */
  #testLinks(times: IterationTimes, ownMs: number): void {
    if (this.#untested === null) return;
    this.#untested += ownMs - this.#job!.healthyMs;
    if (this.#untested < VALIDATION_MS) return;
    this.#untested = null;
    this.#tests++;
    this.#pause(VALIDATION_MS);
    this.#links = this.#testedLinks(times);
    this.#options.log?.(
      `iteration ${times.iteration}: links tested: ${this.#links.map(({ a, b, factor }) => `${a}-${b}×${factor.toFixed(1)}`).join(" ") || "none is slow"}`,
    );
    this.#tell(times);
  }

  /** Whether some group's exchange takes much longer than it did, once all are there. */
  #isExchangeSlow(): boolean {
    return this.#job!.exchangeMs.some((usualMs, g) => {
      const latest = this.#profiles.slice(-LATEST).map(({ exchangeMs }) => exchangeMs[g]!);
      return median(latest) > SLOW_EXCHANGE * usualMs;
    });
  }

  /** Places whose own time grew: direct evidence, whoever else the verdict names. */
  #slowPlaces(): number[] {
    return [...this.#slotAt.keys()].filter((place) => this.#factorAt(place) > SLOW);
  }

  #factorAt(place: number): number {
    const stage = Math.floor(place / this.#simulation.spec.dp);
    const ranks = ranksAt(this.#simulation, place);
    const latest = this.#profiles
      .slice(-LATEST)
      .map(({ passMs }) => Math.max(...ranks.map((r) => passMs[r]!)));
    return median(latest) / this.#job!.passMs[stage]!;
  }

  /**
   * Bandwidth tests between all machines of a stage (Greyhound §4.3: in passes in which every machine tests one link at a
   * time). What a test measures is what the way does now, give or take its noise; that of a healthy way, too.
   */
  #testedLinks({ devices, iteration }: IterationTimes): SlowLink[] {
    const { spec } = this.#simulation;
    const pairFactor = new Map<string, number>();
    for (const [key, severity] of devices.pair) {
      const places = [Math.floor(key / spec.gpus), key % spec.gpus].map((rank) =>
        placeOfRank(this.#simulation, rank),
      );
      const at = places.join(" ");
      pairFactor.set(at, Math.max(severity, pairFactor.get(at) ?? 1));
    }
    const nicFactor = Float64Array.from(this.#slotAt, (_, place) =>
      Math.max(...ranksAt(this.#simulation, place).map((rank) => devices.nic[rank]!)),
    );
    const slow: { a: number; b: number; factor: number }[] = [];
    const slowOf = new Int32Array(this.#slotAt.length);
    for (let a = 0; a < this.#slotAt.length; a++) {
      const end = (Math.floor(a / spec.dp) + 1) * spec.dp;
      for (let b = a + 1; b < end; b++) {
        const truth = Math.max(pairFactor.get(`${a} ${b}`) ?? 1, nicFactor[a]!, nicFactor[b]!);
        const u = hash(spec.seed ^ a, b, iteration, 77) / 2 ** 32;
        const factor = truth * (1 + VALIDATION_NOISE * (2 * u - 1));
        if (factor <= SLOW_LINK) continue;
        slow.push({ a, b, factor });
        slowOf[a]!++;
        slowOf[b]!++;
      }
    }
    // Whose ways are nearly all slow has a slow NIC; a single way has two ends, and neither is told.
    const isNic = (place: number): boolean =>
      spec.dp > 2 && slowOf[place]! >= NEARLY_ALL * (spec.dp - 1);
    this.#network = new Map();
    for (const { a, b, factor } of slow)
      for (const place of [a, b])
        if (isNic(place)) {
          const slot = this.#slotAt[place]!;
          this.#network.set(slot, Math.max(factor, this.#network.get(slot) ?? 1));
        }
    return slow
      .filter(({ a, b }) => !isNic(a) && !isNic(b))
      .map(({ a, b, factor }) => ({ a: this.#slotAt[a]!, b: this.#slotAt[b]!, factor }));
  }

  /** Follows what is known to be slow: worse, better, over. */
  #remeasure(times: IterationTimes): void {
    let isChanged = false;
    const placeOf = new Map([...this.#slotAt].map((slot, place) => [slot, place]));
    for (const [slot, believed] of this.#compute) {
      const factor = this.#factorAt(placeOf.get(slot)!);
      if (Math.abs(factor - believed) < CHANGED * believed) continue;
      isChanged = true;
      if (factor < SLOW) this.#compute.delete(slot);
      else this.#compute.set(slot, factor);
    }
    const links = this.#links.filter((link) => !this.#isLinkFast(link, placeOf));
    if (links.length < this.#links.length) isChanged = true;
    this.#links = links;
    if (this.#network.size > 0 && !this.#isExchangeSlow()) {
      this.#network = new Map();
      isChanged = true;
    }
    if (isChanged) this.#tell(times);
  }

  /** A link that gradients pass shows in their exchange; one that nothing passes is believed until it matters again. */
  #isLinkFast({ a, b }: SlowLink, placeOf: ReadonlyMap<number, number>): boolean {
    const { spec, lanes } = this.#simulation;
    const stage = Math.floor(placeOf.get(a)! / spec.dp);
    if (stage !== Math.floor(placeOf.get(b)! / spec.dp)) return false;
    const groups = Array.from({ length: lanes.dp.count }, (_, g) => stage * lanes.dp.count + g);
    return groups.every((g) => {
      const latest = this.#profiles.slice(-LATEST).map(({ exchangeMs }) => exchangeMs[g]!);
      return median(latest) < SLOW * this.#job!.exchangeMs[g]!;
    });
  }

  #tell(times: IterationTimes): void {
    const trouble: Trouble = { compute: this.#compute, network: this.#network, links: this.#links };
    this.#beliefs.push({
      iteration: times.iteration,
      slow: [...this.#compute.keys()],
      links: this.#links.map(({ a, b }) => [a, b] as const),
    });
    const order = this.#mitigator!.diagnosed(trouble);
    this.#bound = Math.max(this.#bound, this.#mitigator!.bound);
    this.#calibrating = [];
    if (order) this.#carryOut(times, order);
  }

  #carryOut(times: IterationTimes, order: Order): void {
    this.#steps.push({ iteration: times.iteration, atMs: times.endNs / 1e6, order });
    this.#options.log?.(`iteration ${times.iteration}: ${order.strategy}: ${order.why}`);
    this.#slotAt = order.slotAt;
    this.#pause(order.pauseMs);
    this.#next = {
      ...this.#next,
      microBatches: order.microBatches,
      seats: seatsOf(this.#simulation, order.slotAt),
    };
    this.#calibrating = [];
    if (order.strategy === "S4") {
      this.#compute.clear();
      this.#links = [];
      this.#network = new Map();
    }
  }

  #pause(ms: number): void {
    this.#pauseMs += ms;
    this.#next = { ...this.#next, pauseNs: this.#pauseMs * 1e6 };
  }

  result(): LoopResult {
    return {
      iterationMs: this.#iterationMs,
      totalMs: this.#iterationMs.reduce((sum, ms) => sum + ms, 0),
      healthyMs: this.#job?.healthyMs ?? median(this.#iterationMs.slice(2, LEARN)),
      steps: this.#steps,
      // Tests are rented, too: each costs at most what was lost since the one before, together the whole loss once.
      bound: this.#bound + (this.#tests > 0 ? 1 : 0),
      diagnoses: this.#diagnoses,
      beliefs: this.#beliefs,
    };
  }
}
