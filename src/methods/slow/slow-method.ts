/** The question "who makes this job slow, and is it the GPU, the CPU or the wire?" asked of recorded operators. */
import { count } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import { hasStopped, LAST_ITERATIONS } from "../../model/has-stopped.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { accountOf } from "./account-of-operators.ts";
import { accuse, type SlowFinding } from "./accuse.ts";
import { type Hypothesis, judge, type Posterior } from "./posterior.ts";
import { ofSamePace } from "./same-pace.ts";
import { withTrueEnds } from "./true-ends.ts";

/** Up to so many ranks it is asked who was slow before a job stopped: who stopped it must be told soon. */
const MOST_RANKS_STOPPED = 256;
/** Of a rank in a job that stopped: a lead of so much of an iteration, this probably, has a fault of its own. */
const PLAIN_LEAD = 0.15;
const PLAINLY = 0.5;

/** Stretches of time cut iterations anywhere: that nobody stands out in them says little. */
const MOST_OF_STRETCHES = 0.6;

export const slowJudge: Method = {
  id: "slow/judge",
  applies: (job) => {
    const { length } = job.rankOperators.ranks;
    return length >= 2 && (length <= MOST_RANKS_STOPPED || !hasStopped(job));
  },
  *run(job, env) {
    const { ranks } = job.rankOperators;
    const all: RankOperators[] = [];
    for (const [k, rank] of ranks.entries()) {
      env.progress("cutting iterations", k, ranks.length);
      const operators = job.rankOperators.fetch(rank);
      if (operators) all.push(operators);
    }
    if (all.length < 2) return;
    const compared = ofSamePace(withTrueEnds(all, job));
    const whole = asked(job, compared, Infinity);
    if (!whole) return;
    const lacks = lacksOf(job, whole.compared.account.ranks, compared.length, all.length);
    const operators = new Map(compared.map((one) => [one.rank, one]));
    // What is over does not show in a comparison that goes up to the end of the record.
    const end = culpritOf(whole) ? Infinity : endOfSlowdown(job);
    const posterior = (end < Infinity ? asked(job, compared, end) : null) ?? whole;
    const best = culpritOf(posterior);
    if (!best) {
      if (!hasStopped(job)) yield nobody(whole, operators, lacks);
      return;
    }
    const finding = accuse(best, posterior, { job, operators, lacks }, posterior !== whole);
    const last = whole.compared.account.numbers.at(-1) ?? 0;
    if (!hasStopped(job)) yield finding;
    else yield* beforeStop(finding, posterior.compared.account.unitMs, last);
  },
};

/** Of iterations up to a number; null where nothing can be compared. */
function asked(job: Job, compared: readonly RankOperators[], last: number): Posterior | null {
  const account = accountOf(compared, job.groups, last);
  if (!account) return null;
  const where = account.ranks.map((rank) => {
    const { machine = null, leaf = null } = job.ranks.get(rank) ?? {};
    return { machine, leaf };
  });
  const size = Math.max(job.worldSize, job.rankOperators.ranks.length);
  return judge(account, where, size - compared.length);
}

/** Somebody, more probably than nobody. */
function culpritOf({ hypotheses: [best], healthy }: Posterior): Hypothesis | null {
  const isSomebody = best && best.kind !== "all" && best.kind !== "unseen";
  return isSomebody && best.probability > healthy ? best : null;
}

/** The last iteration of the latest slowdown that iteration times show to be over; Infinity where there is none. */
function endOfSlowdown({ iterations }: Job): number {
  let last = -Infinity;
  for (const { series, episodes } of iterations)
    if (series.isRelative !== true && series.areTimes !== true)
      for (const { type, isOpen, to } of episodes)
        if (type === "degradation" && !isOpen && to !== null) last = Math.max(last, to);
  return last > -Infinity ? last : Infinity;
}

/** That nobody keeps the others waiting was looked for: only then is a job that looks healthy known to be. */
function nobody(
  { compared, healthy, hypotheses }: Posterior,
  operators: ReadonlyMap<Rank, RankOperators>,
  lacks: readonly string[],
): NewFinding {
  const { account } = compared;
  const alike = hypotheses.find(({ kind }) => kind === "all")?.probability ?? 0;
  const { file } = operators.values().next().value!;
  return {
    says: `no rank keeps the others waiting: over ${count(account.blocks, account.areIterations ? "iteration" : "equal part")} all ${count(account.ranks.length, "rank")} spend about the same time in communication`,
    weight: 0.2,
    at: [{ file }],
    data: {
      fact: "even-ranks",
      probability: Math.min(account.areIterations ? 1 : MOST_OF_STRETCHES, healthy + alike),
      evenRanks: account.ranks.length,
      comparedIterations: account.blocks,
    },
    accuses: [],
    clears: [],
    lacks,
  };
}

/**
 * Who stopped the job is another question; but who was slow until then has a fault of its own, and does not only wait. Who
 * was slow earlier is as fast as the others again: there is nothing to repair.
 */
function* beforeStop(
  { says, weight, at, data, accuses, lacks }: SlowFinding,
  unitMs: number,
  last: number,
): Iterable<NewFinding> {
  const ranks = [...new Set(accuses.flatMap((one) => (one.type === "rank" ? one.ranks : [])))];
  if (ranks.length === 0 || data.growthMs < PLAIN_LEAD * unitMs || weight < PLAINLY) return;
  if (last - (data.until ?? last) > LAST_ITERATIONS) return;
  const fact = { fact: "slow-before-stop", ranks, growthMs: data.growthMs } as const;
  const text = `slow before the job stopped: ${says}`;
  yield { says: text, weight, at, data: fact, accuses: [], clears: [], lacks: lacks ?? [] };
}

/** Who was not compared, and why: `cut`: ranks with iterations; `alike`: that go through the same ones. */
function lacksOf(
  { worldSize, rankOperators }: Job,
  compared: readonly Rank[],
  alike: number,
  cut: number,
): string[] {
  const left = rankOperators.ranks.length;
  const all = Math.max(worldSize, left);
  const words = (ranks: number): string => `${count(ranks, "rank")} of ${all}`;
  const lacks: string[] = [];
  if (left > cut)
    lacks.push(`the operators of ${words(left - cut)} show no iterations or carry no durations`);
  const why = "the others, and were not compared with them";
  if (alike < cut)
    lacks.push(`${words(cut - alike)} do not go through the same iterations as ${why}`);
  if (compared.length < alike)
    lacks.push(`${words(alike - compared.length)} share too few timed iterations with ${why}`);
  return lacks;
}
