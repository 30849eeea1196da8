/** A running job's slow-down on one screen: what agents reported → operators that the search fetches → verdict. */
import { errorText } from "../base/errors.ts";
import type { LiveJob } from "../ingest/live-job.ts";
import { validationReport } from "../ingest/validation-report.ts";
import { intermittentWords } from "../base/text.ts";
import { ownRise } from "../methods/localize/live-time-breakdown.ts";
import { liveLocalizer } from "../methods/localize/live.ts";
import { fromWire } from "../methods/localize/slow-findings.ts";
import { lookOnWire } from "../methods/localize/slow-on-wire.ts";
import { typicalMs, type SlowIterations } from "../methods/localize/slow-iterations.ts";
import { RemoteSource, type Want } from "../methods/localize/progressive/remote-source.ts";
import { withIterations } from "../methods/methods.ts";
import { validationTests } from "../methods/validation/validation-method.ts";
import type { RankIteration } from "../methods/localize/progressive/source.ts";
import { factOf } from "../model/facts.ts";
import type { Accusation, Finding, NewFinding } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Env, Group, Job } from "../model/job.ts";
import type { Mitigation } from "../model/mitigation.ts";
import type { LivePoints } from "../model/live-points.ts";
import type { IncidentPicture } from "../model/picture.ts";
import type { RankOperators } from "../model/rank-operators.ts";
import type { IterationSeries } from "../model/series.ts";
import type { ValidationReport } from "../model/validation.ts";
import type { WireTimes } from "../model/wire-times.ts";
import type { Verdict } from "../model/verdict.ts";
import { pictureOfSlowDown } from "./picture.ts";
import { ask, withMitigation } from "./diagnose.ts";
import { stillSlow, type Stretch } from "./still-slow.ts";
import { fuse } from "../verdict/fuse.ts";

export interface SlowDownFacts {
  readonly live: LiveJob;
  /** Ranks whose agents can be asked. */
  readonly reachable: readonly Rank[];
  /** Of the iterations that are to be compared: some before, some since. */
  readonly points: LivePoints;
  /** The first slow iteration, as the tracker saw it. */
  readonly slowFrom: number;
  /** Milliseconds an iteration. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** Where iterations are slow now and then: which, and of how many; null where all since the first one are. */
  readonly intermittent: { readonly slow: readonly number[]; readonly of: number } | null;
  /** Somebody is slow in all of these iterations, the ones before as well. */
  readonly isBeside?: boolean;
  /** What an iteration takes where nobody is slow; `beforeMs` where that is not said. */
  readonly healthyMs?: number;
  /** Ranks that are accused already: beside somebody else they are not accused again. */
  readonly accused?: ReadonlySet<Rank>;
  /** The whole job's iterations. */
  readonly series: IterationSeries;
  /** Machine → incidents it had of late. */
  readonly incidents?: ReadonlyMap<string, number>;
}

/** What one rank runs, as its agent tells: groups by index in the rank's own list. */
export interface FetchedProgram {
  readonly op: Uint8Array;
  readonly group: Int32Array;
  readonly peer: Int32Array;
}

/** Who gets operators from agents. */
export interface OperatorFetcher {
  /** All of one round at once, in their order; null where the agent does not answer. */
  fetch(wants: readonly Want[]): Promise<readonly (FetchedProgram | Float64Array | null)[]>;
  /** One rank's operators in the iterations of the points, an entry for each of those, empty where it has none. */
  operators(rank: Rank): Promise<RankOperators | null>;
  /** How long sends were on the wire, of all agents that know. */
  wireTimes(iterations: Float64Array): Promise<WireTimes>;
}

export interface LiveDiagnosis {
  readonly verdict: Verdict;
  readonly rounds: number;
  /** Records that the search read × 40 bytes, and what all ranks' records of the same iterations take. */
  readonly readBytes: number;
  readonly totalBytes: number;
  /** Of an intermittent slowdown: the slow iterations that speak for the culprit. */
  readonly intermittent: SlowDownFacts["intermittent"];
  /** Who has to test their GPUs and links for more; null where the verdict names one device, or tests would not tell. */
  readonly tests: {
    /** The suspected group first, then peers to compare it with; no rank is in two. */
    readonly groups: readonly (readonly Rank[])[];
    /**
     * Members of the suspected group on each machine, where that is the same everywhere, next to each other; else 1. In the
     * group's order most neighbours test what is inside a machine, and only two NICs of each.
     */
    readonly stride: number;
    /** Iterations after each of which they have to: what is slow now and then is rarely slow when it is tested. */
    readonly rounds: number;
    /** `files`: what the ranks wrote. */
    verdictWith(
      this: void,
      files: readonly { readonly name: string; readonly bytes: Uint8Array }[],
    ): Promise<{ readonly verdict: Verdict; readonly reports: readonly ValidationReport[] }>;
  } | null;
  /** Comes after the verdict, which does not wait for it; never rejects. */
  readonly picture: Promise<IncidentPicture>;
}

/** A search of 64 hops would take as many; more is a circle. */
const MOST_ROUNDS = 200;
/** Ranks whose program tells which groups carry transfers. */
const SAMPLED_PROGRAMS = 32;
/** Operators in the compared iterations of all ranks, up to which all are fetched: some 80 MB. */
const MOST_WHOLE = 1_000_000;
/** Ranks up to which a plan to live with it is made at once: for more it takes seconds (faultline plan makes it). */
const MOST_PLANNED = 1024;
/** Ranks whose operators are fetched at the same time. */
const AT_ONCE = 32;

export async function diagnoseSlowDown(
  facts: SlowDownFacts,
  fetcher: OperatorFetcher,
  env: Env,
): Promise<LiveDiagnosis> {
  const { live, reachable, points, series } = facts;
  const source = new RemoteSource(reachable, live.job.worldSize);
  const fetched = new Fetched(source, live, fetcher);
  const step = Math.max(1, Math.ceil(reachable.length / SAMPLED_PROGRAMS));
  source.wantPrograms(reachable.filter((_, k) => k % step === 0));
  await fetched.round();
  const groups = withCarriers(live.job.groups, fetched.carriers);
  const watched = new Set(reachable);
  const incidents = facts.incidents?.size ? { incidents: facts.incidents } : {};
  const job = withIterations({ ...live.job, groups, watched, series: [series], ...incidents });
  const all = fetched.meanOperators * reachable.length * points.iterations.length;
  // A job that is small enough is read whole, and answered by the very methods that answer for folders of files.
  // Those find the slow iterations by themselves; here it is known which they are, and they may be few and far between.
  const isWhole = facts.intermittent === null && all > 0 && all <= MOST_WHOLE;
  const whole = isWhole ? await withOperators(job, reachable, fetcher) : null;
  const answered = await ask(whole ?? job, env);
  const accused = facts.accused ?? new Set();
  let search: Searched = { findings: [], rounds: 1, didNotRun: [] };
  let others = answered.findings;
  let weighed = isWhole ? weigh(facts, job, answered, search) : null;
  // Whoever is known is slow in all of these iterations; that says nothing of who came to it, or hides behind it.
  if (!weighed || (accused.size > 0 && weighed.verdict.suspects.every(isAmong(accused)))) {
    const more = await searched(facts, job, source, fetched, env);
    const beside = isWhole ? [] : answered.findings;
    const again = weigh(facts, job, { ...answered, findings: beside }, more);
    if (!weighed || !again.verdict.suspects.every(isAmong(accused)))
      [weighed, search, others] = [again, more, beside];
  }
  const onWire = mayBeNetwork(weighed.verdict)
    ? await ofWire(facts, job, weighed.verdict, fetcher)
    : null;
  if (onWire?.finding || onWire?.isFine(weighed.verdict.suspects[0]!.ranks)) {
    const { finding } = onWire;
    // What is found is the part of all that is said of the network that can be seen by itself. Where what went over the suspected
    // link was through as ever, whoever waits for a ring only looked like it, and what the same search believed less is no
    // better: the next slow iteration may tell.
    const stays = ({ accuses }: NewFinding): boolean =>
      accuses.length === 0 ||
      (finding !== null && accuses.some(({ cause }) => cause !== "network-slow"));
    const rest = search.findings.filter(stays);
    search = { ...search, findings: finding ? [finding, ...rest] : rest };
    weighed = weigh(facts, job, { ...answered, findings: others.filter(stays) }, search);
  }
  const { verdict, findings, refined } = weighed;
  const isNowAndThen = facts.intermittent !== null || slowOfCulprit(search.findings).length > 0;
  // What began a short while ago may be the first stretch of several.
  const mayEnd = isNowAndThen || (series.iteration.at(-1) ?? 0) - facts.slowFrom < ROUNDS;
  const totalBytes = all * RECORD_BYTES;
  const picture = pictureOfSlowDown({
    job,
    verdict,
    points,
    slow: slowOf(facts),
    reachable,
    async operatorsOf(rank) {
      if (whole) return whole.rankOperators.fetch(rank);
      const operators = fetched.known(rank) ?? (await fetcher.operators(rank));
      return operators && operators.ops.count > 0 ? held(operators) : null;
    },
  });
  return {
    verdict: planned(job, verdict, besideOf(facts, verdict)),
    rounds: search.rounds,
    readBytes: isWhole ? totalBytes : source.bytes + fetched.wholeOperators * RECORD_BYTES,
    totalBytes,
    picture,
    intermittent: refined.intermittent,
    tests: onWire?.isSure
      ? null
      : testsOf(job, verdict, findings, { isNowAndThen, mayEnd }, besideOf(facts, verdict)),
  };
}

function mayBeNetwork({ suspects: [first] }: Verdict): boolean {
  return !first || first.cause === "network-slow";
}

/** Iterations of each kind of which agents are asked what was on the wire, the newest. */
const MOST_ON_WIRE = 12;

/** The link or NIC on which sends stay too long; null where none stands out, or no agent knows. */
async function ofWire(
  facts: SlowDownFacts,
  job: Job,
  { suspects: [first] }: Verdict,
  fetcher: OperatorFetcher,
): Promise<{
  readonly finding: NewFinding | null;
  readonly isSure: boolean;
  isFine(this: void, ranks: readonly Rank[]): boolean;
} | null> {
  const { points, series } = facts;
  const slow = slowOf(facts);
  const of = (wanted: boolean): number[] =>
    [...points.iterations].filter((number) => slow.isSlow(number) === wanted).slice(-MOST_ON_WIRE);
  const late = of(true);
  const last = late.at(-1) ?? 0;
  const lately = Array.from({ length: MOST_ON_WIRE }, (_, i) => last - i).filter((n) => n >= 0);
  const numbers = new Set([...of(false), ...late, ...late.map((number) => number - 1), ...lately]);
  const iterations = Float64Array.from([...numbers].sort((a, b) => a - b));
  const times = await fetcher.wireTimes(iterations);
  const { found, isFine } = lookOnWire(times, points, slow);
  const isCleared = (ranks: readonly Rank[]): boolean => ranks.length <= 2 && isFine(ranks);
  if (!found) return first ? { finding: null, isSure: false, isFine: isCleared } : null;
  // What else tells which NIC at its ends it is knows more.
  const [known = -1, ...more] = first?.ranks ?? [];
  if (found.isAmbiguous && more.length === 0 && found.ranks.includes(known)) return null;
  const at = series.iteration.indexOf(found.slow[0]!);
  const fromMs = at < 0 ? NaN : series.endMs[at]! - series.durationMs[at]!;
  const finding = fromWire(found, slow, fromMs, series.file, job);
  return { finding, isSure: !found.isAmbiguous, isFine: isCleared };
}

function planned(job: Job, verdict: Verdict, beside: Mitigation["beside"]): Verdict {
  if (job.worldSize > MOST_PLANNED) return verdict;
  const { mitigation, ...rest } = withMitigation(job, verdict);
  if (!mitigation) return rest;
  return { ...rest, mitigation: beside ? { ...mitigation, beside } : mitigation };
}

/** Who else is slow, and the pace without any of them. */
function besideOf(
  { isBeside, healthyMs, accused = new Set() }: SlowDownFacts,
  { suspects }: Verdict,
): Mitigation["beside"] {
  const own = new Set(suspects.flatMap((one) => one.ranks));
  const ranks = [...accused].filter((rank) => !own.has(rank)).sort((a, b) => a - b);
  const isKnown = isBeside === true && healthyMs !== undefined && ranks.length > 0;
  return isKnown ? { ranks, healthyMs } : undefined;
}

/** Of what the job lost, the least that somebody beside a known culprit became slower by itself: its neighbours do, too. */
const ITS_OWN = 0.5;

/**
 * Without what does not explain why the job became slow: whoever was slow before as well and, where somebody is known
 * already, whoever did not become slower by itself.
 */
function explaining(facts: SlowDownFacts, findings: readonly Finding[]): readonly Finding[] {
  const { points, slowFrom, beforeMs, afterMs, accused = new Set() } = facts;
  const isComparable = points.iterations[0]! < slowFrom;
  if (!isComparable && accused.size === 0) return findings;
  const riseMs = accused.size > 0 ? ownRise(points, slowOf(facts)) : null;
  const leastMs = ITS_OWN * (afterMs - beforeMs);
  const isKnown = isAmong(accused);
  const isPlausible = (one: Accusation): boolean =>
    riseMs === null ||
    one.cause === "network-slow" ||
    isKnown(one) ||
    one.ranks.some((rank) => riseMs(rank) >= leastMs);
  return findings.filter(
    (one) => factOf(one, "slow-rank")?.sinceStart !== true && one.accuses.every(isPlausible),
  );
}

interface Searched {
  readonly findings: readonly NewFinding[];
  readonly rounds: number;
  readonly didNotRun: readonly string[];
}

/** What methods and the search say together. */
function weigh(
  facts: SlowDownFacts,
  job: Job,
  answered: Awaited<ReturnType<typeof ask>>,
  search: Searched,
): { verdict: Verdict; findings: readonly Finding[]; refined: SlowDownFacts } {
  const refined = ofCulprit(facts, search.findings);
  const found = [
    { ...slowDownFinding(refined), method: "iterations/live" as const },
    ...answered.findings.filter(({ method }) => method !== "iterations/slow-down"),
    ...search.findings.map((finding) => ({ ...finding, method: "localize/live" as const })),
  ];
  const numbered = found.map((finding, k) => ({ ...finding, id: `f${k + 1}` }));
  const lasting = refined.intermittent ? numbered : stillSlow(numbered, stretchOf(facts));
  const findings = explaining(facts, lasting);
  const didNotRun = [...answered.didNotRun, ...search.didNotRun];
  const isKnown = isAmong(facts.accused ?? new Set());
  const verdict = fuse(job, findings, didNotRun);
  const known = verdict.suspects.filter(isKnown).length;
  if (known === 0 || known === verdict.suspects.length) return { verdict, findings, refined };
  // Ranks that are accused already, and others: the verdict is on those others.
  const others = findings.filter(({ accuses }) => accuses.length === 0 || !accuses.every(isKnown));
  return { verdict: fuse(job, others, didNotRun), findings: others, refined };
}

function stretchOf({ slowFrom, points, series, accused = new Set() }: SlowDownFacts): Stretch {
  const comparedFrom = points.iterations.find((number) => number >= slowFrom) ?? slowFrom;
  return { slowFrom, from: startOf(series, slowFrom), comparedFrom, accused };
}

/** When an iteration began; null where that is not at hand. */
function startOf({ iteration, endMs, durationMs }: IterationSeries, number: number): string | null {
  const at = iteration.indexOf(number);
  const ms = at < 0 ? NaN : endMs[at]! - durationMs[at]!;
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null;
}

function isAmong(
  accused: ReadonlySet<Rank>,
): (one: { readonly ranks: readonly Rank[] }) => boolean {
  return ({ ranks }) => ranks.every((rank) => accused.has(rank));
}

/** Two periods of Holmes' fluctuations (appendix B). They are told of as soon as one names somebody. */
const ROUNDS = 14;
/** Fewer say no more than what is known: which of two is slow two cannot tell. */
const LEAST_TESTED = 3;

/**
 * Where the search ends in a tie: which ranks have to test their GPUs and links, and the verdict with what they report. A
 * tie is a group of which one NIC or link is slow, a link that may be a NIC, or several ranks of one group.
 */
function testsOf(
  job: Job,
  verdict: Verdict,
  findings: readonly Finding[],
  { isNowAndThen, mayEnd }: { readonly isNowAndThen: boolean; readonly mayEnd: boolean },
  beside: Mitigation["beside"],
): LiveDiagnosis["tests"] {
  const { suspects } = verdict;
  const [first] = suspects;
  if (!first || verdict.kind !== "fail-slow") return null;
  const isNetwork = first.cause === "network-slow" && first.ranks.length > 1;
  // Of what is slow now and then only the network is tested.
  if (!isNetwork && (suspects.length < 2 || isNowAndThen)) return null;
  const suspected = [...new Set(suspects.flatMap(({ ranks }) => ranks))];
  const groups = job.groups.filter(
    ({ ranks }) => ranks.length >= LEAST_TESTED && suspected.every((rank) => ranks.includes(rank)),
  );
  const [smallest] = groups.toSorted((a, b) => a.ranks.length - b.ranks.length);
  if (!smallest || smallest.ranks.some((rank) => !job.watched?.has(rank))) return null;
  return {
    groups: [smallest.ranks, ...peersOf(job, smallest)],
    stride: strideOf(job, smallest),
    rounds: isNetwork && mayEnd ? ROUNDS : 1,
    async verdictWith(files) {
      const validations = files.flatMap(({ name, bytes }) => {
        const sink = validationReport.open(name);
        sink.push(bytes);
        return sink.end().validations ?? [];
      });
      const tested = await ask({ ...job, validations, series: [], iterations: [] }, NO_ENV, [
        validationTests,
      ]);
      const all = [
        ...findings,
        ...tested.findings.map((one, k) => ({ ...one, id: `f${findings.length + k + 1}` })),
      ];
      const tellsMore = fuse(job, all, tested.didNotRun);
      return { verdict: planned(job, tellsMore, beside), reports: validations };
    },
  };
}

function strideOf(job: Job, { ranks }: Group): number {
  const machines = ranks.map((rank) => job.ranks.get(rank)?.machine ?? null);
  const stride = machines.findIndex((machine) => machine !== machines[0]);
  if (stride < 2 || ranks.length % stride !== 0 || machines.includes(null)) return 1;
  const isRegular = machines.every((machine, i) => machine === machines[i - (i % stride)]);
  const isInOrder = ranks.every((rank, i) => i === 0 || rank > ranks[i - 1]!);
  const isApart = new Set(machines).size === ranks.length / stride;
  return isRegular && isInOrder && isApart ? stride : 1;
}

/** Links between machines that tell together what is usual; a group of four ranks on two machines has two. */
const LEAST_LINKS = 8;
const MOST_PEERS = 8;

/** Groups that do as much, without a rank in common with it or with each other: what their links take is the norm. */
function peersOf(job: Job, { ranks, role }: Group): Rank[][] {
  const machineOf = (rank: Rank): string | null => job.ranks.get(rank)?.machine ?? null;
  const linksOf = (members: readonly Rank[]): number =>
    members.filter((rank, i) => machineOf(rank) !== machineOf(members[(i + 1) % members.length]!))
      .length;
  const taken = new Set(ranks);
  const peers: Rank[][] = [];
  let links = linksOf(ranks);
  for (const group of job.groups) {
    if (links >= LEAST_LINKS || peers.length >= MOST_PEERS) break;
    if (group.role !== role || group.ranks.length !== ranks.length) continue;
    if (group.ranks.some((rank) => taken.has(rank) || !job.watched?.has(rank))) continue;
    for (const rank of group.ranks) taken.add(rank);
    peers.push([...group.ranks]);
    links += linksOf(group.ranks);
  }
  return peers;
}

const NO_ENV: Env = { signal: new AbortController().signal, progress: () => undefined };

/** Of iterations that are slow now and then, those that speak for the culprit; the others are hiccups. */
function ofCulprit(facts: SlowDownFacts, findings: readonly NewFinding[]): SlowDownFacts {
  const { intermittent, points, series } = facts;
  const slow = slowOfCulprit(findings);
  if (!intermittent || slow.length === 0) return facts;
  const looked = series.iteration.at(-1)! - points.iterations[0]! + 1;
  return {
    ...facts,
    slowFrom: slow[0]!,
    afterMs: typicalMs(series, slow) || facts.afterMs,
    intermittent: { slow, of: Math.min(looked, intermittent.of) },
  };
}

/** Empty where all since the first one speak for it. */
function slowOfCulprit([first]: readonly NewFinding[]): readonly number[] {
  return (first && factOf(first, "slow-rank", "slow-device")?.slowIterations) ?? [];
}

function slowOf({ slowFrom, intermittent }: SlowDownFacts): SlowIterations {
  const slow = intermittent && new Set(intermittent.slow);
  return {
    isSlow: (iteration) => (slow ? slow.has(iteration) : iteration >= slowFrom),
    from: slowFrom,
    until: null,
    isLasting: slow === null,
  };
}

/** The service has seen it come, a few iterations after it began; a look at the whole series would not yet. */
function slowDownFinding({
  slowFrom,
  beforeMs,
  afterMs,
  intermittent,
  series,
}: SlowDownFacts): NewFinding {
  const ratio = afterMs / beforeMs;
  const ms = `(${beforeMs.toFixed(0)} ms → ${afterMs.toFixed(0)} ms)`;
  return {
    says: intermittent
      ? `the job is ${intermittentWords(intermittent.slow.length, intermittent.of, ratio)} ${ms}, since iteration ${slowFrom}`
      : `iterations take ${ratio.toFixed(2)} times as long since iteration ${slowFrom} ${ms}`,
    weight: 0.9,
    at: [{ file: series.file }],
    data: {
      fact: "slow-down",
      slowDown: true,
      iteration: slowFrom,
      until: null,
      detectedAt: series.iteration.at(-1) ?? slowFrom,
      beforeMs,
      afterMs,
      ratio,
      ...(intermittent
        ? { intermittent: { slow: intermittent.slow.length, of: intermittent.of } }
        : {}),
      wastedHours: 0,
      from: startOf(series, slowFrom),
      to: null,
      series: series.source,
    },
    accuses: [],
    clears: [],
  };
}

/** What a record takes (methods/localize/progressive/source.ts). */
const RECORD_BYTES = 40;

async function withOperators(
  job: Job,
  reachable: readonly Rank[],
  fetcher: OperatorFetcher,
): Promise<Job> {
  const known = new Map<Rank, RankOperators>();
  for (let from = 0; from < reachable.length; from += AT_ONCE)
    await Promise.all(
      reachable.slice(from, from + AT_ONCE).map(async (rank) => {
        const operators = await fetcher.operators(rank);
        if (operators && operators.ops.count > 0) known.set(rank, held(operators));
      }),
    );
  const ranks = reachable.filter((rank) => known.has(rank));
  return { ...job, rankOperators: { ranks, fetch: (rank) => known.get(rank) ?? null } };
}

/** Only the iterations that the agent has. */
function held(operators: RankOperators): RankOperators {
  const { iteration, from, to, startMs, durationMs } = operators;
  const kept = [...iteration.keys()].filter((i) => to[i]! > from[i]! && durationMs[i]! > 0);
  if (kept.length === iteration.length) return operators;
  const doubles = (column: Float64Array): Float64Array =>
    Float64Array.from(kept, (i) => column[i]!);
  return {
    ...operators,
    iteration: doubles(iteration),
    from: Int32Array.from(kept, (i) => from[i]!),
    to: Int32Array.from(kept, (i) => to[i]!),
    startMs: doubles(startMs),
    durationMs: doubles(durationMs),
  };
}

async function searched(
  facts: SlowDownFacts,
  job: Job,
  source: RemoteSource,
  fetched: Fetched,
  env: Env,
): Promise<Searched> {
  const operatorsOf = (rank: Rank): RankOperators | null => fetched.operatorsOf(rank);
  const { points } = facts;
  const isWanting = (): boolean => fetched.isWanting;
  const attempt = liveLocalizer({
    job,
    points,
    slow: slowOf(facts),
    source,
    operatorsOf,
    isWanting,
  });
  try {
    let findings = attempt();
    let rounds = 1;
    for (; fetched.isWanting && rounds < MOST_ROUNDS; rounds++) {
      env.signal.throwIfAborted();
      await fetched.round();
      findings = attempt();
    }
    return { findings, rounds, didNotRun: [] };
  } catch (error) {
    const why = errorText(error);
    return { findings: [], rounds: 0, didNotRun: [`localize/live did not run: ${why}`] };
  }
}

/** What was fetched so far, between a search that asks at once and agents that answer later. */
class Fetched {
  /** The job's groups that transfers were seen in. */
  readonly carriers = new Set<number>();
  readonly #source: RemoteSource;
  readonly #live: LiveJob;
  readonly #fetcher: OperatorFetcher;
  readonly #whole = new Map<Rank, RankOperators | null>();
  readonly #wanted = new Set<Rank>();
  readonly #lengths: number[] = [];
  #wants: Want[] = [];

  constructor(source: RemoteSource, live: LiveJob, fetcher: OperatorFetcher) {
    this.#source = source;
    this.#live = live;
    this.#fetcher = fetcher;
  }

  operatorsOf(rank: Rank): RankOperators | null {
    const known = this.#whole.get(rank);
    if (known !== undefined) return known;
    this.#wanted.add(rank);
    return null;
  }

  /** What the search has fetched of it. */
  known(rank: Rank): RankOperators | null {
    return this.#whole.get(rank) ?? null;
  }

  /** Operators of an iteration; 0 where nobody answered. */
  get meanOperators(): number {
    return (
      this.#lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, this.#lengths.length)
    );
  }

  get wholeOperators(): number {
    return [...this.#whole.values()].reduce((sum, one) => sum + (one?.ops.count ?? 0), 0);
  }

  /** Whether the last attempt asked for something that is not there. */
  get isWanting(): boolean {
    this.#wants = [...this.#wants, ...this.#source.takeWants()];
    return this.#wants.length > 0 || this.#wanted.size > 0;
  }

  /** Fetches all that was asked for since the last time. */
  async round(): Promise<void> {
    const wants = [...this.#wants, ...this.#source.takeWants()];
    this.#wants = [];
    const ranks = [...this.#wanted];
    this.#wanted.clear();
    const [answers, whole] = await Promise.all([
      this.#fetcher.fetch(wants),
      Promise.all(ranks.map((rank) => this.#fetcher.operators(rank))),
    ]);
    for (const [k, rank] of ranks.entries()) this.#whole.set(rank, whole[k]!);
    for (const [k, want] of wants.entries()) {
      const answer = answers[k] ?? null;
      if (answer === null) this.#source.giveUp(want.rank);
      else if (want.what === "durations") {
        if (answer instanceof Float64Array) this.#source.giveDurations(want.key, answer);
        else this.#source.giveUp(want.rank);
      } else if (answer instanceof Float64Array) this.#source.giveUp(want.rank);
      else this.#source.giveProgram(want.rank, this.#translated(want.rank, answer));
    }
  }

  #translated(rank: Rank, { op, group, peer }: FetchedProgram): RankIteration {
    this.#lengths.push(op.length);
    const ids = this.#live.groupIds.get(rank) ?? new Int32Array(0);
    const own = Int32Array.from(group, (index) => ids[index] ?? -1);
    const { groups } = this.#live.job;
    // An agent that does not know who the other side is says where it sits in the group (wire/messages.ts).
    const peers = peer.map((one, place) =>
      one < -1 ? (groups[own[place]!]?.ranks[-2 - one] ?? -1) : one,
    );
    for (const [place, kind] of op.entries())
      if (kind !== COLLECTIVE) {
        if (own[place]! >= 0) this.carriers.add(own[place]!);
        own[place] = -1;
      }
    return { kind: op, group: own, peer: peers };
  }
}

const COLLECTIVE = 0;

/** Groups in which transfers were seen, and those of the same role. */
function withCarriers(groups: readonly Group[], carriers: ReadonlySet<number>): Group[] {
  const roles = new Set([...carriers].map((id) => groups[id]?.role));
  return groups.map((group) =>
    group.carriesP2p || !roles.has(group.role) ? group : { ...group, carriesP2p: true },
  );
}
