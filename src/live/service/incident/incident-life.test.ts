/** Random sequences of faults, fixes, restarts and late verdicts against the rules of docs/incidents.md. */
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/support/cases.ts";
import { pick, type Random, randomInt, seeded } from "../../../base/random.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import { accusesSame, isAbout } from "./incident-lifecycle.ts";
import type {
  Diagnosis,
  JobDecision,
  JobEvent,
  LocalizeDecision,
  SaveDecision,
} from "../job/job-events.ts";
import { reduceJob } from "../job/job-reducer.ts";
import {
  type JobState,
  newJobState,
  openSlowdowns,
  savedState,
  type SavedJobState,
  wastedGpuMs,
} from "../job/job-state.ts";

import type { SuspectedSlowdown } from "../slowdown/slowdown-detector.ts";

const RANKS = 8;
const OWN_MS = 800;
const COMMUNICATION_MS = 200;
const OPTIONS = { hangMs: 1e9, pauseMs: 1e9, relapseMs: 60_000, validation: null };
const ALL = { has: () => true };
const EVERY_ITERATION = {
  ...pointsOf(RANKS),
  sendMs: new Float32Array(RANKS),
  recvMs: new Float32Array(RANKS),
};
/** A rank, or the link from it to the next. */
type Culprit = number | `link ${number}`;

interface Search {
  readonly search: LocalizeDecision;
  readonly diagnosis: Diagnosis | null;
  due: number;
}

type Without<E> = E extends JobEvent ? Omit<E, "nowMs"> : never;

function suspectOf(culprit: Culprit): Suspect {
  const common = { machine: null, name: null, score: 0.9, why: "", evidence: [] };
  if (typeof culprit === "number")
    return { ...common, type: "rank", ranks: [culprit], link: null, cause: "gpu-slow" };
  const rank = Number(culprit.slice(5));
  const ranks = [rank, rank + 1];
  const link = [`${rank}`, `${rank + 1}`] as const;
  return { ...common, type: "link", ranks, link, cause: "network-slow" };
}

function culpritOf({ verdict }: Incident): Culprit | null {
  const [first] = verdict?.suspects ?? [];
  if (!first) return null;
  return first.type === "rank" ? first.ranks[0]! : `link ${first.ranks[0]!}`;
}

function verdictOn(culprit: Culprit, confidence = 0.9): Verdict {
  const suspect = suspectOf(culprit);
  const all = Array.from({ length: RANKS }, (_, rank) => rank);
  return testVerdict({
    kind: "fail-slow",
    summary: `${culprit} is slow`,
    confidence,
    suspects: [suspect],
    victims: all.filter((rank) => !suspect.ranks.includes(rank)),
  });
}

class World {
  state: JobState = newJobState("job", null, null, OPTIONS);
  nowMs = 1.7e12;
  iteration = 0;
  run = 0;
  readonly faults = new Map<Culprit, number>();
  /** By iteration: which faults there were. */
  readonly past: Culprit[][] = [];
  /** Of the search, in iterations. */
  lag = 0;
  saveLag = 0;
  /** How often a search accuses somebody else, at random, and whom it accuses for certain. */
  wrong = 0;
  blamed: Culprit | null = null;
  readonly random: Random;
  readonly log: string[] = [];
  readonly saved = new Map<string, Incident>();
  readonly wasWrong = new Set<string>();
  #search: Search | null = null;
  #save: { readonly save: SaveDecision; due: number } | null = null;
  #lost = 0;

  constructor(random: Random) {
    this.random = random;
    this.begin();
  }

  begin(): void {
    const report = {
      ...jobOf(
        "job",
        Array.from({ length: RANKS }, (_, i) => i),
      ),
      startedMs: this.nowMs,
      run: `run${this.run}`,
      worldSize: RANKS,
    };
    this.send({ type: "job", agent: "a", machine: "m", report, connected: ALL });
  }

  restart(): void {
    this.log.push(`${this.iteration} restart`);
    this.run++;
    this.nowMs += 60_000;
    this.iteration = 0;
    this.past.length = 0;
    this.faults.clear();
    this.begin();
    this.settle();
    for (const one of this.open) expect(one.run, this.story).toBe(`run${this.run}`);
  }

  /** The service is killed, and another one takes over with what was saved. */
  kill(): void {
    this.log.push(`${this.iteration} kill`);
    this.settle();
    const saved = JSON.parse(JSON.stringify(savedState(this.state))) as SavedJobState;
    this.#search = null;
    this.state = newJobState("job", null, saved, OPTIONS);
    expect(this.open.map(({ id }) => id)).toEqual(
      [saved.slow, ...saved.besides!].flatMap((one) => one?.id ?? []),
    );
    this.begin();
  }

  fault(culprit: Culprit, ms: number): void {
    this.log.push(`${this.iteration} + ${culprit} ${ms}`);
    this.faults.set(culprit, ms);
  }

  fix(culprit: Culprit): void {
    this.log.push(`${this.iteration} - ${culprit}`);
    this.faults.delete(culprit);
  }

  get open(): Incident[] {
    return openSlowdowns(this.state);
  }

  get story(): string {
    return this.log.join("\n");
  }

  /** Of those open: who is accused. */
  get accused(): (Culprit | null)[] {
    return this.open.map(culpritOf);
  }

  iterate(count: number): void {
    for (let k = 0; k < count; k++) {
      let [own, link] = [0, 0];
      for (const [culprit, ms] of this.faults)
        if (typeof culprit === "number") own = Math.max(own, ms);
        else link += ms;
      const noise = 1 + 0.004 * (this.random() - 0.5);
      const duration = noise * (OWN_MS + COMMUNICATION_MS + own + link);
      this.nowMs += duration;
      this.iteration++;
      this.past[this.iteration] = [...this.faults.keys()];
      const collectiveMs = new Float32Array(RANKS);
      for (let rank = 0; rank < RANKS; rank++)
        collectiveMs[rank] = duration - OWN_MS - (this.faults.get(rank) ?? 0);
      const report = {
        ...EVERY_ITERATION,
        run: `run${this.run}`,
        iteration: new Float64Array(RANKS).fill(this.iteration),
        endMs: new Float64Array(RANKS).fill(this.nowMs),
        durationMs: new Float32Array(RANKS).fill(duration),
        collectiveMs,
      };
      this.send({ type: "points", agent: "a", report });
      this.send({ type: "tick" });
      this.#carryOn();
    }
  }

  /** What is under way ends. */
  settle(): void {
    for (let k = 0; k < 100 && (this.#search || this.#save); k++) {
      if (this.#search) this.#search.due = 0;
      if (this.#save) this.#save.due = 0;
      this.#carryOn();
    }
    expect(this.state.isBusy, this.story).toBe(false);
    expect(this.state.steps, this.story).toEqual([]);
  }

  #carryOn(): void {
    for (let k = 0; k < 50; k++) {
      if (this.#save && this.#save.due <= this.iteration) {
        const { save } = this.#save;
        this.#save = null;
        this.send({ type: "saved", save });
      } else if (this.#search && this.#search.due <= this.iteration) {
        const { search, diagnosis } = this.#search;
        this.#search = null;
        this.send({ type: "localized", search, diagnosis });
      } else return;
    }
  }

  send(event: Without<JobEvent>): void {
    const before = this.state;
    const { state, decisions } = reduceJob(before, { ...event, nowMs: this.nowMs });
    this.state = state;
    for (const decision of decisions) this.#decided(decision);
    this.#check(before);
  }

  #decided(decision: JobDecision): void {
    if (decision.do === "save") {
      this.#checkRecord(this.saved.get(decision.incident.id), decision.incident);
      this.saved.set(decision.incident.id, decision.incident);
      this.#save = { save: decision, due: this.iteration + this.saveLag };
    } else if (decision.do === "localize")
      this.#search = {
        search: decision,
        diagnosis: this.#answer(decision),
        due: this.iteration + this.lag,
      };
  }

  /** Who takes longer in the slow iterations that are compared than in the others, most of all. */
  #answer({ run, suspicion, isAgain }: LocalizeDecision): Diagnosis | null {
    const { iterations, ranks, durationMs, collectiveMs } = run.compared(suspicion, isAgain);
    if (suspicion.intermittent) return this.#answerIntermittent(suspicion, suspicion.intermittent);
    const isSlow = (number: number): boolean => number >= suspicion.slowFrom;
    const means = [false, true].map((wanted) => {
      const sums = new Float64Array(ranks.length + 1);
      let count = 0;
      for (const [i, number] of iterations.entries()) {
        if (isSlow(number) !== wanted) continue;
        count++;
        let longest = 0;
        for (let k = 0; k < ranks.length; k++) {
          const own = durationMs[i * ranks.length + k]! - collectiveMs[i * ranks.length + k]!;
          sums[k]! += own;
          longest = Math.max(longest, own);
        }
        sums[ranks.length]! += durationMs[i * ranks.length]! - longest;
      }
      return sums.map((sum) => sum / count);
    });
    const rises = means[1]!.map((mean, k) => mean - means[0]![k]!);
    let most = 0;
    for (let k = 1; k < rises.length; k++) if (rises[k]! > rises[most]!) most = k;
    if (!(rises[most]! > 50)) return null;
    if (this.blamed !== null) return { verdict: verdictOn(this.blamed, 0.6) };
    if (this.random() < this.wrong)
      return { verdict: verdictOn(randomInt(this.random, RANKS), 0.6) };
    if (most < ranks.length) return { verdict: verdictOn(ranks[most]!) };
    // Which link it is, is known by other means: one that was slow in these iterations.
    const links = [...iterations]
      .filter(isSlow)
      .flatMap((number) => this.past[number] ?? [])
      .filter((one) => typeof one === "string");
    return links.length > 0 ? { verdict: verdictOn(links.at(-1)!) } : null;
  }

  /** Whom most of the slow iterations speak for, and at least three. */
  #answerIntermittent(
    suspicion: SuspectedSlowdown,
    { slow, of }: NonNullable<SuspectedSlowdown["intermittent"]>,
  ): Diagnosis | null {
    const counts = new Map<Culprit, number[]>();
    for (const number of slow)
      for (const culprit of this.past[number] ?? [])
        counts.set(culprit, [...(counts.get(culprit) ?? []), number]);
    const [most] = [...counts].sort((a, b) => b[1].length - a[1].length);
    if (!most || most[1].length < 3 || most[1].length < (2 / 3) * slow.length) return null;
    const slowdown = { ...suspicion, intermittent: { slow: most[1], of } };
    return { verdict: verdictOn(most[0]), slowdown };
  }

  #holds(condition: boolean, rule: string): void {
    if (!condition) throw new Error(`broken: ${rule}\n${this.story}`);
  }

  /** What is written down. */
  #checkRecord(old: Incident | undefined, now: Incident): void {
    if (now.state === "resolved") {
      this.#holds(now.ending !== undefined, "4: what is over says how it ended");
      const isPast = / was slow .*from .* to .* UTC: /.test(now.summary);
      this.#holds(isPast, `10: the past tense: ${now.summary}`);
      this.log.push(`${this.iteration} ${now.ending} ${culpritOf(now)} ${now.id}`);
      if (now.ending === "fixed") this.#checkFixed(now);
    } else this.#holds(now.ending === undefined, "4: what is open has not ended");
    if (!old) return;
    this.#holds(now.revision > old.revision, "a record has one more revision");
    this.#holds(now.wastedGpuMs >= old.wastedGpuMs - 1e-6, "9: costs only grow");
    if (now.verdict) this.#holds(isAbout(old, now.verdict, true), "1: it keeps its culprit");
    if (now.relapses > old.relapses)
      this.#holds(accusesSame(old.verdict, now.verdict), "7: a relapse has the same culprit");
  }

  /** Its culprit was healthy for some iterations in a row (four where others are slow), just now or before what was under way. */
  #checkFixed(incident: Incident): void {
    const culprit = culpritOf(incident)!;
    // Of the run before.
    if (incident.run !== `run${this.run}`) return;
    const last = this.past
      .slice(-8 - this.lag - this.saveLag)
      .map((slow) => slow.includes(culprit));
    const most = incident.summary.endsWith(" again") ? 2 : 4;
    const isHealthy = last.some(
      (_, i) => i + 1 >= most && !last.slice(i + 1 - most, i + 1).includes(true),
    );
    this.#holds(isHealthy, "5: nobody is fixed who is slow");
  }

  /** After every event. */
  #check(before: JobState): void {
    const { state, open } = this;
    const ids = new Set(open.map(({ id }) => id));
    this.#holds(open.length <= 8, "2: eight at most");
    this.#holds(ids.size === open.length, "2: each once");
    this.#holds(state.slow !== null || state.besides.length === 0, "2: one of them is the newest");
    const known = new Set(openSlowdowns(before).map(({ id }) => id));
    for (const id of known)
      if (!ids.has(id)) {
        const isKept = [state.recent, ...state.earlier].some((one) => one?.id === id);
        this.#holds(isKept, "4: nothing vanishes");
      }
    for (const one of open) {
      const { id, openedMs, intermittent } = one;
      if (known.has(id)) continue;
      this.log.push(`${this.iteration} opened ${id} ${culpritOf(one)}`);
      const isNow = openedMs === this.nowMs && !intermittent;
      const last = this.past.slice(-2);
      const isSlow = last.length < 2 || last.some((slow) => slow.length > 0);
      this.#holds(!isNow || isSlow, "6: a verdict counts while the stretch lasts");
    }
    const lost = wastedGpuMs(state, this.nowMs);
    this.#holds(lost >= this.#lost - 1e-3, `9: the job's costs only grow: ${this.#lost}, ${lost}`);
    this.#lost = lost;
    if (open.length < 2 || state.isBusy || state.steps.length > 0) return;
    for (const { id, verdict } of open)
      for (const other of open) {
        const isVictim = other.ranks.some((rank) => verdict?.victims.includes(rank));
        this.#holds(other.id === id || !isVictim, "3: who is accused does not only wait");
      }
  }
}

const CULPRITS: readonly Culprit[] = [0, 1, 3, 5, 7, "link 2", "link 4"];

function play(seed: number): void {
  const random = seeded(seed);
  const world = new World(random);
  world.lag = randomInt(random, 4);
  world.saveLag = random() < 0.3 ? 1 : 0;
  world.wrong = random() < 0.3 ? 0.3 : 0;
  world.iterate(30);
  for (let k = 3 + randomInt(random, 8); k > 0; k--) {
    const culprit = pick(random, CULPRITS);
    const what = random();
    if (world.faults.has(culprit)) world.fix(culprit);
    else if (what < 0.06) world.restart();
    else if (what < 0.12) world.kill();
    else if (what < 0.2) for (const one of world.faults.keys()) world.fix(one);
    else world.fault(culprit, 150 + randomInt(random, 1500));
    world.iterate(1 + randomInt(random, random() < 0.3 ? 5 : 30));
  }
  for (const one of world.faults.keys()) world.fix(one);
  world.iterate(30);
  world.settle();
  world.iterate(40);
  world.settle();
  // Slow now and then: over after four times the usual gap (rule 6).
  for (let k = 0; k < 4 && world.accused.length > 0; k++) world.iterate(60);
  world.settle();
  expect(world.accused, world.story).toEqual([]);
  // Whatever was before: two that are slow one after the other are both named, and each ends by itself.
  world.wrong = 0;
  const [first, second] = [randomInt(random, 4), 4 + randomInt(random, 4)];
  world.fault(first, 400);
  world.iterate(20);
  expect(world.accused, world.story).toEqual([first]);
  world.fault(second, 1200);
  world.iterate(25);
  expect(new Set(world.accused), world.story).toEqual(new Set([first, second]));
  world.fix(first);
  world.iterate(8 + world.lag + world.saveLag);
  expect(world.accused, world.story).toEqual([second]);
  world.fix(second);
  world.iterate(12);
  world.settle();
  expect(world.accused, world.story).toEqual([]);
}

const SEQUENCES = Number(process.env["LIFE_SEQUENCES"] ?? runs(40, 300));
const FIRST = Number(process.env["LIFE_SEED"] ?? 1);

describe("the life of incidents", () => {
  it(
    `keeps its rules in ${SEQUENCES} random sequences`,
    () => {
      const failed = new Map<number, string>();
      for (let seed = FIRST; seed < FIRST + SEQUENCES; seed++)
        try {
          play(seed);
        } catch (error) {
          failed.set(seed, String(error));
        }
      const seeds = [...failed.keys()].join(" ");
      expect([...failed].slice(0, 3), `${failed.size} sequences break a rule: ${seeds}`).toEqual(
        [],
      );
    },
    Math.max(600_000, 1000 * SEQUENCES),
  );

  const healthy = (): World => {
    const world = new World(seeded(7));
    world.lag = 2;
    world.iterate(40);
    return world;
  };

  it("keeps rank 3 accused when rank 6 breaks 20 s later, and names both", () => {
    const world = healthy();
    world.fault(3, 1000);
    world.iterate(10);
    world.fault(6, 2000);
    world.iterate(15);
    expect(world.accused).toEqual([6, 3]);
    expect(world.open.map(({ state }) => state)).toEqual(["confirmed", "confirmed"]);
    expect(world.open[0]!.verdict!.victims).toEqual([0, 1, 2, 4, 5, 7]);
    expect(world.open[1]!.verdict!.victims).toEqual([0, 1, 2, 4, 5, 7]);
    const [id] = world.open.map((one) => one.id);
    world.fix(3);
    world.iterate(8);
    expect(world.accused).toEqual([6]);
    world.fix(6);
    world.iterate(10);
    expect(world.open).toEqual([]);
    expect(world.saved.get(id!)!.summary).toMatch(
      /^rank 6 was slow \(gpu-slow\) from [\d:]{8} to [\d:]{8} UTC: fixed; iterations take (1,0|99)\d+ ms again$/,
    );
  });

  it("names a link that adds less than the GPU that was slow already", () => {
    const world = healthy();
    world.fault(3, 1000);
    world.iterate(15);
    world.fault("link 4", 500);
    world.iterate(15);
    expect(world.accused).toEqual(["link 4", 3]);
  });

  it("opens another incident for another link soon after one was fixed, and a relapse for the same", () => {
    const world = healthy();
    world.fault("link 2", 800);
    world.iterate(15);
    world.fix("link 2");
    world.iterate(10);
    expect(world.open).toEqual([]);
    world.fault("link 4", 800);
    world.iterate(15);
    expect(world.open).toMatchObject([{ state: "confirmed", relapses: 0 }]);
    expect(world.accused).toEqual(["link 4"]);
    world.fix("link 4");
    world.iterate(10);
    world.fault("link 4", 800);
    world.iterate(15);
    expect(world.open).toMatchObject([{ state: "relapsed", relapses: 1 }]);
    expect(world.saved.size).toBe(2);
  });

  it.each([0, 1, 2, 3, 4, 6].flatMap((gap) => [0, 2, 4].map((lag) => [gap, lag] as const)))(
    "accuses the link, and no longer the rank that was slow until %i iterations before (searches take %i)",
    (gap, lag) => {
      const world = healthy();
      world.lag = lag;
      world.fault(5, 1000);
      world.iterate(5);
      world.fix(5);
      world.iterate(gap);
      world.fault("link 2", 1500);
      world.iterate(25);
      expect(world.accused).toEqual(["link 2"]);
    },
  );

  it("withdraws whom it accused, and says who it was, when later evidence of the same iterations says so", () => {
    const world = healthy();
    world.blamed = 6;
    world.fault(3, 1000);
    world.iterate(6);
    expect(world.accused).toEqual([6]);
    const [wrong] = world.open;
    world.blamed = null;
    world.iterate(10);
    world.settle();
    expect(world.accused).toEqual([3]);
    const record = world.saved.get(wrong!.id)!;
    expect(record).toMatchObject({ state: "resolved", ending: "withdrawn" });
    expect(record.summary).toContain(`accuses rank 3 (incident ${world.open[0]!.id})`);
  });

  it("keeps an incident open whose culprit is only less slow, and closes it when it is fixed", () => {
    const world = healthy();
    world.fault(3, 1500);
    world.iterate(20);
    const [first] = world.open;
    world.fault(3, 300);
    world.iterate(60);
    world.settle();
    expect(world.open.map(({ id }) => id)).toEqual([first!.id]);
    world.fix(3);
    world.iterate(10);
    world.settle();
    expect(world.saved.get(first!.id)).toMatchObject({ ending: "fixed", relapses: 0 });
  });

  /** Another run, in which link 4 is slow from its start: that is its usual pace. */
  const slowFromItsStart = (world: World): World => {
    world.restart();
    world.iterate(2);
    world.fault("link 4", 900);
    world.iterate(30);
    expect(world.accused).toEqual([]);
    return world;
  };

  it.each([500, 860, 900])(
    "does not say fixed of a link, slower by %i ms, when another is mended that was slow since the run began",
    (ms) => {
      const world = slowFromItsStart(healthy());
      world.fault("link 2", ms);
      world.iterate(15);
      expect(world.accused).toEqual(["link 2"]);
      const [{ id }] = world.open as [Incident];
      world.fix("link 4");
      world.iterate(12);
      world.settle();
      expect(world.saved.get(id)).toMatchObject({ ending: "passed" });
    },
  );

  it("says fixed of a link beside a slower one only when both are", () => {
    const world = slowFromItsStart(healthy());
    world.fault("link 2", 900);
    world.iterate(15);
    const [{ id }] = world.open as [Incident];
    for (const link of ["link 2", "link 4"] as const) world.fix(link);
    world.iterate(12);
    world.settle();
    expect(world.saved.get(id)).toMatchObject({ ending: "fixed" });
  });

  it("does not say fixed of a link when the network is faster than anybody has seen it", () => {
    const world = new World(seeded(7));
    world.fault("link 4", 900);
    world.iterate(40);
    world.fault("link 2", 500);
    world.iterate(15);
    expect(world.accused).toEqual(["link 2"]);
    const [{ id }] = world.open as [Incident];
    world.fix("link 4");
    world.iterate(12);
    world.settle();
    expect(world.saved.get(id)).toMatchObject({ ending: "passed" });
  });

  it("has eight open at most, and opens the ninth when one of them has ended", () => {
    const world = healthy();
    for (let rank = 0; rank < RANKS; rank++) {
      world.fault(rank, 400 * (rank + 1));
      world.iterate(25);
    }
    world.settle();
    expect(world.accused).toHaveLength(8);
    world.fault("link 2", 3000);
    world.iterate(25);
    world.settle();
    expect(world.accused).toHaveLength(8);
    expect(world.accused).not.toContain("link 2");
    world.fix(7);
    world.iterate(100);
    world.settle();
    expect(world.accused).toContain("link 2");
    expect(world.accused).not.toContain(7);
  });
});
