/** The question "which rank, or which part of the network, makes the job slow?" asked of operators. */
import { rankWords } from "../../base/text.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { COMPLETED } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { accountsOf, type Account } from "./accounts.ts";
import { ownTimeSuspects, type OwnTimeSuspect } from "./own-time.ts";
import { sideOf } from "./side.ts";
import { slowIterations, type SlowIterations } from "./slow-iterations.ts";
import { locate, type Located } from "./slow-ranks.ts";

/** Periods take some milliseconds a rank; beyond this many only the first are looked at, and it is said. */
const MOST_RANKS = 4096;

export const slowRank: Method = {
  id: "localize/slow-rank",
  applies: (job) => job.rankOperators.ranks.length >= 2 && !standsStill(job),
  *run(job, env) {
    const { ranks } = job.rankOperators;
    const cut: RankOperators[] = [];
    for (const [k, rank] of ranks.slice(0, MOST_RANKS).entries()) {
      env.progress("cutting iterations", k, ranks.length);
      const operators = job.rankOperators.fetch(rank);
      if (operators) cut.push(operators);
    }
    const accounts = accountsOf(cut, job.groups);
    if (accounts.size < 2) return;
    const own = ownTimeSuspects(accounts);
    const slow = slowIterations(job.iterations, own, accounts);
    const located = slow && locate(cut, accounts, job.groups, slow);
    const seen = accounts.size / Math.max(ranks.length, job.worldSize);
    const witness = { job, cut, accounts, seen };
    if (located && located.ranks.length > 0) yield* fromSearch(located, slow, own, witness);
    else if (own.some(({ kind }) => kind !== "always")) yield* fromOwnTimes(own, witness);
    else if (located?.network) yield fromNetwork(located, slow!, located.network, witness);
    else yield* fromOwnTimes(own, witness);
  },
};

interface Witness {
  readonly job: Job;
  readonly cut: readonly RankOperators[];
  readonly accounts: ReadonlyMap<Rank, Account>;
  /** Share of the ranks that left operators with durations. */
  readonly seen: number;
}

/** Dumps of a hung job end in operators that nobody completed: another question. */
function standsStill({ dumps }: Job): boolean {
  let pending = 0;
  for (const { dump } of dumps.values()) {
    const { state, count } = dump.ops;
    if (count > 0 && state[count - 1] !== COMPLETED) pending++;
  }
  return pending > dumps.size / 2;
}

function* fromSearch(
  located: Located,
  slow: SlowIterations,
  own: readonly OwnTimeSuspect[],
  witness: Witness,
): Iterable<NewFinding> {
  const slowNumbers = (account: Account): number[] =>
    [...account.iteration.keys()].filter((i) => slow.isSlow(account.iteration[i]!));
  const blamed = located.ranks.map(({ rank }) => rank);
  for (const { rank, votes, searched, growthMs } of located.ranks) {
    const account = witness.accounts.get(rank)!;
    const suspect = own.find((other) => other.rank === rank);
    const base = { rank, kind: "slower" as const, iteration: slow.from, until: slow.until };
    const times = { beforeMs: 0, afterMs: growthMs, sigmas: 0, slow: slowNumbers(account) };
    const certainty = (suspect ? 0.97 : 0.9) * (0.7 + 0.3 * located.agreement);
    const says = `the waiting leads to rank ${rank}: from ${votes} of ${searched} ranks, and its own time is ${growthMs.toFixed(1)} ms longer in slow iterations`;
    yield findingOf(suspect ?? { ...base, ...times }, says, certainty, blamed, witness);
  }
}

function* fromOwnTimes(own: readonly OwnTimeSuspect[], witness: Witness): Iterable<NewFinding> {
  const blamed = own.map(({ rank }) => rank);
  for (const suspect of own) {
    const { rank, kind, iteration, until, beforeMs, afterMs, sigmas } = suspect;
    const grew = `${beforeMs.toFixed(1)} → ${afterMs.toFixed(1)} ms outside communication`;
    const says = {
      slower: `rank ${rank}'s own time grew in iteration ${iteration} (${grew})${until === null ? "" : `, until ${until}`}; the others' did not`,
      always: `rank ${rank} spends ${afterMs.toFixed(1)} ms of an iteration outside communication, its peers ${beforeMs.toFixed(1)} ms, since the start`,
      spikes: `rank ${rank}'s own time jumps in ${suspect.slow.length} iterations between ${iteration} and ${until} (${grew}); the others' does not`,
    }[kind];
    const certainty =
      Math.min(0.97, 1 - 0.5 * Math.exp(-sigmas / 6)) * (kind === "slower" ? 1 : 0.9);
    yield findingOf(suspect, says, certainty, blamed, witness);
  }
}

function findingOf(
  suspect: OwnTimeSuspect,
  says: string,
  certainty: number,
  blamed: readonly Rank[],
  { cut, accounts, seen }: Witness,
): NewFinding {
  const { rank, iteration, until } = suspect;
  const operators = cut.find((other) => other.rank === rank)!;
  const side = sideOf(suspect, accounts.get(rank)!, operators, [...accounts.values()]);
  const [issueBefore, issueAfter] = side.issueMs;
  const how =
    side.cause === "gpu-slow"
      ? "its CPU issues as fast as before, so it is the GPU"
      : `its CPU takes ${issueAfter.toFixed(0)} ms to issue an iteration's operators instead of ${issueBefore.toFixed(0)} ms`;
  const weight = certainty * side.certainty * (0.6 + 0.4 * seen);
  const { cause } = side;
  const facts = { kind: "fail-slow", type: "rank", ranks: [rank], link: null, cause } as const;
  return {
    says,
    weight,
    at: [{ file: operators.file }],
    data: {
      ...times(operators, iteration, until),
      growthMs: round(suspect.afterMs - suspect.beforeMs),
      issueMs: side.issueMs.map(round),
    },
    accuses: [{ ...facts, weight, why: `${says}; ${how}` }],
    clears: [...accounts.keys()].filter((other) => !blamed.includes(other)),
  };
}

function fromNetwork(
  { agreement, growthMs, totalMs }: Located,
  slow: SlowIterations,
  ranks: readonly Rank[],
  { cut, seen }: Witness,
): NewFinding {
  const says = `communication itself is slow: in the groups of ${rankWords(ranks)} even the last to come stays longer, and iterations take ${growthMs.toFixed(1)} ms more than ${totalMs.toFixed(1)} ms`;
  const weight = 0.85 * (0.7 + 0.3 * agreement) * (0.6 + 0.4 * seen) * (ranks.length > 2 ? 0.6 : 1);
  const isLink = ranks.length === 2;
  const accusation: Accusation = {
    kind: "fail-slow",
    type: isLink ? "link" : "nic",
    ranks,
    link: isLink ? [`rank:${ranks[0]}`, `rank:${ranks[1]}`] : null,
    cause: "network-slow",
    weight,
    why: says,
  };
  const operators = cut.find(({ rank }) => ranks.includes(rank)) ?? cut[0]!;
  return {
    says,
    weight,
    at: [{ file: operators.file }],
    data: { ...times(operators, slow.from, slow.until), growthMs: round(growthMs) },
    accuses: [accusation],
    clears: [],
  };
}

/** When: for the verdict. Slow from the start means since the first iteration. */
function times(
  { iteration, startMs, durationMs }: RankOperators,
  from: number | null,
  until: number | null,
): Record<string, unknown> {
  const at = (index: number, plus: number): string | null => {
    const ms = (startMs[index] ?? NaN) + plus;
    return Number.isFinite(ms) ? new Date(ms).toISOString() : null;
  };
  const last = until === null ? -1 : iteration.indexOf(until);
  return {
    slowDown: true,
    iteration: from ?? 1,
    until,
    from: at(from === null ? 0 : iteration.indexOf(from), 0),
    to: last < 0 ? null : at(last, durationMs[last]!),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(5));
}
