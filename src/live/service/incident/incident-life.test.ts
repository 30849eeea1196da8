/** Random sequences of faults, fixes, restarts, wrong judgements and late verdicts against the rules of docs/incidents.md. */
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/support/cases.ts";
import { pick, type Random, randomInt, seeded } from "../../../base/random.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import { accusesSame, isAbout } from "./incident-lifecycle.ts";
import type { LiveCulprit, LiveJudgement } from "../../../model/live-judgement.ts";
import type { ExplainDecision, JobDecision, JobEvent, SaveDecision } from "../job/job-events.ts";
import { reduceJob } from "../job/job-reducer.ts";
import {
  type JobState,
  newJobState,
  openSlowdowns,
  savedState,
  type SavedJobState,
  wastedGpuMs,
} from "../job/job-state.ts";

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

type Without<E> = E extends JobEvent ? Omit<E, "nowMs"> : never;

const COMPARED = { group: "all ranks", iterations: 20, chanceMs: 2, ranks: [] };

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

function verdictOn(culprit: Culprit | null, confidence: number): Verdict {
  const suspects = culprit === null ? [] : [suspectOf(culprit)];
  const accused = suspects.flatMap(({ ranks }) => ranks);
  const all = Array.from({ length: RANKS }, (_, rank) => rank);
  return testVerdict({
    kind: "fail-slow",
    summary: `${culprit ?? "nobody known"} is slow`,
    confidence,
    suspects,
    victims: all.filter((rank) => !accused.includes(rank)),
  });
}

/** Whom the judge of the test names, and what it has to say of it next. */
interface Named {
  readonly id: number;
  readonly culprit: Culprit;
  readonly fault: Culprit;
  readonly sinceMs: number;
  readonly atIteration: number;
  probability: number;
}

class World {
  state: JobState = newJobState("job", null, null, OPTIONS);
  nowMs = 1.7e12;
  iteration = 0;
  run = 0;
  readonly faults = new Map<Culprit, number>();
  /** By iteration: which faults there were. */
  readonly past: Culprit[][] = [];
  /** Of an explanation, in iterations. */
  lag = 0;
  saveLag = 0;
  /** How often the judge accuses somebody else at first, at random, and whom it accuses for certain. */
  wrong = 0;
  blamed: number | null = null;
  /** Agents without rings: nothing is judged. */
  isBlind = false;
  readonly random: Random;
  readonly log: string[] = [];
  readonly saved = new Map<string, Incident>();
  readonly named = new Map<Culprit, Named>();
  /** What a judge that has just begun takes for healthy; incidents that it knows nothing of. */
  readonly #taken = new Set<Culprit>();
  readonly #orphans = new Set<string>();
  #session = 1;
  #id = 0;
  #explain: { readonly explain: ExplainDecision; due: number } | null = null;
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
    this.#newJudge();
    this.begin();
    this.settle();
    for (const one of this.open) expect(one.run, this.story).toBe(`run${this.run}`);
  }

  /** The service is killed, and another one takes over with what was saved: its judge learns anew. */
  kill(): void {
    this.log.push(`${this.iteration} kill`);
    this.settle();
    const saved = JSON.parse(JSON.stringify(savedState(this.state))) as SavedJobState;
    this.#explain = null;
    this.#newJudge();
    this.state = newJobState("job", null, saved, OPTIONS);
    expect(this.open.map(({ id }) => id)).toEqual(
      [saved.slow, ...saved.besides!].flatMap((one) => one?.id ?? []),
    );
    this.begin();
  }

  #newJudge(): void {
    this.#session++;
    this.named.clear();
    this.#taken.clear();
    for (const one of this.faults.keys()) this.#taken.add(one);
    for (const { id } of this.open) this.#orphans.add(id);
  }

  fault(culprit: Culprit, ms: number): void {
    this.log.push(`${this.iteration} + ${culprit} ${ms}`);
    this.faults.set(culprit, ms);
  }

  fix(culprit: Culprit): void {
    this.log.push(`${this.iteration} - ${culprit}`);
    this.faults.delete(culprit);
    this.#taken.delete(culprit);
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
      const report = {
        ...EVERY_ITERATION,
        run: `run${this.run}`,
        iteration: new Float64Array(RANKS).fill(this.iteration),
        endMs: new Float64Array(RANKS).fill(this.nowMs),
        durationMs: new Float32Array(RANKS).fill(duration),
      };
      this.send({ type: "points", agent: "a", report });
      this.send({ type: "tick" });
      if (!this.isBlind) this.#judge();
      this.#carryOn();
    }
  }

  /** The judge's word after an iteration: it needs two to name somebody, three to see an end or its own mistake. */
  #judge(): void {
    const ended: LiveJudgement["ended"][number][] = [];
    const last = (iterations: number): Culprit[][] => this.past.slice(-iterations);
    for (const [fault, one] of this.named) {
      const isWrong = one.culprit !== fault && this.blamed === null;
      const isOver = !last(3).some((slow) => slow.includes(fault));
      if (!isOver && !(isWrong && this.iteration - one.atIteration >= 3)) continue;
      this.named.delete(fault);
      ended.push({ id: one.id, untilMs: this.nowMs, why: isOver ? "over" : "revised" });
      if (!isOver) this.#name(fault, fault);
    }
    for (const fault of this.faults.keys()) {
      const isSeen = last(2).length === 2 && last(2).every((slow) => slow.includes(fault));
      if (!isSeen || this.#taken.has(fault) || this.named.has(fault)) continue;
      this.#name(fault, this.random() < this.wrong ? this.#another() : (this.blamed ?? fault));
    }
    // It becomes surer, and less sure.
    for (const one of this.named.values()) one.probability = 0.9 + 0.09 * this.random();
    const culprits = [...this.named.values()].map((one) => this.#culpritOf(one));
    const state = culprits.length > 0 ? "slow" : "healthy";
    const judgement = { state, untilMs: this.nowMs, culprits, ended } as const;
    this.send({ type: "judged", run: `run${this.run}`, session: this.#session, judgement });
  }

  #another(): Culprit {
    const free = Array.from({ length: RANKS }, (_, rank) => rank).filter(
      (rank) => !this.faults.has(rank) && !this.accused.includes(rank),
    );
    return pick(this.random, free);
  }

  #name(fault: Culprit, culprit: Culprit): void {
    this.log.push(`${this.iteration} judged ${culprit}${culprit === fault ? "" : ` for ${fault}`}`);
    const from = this.past.findLastIndex((slow) => !slow?.includes(fault)) + 1;
    const sinceMs = this.nowMs - (this.iteration - from + 1) * 1000;
    const atIteration = this.iteration;
    this.named.set(fault, {
      id: ++this.#id,
      culprit,
      fault,
      sinceMs,
      atIteration,
      probability: 0.9,
    });
  }

  #culpritOf({ id, culprit, sinceMs, probability }: Named): LiveCulprit {
    const { ranks, cause } = suspectOf(culprit);
    return {
      id,
      type: typeof culprit === "number" ? "rank" : "wire",
      ranks,
      cause: cause as LiveCulprit["cause"],
      probability,
      causeProbability: 0.9,
      shape: "lasting",
      sinceMs,
      compared: { ...COMPARED, leadMs: [0, 400] },
    };
  }

  /** What is under way ends. */
  settle(): void {
    for (let k = 0; k < 100 && (this.#explain || this.#save); k++) {
      if (this.#explain) this.#explain.due = 0;
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
      } else if (this.#explain && this.#explain.due <= this.iteration) {
        const { explain } = this.#explain;
        const { culprit } = explain;
        this.#explain = null;
        const [first = -1] = culprit?.ranks ?? [];
        const who = culprit && (culprit.type === "rank" ? first : (`link ${first}` as const));
        const verdict = verdictOn(who, culprit?.probability ?? 0.5);
        this.send({ type: "explained", explain, diagnosis: { verdict } });
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
    } else if (decision.do === "explain")
      this.#explain = { explain: decision, due: this.iteration + this.lag };
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

  /** Its culprit was healthy for three iterations in a row, just now or before what was under way; or it never was slow. */
  #checkFixed(incident: Incident): void {
    const culprit = culpritOf(incident)!;
    // Of the run before.
    if (incident.run !== `run${this.run}`) return;
    const last = this.past
      .slice(-8 - this.lag - this.saveLag)
      .map((slow) => slow.includes(culprit));
    const isHealthy = last.some((_, i) => i >= 2 && !last.slice(i - 2, i + 1).includes(true));
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
    const named = new Set([...this.named.values()].map(({ culprit }) => culprit));
    for (const one of open) {
      const culprit = culpritOf(one);
      if (known.has(one.id)) continue;
      this.log.push(`${this.iteration} opened ${one.id} ${culprit}`);
      const isNamed = this.isBlind || culprit === null || named.has(culprit);
      this.#holds(isNamed, "6: nobody is accused whom the judge does not name any longer");
    }
    const lost = wastedGpuMs(state, this.nowMs);
    this.#holds(lost >= this.#lost - 1e-3, `9: the job's costs only grow: ${this.#lost}, ${lost}`);
    this.#lost = lost;
    if (this.isBlind) for (const id of ids) this.#orphans.add(id);
    if (state.isBusy || state.steps.length > 0) return;
    const kept = new Set([...state.culprits.values()].map(({ incident }) => incident));
    for (const id of ids)
      this.#holds(
        kept.has(id) || this.#orphans.has(id) || (state.resting.has(id) && ids.size === 1),
        "4: who is accused is named by the judge",
      );
    for (const { incident } of state.culprits.values())
      this.#holds(incident === null || ids.has(incident), "4: whom the judge names is open");
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
    else if (what < 0.25) world.isBlind = !world.isBlind;
    else world.fault(culprit, 150 + randomInt(random, 1500));
    world.iterate(1 + randomInt(random, random() < 0.3 ? 5 : 30));
  }
  for (const one of world.faults.keys()) world.fix(one);
  world.isBlind = false;
  world.iterate(30);
  world.settle();
  world.iterate(30);
  world.settle();
  expect(world.accused, world.story).toEqual([]);
  // Whatever was before: two that are slow one after the other are both named, and each ends by itself.
  world.wrong = 0;
  const [first, second] = [randomInt(random, 4), 4 + randomInt(random, 4)];
  world.fault(first, 400);
  world.iterate(10);
  expect(world.accused, world.story).toEqual([first]);
  world.fault(second, 1200);
  world.iterate(10);
  expect(new Set(world.accused), world.story).toEqual(new Set([first, second]));
  world.fix(first);
  world.iterate(6 + world.lag + world.saveLag);
  expect(world.accused, world.story).toEqual([second]);
  world.fix(second);
  world.iterate(8);
  // One that came back before rests (rule 6).
  if (world.state.resting.size > 0) world.iterate(70);
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
    const [second, first] = world.open.map((one) => one.id);
    world.fix(3);
    world.iterate(8);
    expect(world.accused).toEqual([6]);
    expect(world.saved.get(first!)!.summary).toMatch(
      /: fixed; others are still slow, and iterations take (3,0|2,9)\d+ ms$/,
    );
    world.fix(6);
    world.iterate(10);
    expect(world.open).toEqual([]);
    expect(world.saved.get(second!)!.summary).toMatch(
      /^rank 6 was slow \(gpu-slow\) from [\d:]{8} to [\d:]{8} UTC: fixed; iterations take (1,0|99)\d+ ms again$/,
    );
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
    "accuses the link, and no longer the rank that was slow until %i iterations before (explanations take %i)",
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

  it("withdraws whom it accused, and says who it was, when the judge takes its word back", () => {
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

  it("tells of nobody whose slowness is over before it is explained", () => {
    const world = healthy();
    world.lag = 8;
    world.fault(3, 1000);
    world.iterate(3);
    world.fix(3);
    world.iterate(20);
    world.settle();
    expect(world.saved.size).toBe(0);
  });

  it("says nothing new of a culprit that the judge is a little surer of", () => {
    const world = healthy();
    world.fault(3, 1000);
    world.iterate(40);
    world.settle();
    expect(world.open[0]!.revision).toBe(2);
  });

  it("after a restart of the service keeps who was slow accused until the pace is back: the new judge cannot see its end", () => {
    const world = healthy();
    world.fault(3, 1000);
    world.iterate(20);
    const [{ id }] = world.open as [Incident];
    world.kill();
    world.iterate(30);
    expect(world.accused).toEqual([3]);
    world.fault("link 4", 500);
    world.iterate(10);
    expect(world.accused).toEqual(["link 4", 3]);
    world.fix("link 4");
    world.iterate(10);
    expect(world.accused).toEqual([3]);
    world.fix(3);
    world.iterate(10);
    expect(world.open).toEqual([]);
    expect(world.saved.get(id)).toMatchObject({ ending: "passed", relapses: 0 });
  });

  it("tells of a slowdown without a suspect where nothing is judged, and names one when something is", () => {
    const world = healthy();
    world.isBlind = true;
    world.iterate(20);
    world.fault(3, 1000);
    world.iterate(20);
    expect(world.accused).toEqual([null]);
    const [{ id }] = world.open as [Incident];
    world.isBlind = false;
    world.iterate(10);
    expect(world.accused).toEqual([3]);
    expect(world.open[0]!.id).toBe(id);
    world.fix(3);
    world.iterate(10);
    expect(world.saved.get(id)).toMatchObject({ ending: "fixed" });
  });

  it("ends by the pace what was accused before nothing was judged any longer", () => {
    const world = healthy();
    world.fault(3, 1000);
    world.iterate(20);
    const [{ id }] = world.open as [Incident];
    world.isBlind = true;
    world.iterate(20);
    expect(world.accused).toEqual([3]);
    world.fix(3);
    world.iterate(10);
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
    world.iterate(20);
    world.settle();
    expect(world.accused).toContain("link 2");
    expect(world.accused).not.toContain(7);
  });
});
