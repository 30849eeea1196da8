/** The two or three findings that decided, who disagrees, and what would change the verdict's mind. */
import { thousandths } from "../base/numbers.ts";
import { factOf } from "../model/facts.ts";
import { cutText, rankWords } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Conflict, DecidingFinding, Reasoning } from "../model/reasoning.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { isLoud, type Posterior, type Rival } from "./posterior.ts";
import { probabilityOf } from "./reliability.ts";
import { machineOf } from "./who.ts";

const MOST_DECIDING = 3;
const MOST_CONFLICTS = 4;
/** What multiplies the odds by less did not decide. */
const LEAST_TIMES = 1.5;
const MOST_TIMES = 1000;
/** A rival below this is no conflict, unless it is loud. */
const LEAST_RIVAL = 0.01;
const MOST_CLAUSE = 200;

export function reasoningOf(
  job: Job,
  findings: readonly Finding[],
  lead: Hypothesis | undefined,
  posterior: Posterior,
): Reasoning {
  // A strongly accused rank that was cleared belongs here too: if the clearing evidence is wrong, it is the suspect.
  const rivals = posterior.rivals
    .filter((rival) => rival.probability >= LEAST_RIVAL || isLoud(rival))
    .sort((a, b) => b.hypothesis.undamped - a.hypothesis.undamped);
  return {
    decidedBy: lead ? deciding(lead) : [],
    conflicts: [...conflictsOf(job, findings, rivals), ...judgedRivals(findings, lead)].slice(
      0,
      MOST_CONFLICTS,
    ),
    wouldChange: lead
      ? [...counterfactuals(job, findings, lead, rivals), ...whatWouldClear(job, findings, lead)]
      : [],
    prior: lead?.prior
      ? {
          share: lead.prior.share === null ? null : thousandths(lead.prior.share),
          says: lead.prior.says,
        }
      : null,
  };
}

function deciding({ support }: Hypothesis): DecidingFinding[] {
  return support
    .map(({ finding, logTimes }) => ({
      finding,
      times: Math.min(MOST_TIMES, Number(Math.exp(logTimes).toPrecision(2))),
    }))
    .filter(({ times }) => times >= LEAST_TIMES)
    .slice(0, MOST_DECIDING);
}

function conflictsOf(job: Job, findings: readonly Finding[], rivals: readonly Rival[]): Conflict[] {
  return rivals.map(({ hypothesis, probability }) => ({
    who: nameOf(job, hypothesis),
    ranks: hypothesis.ranks,
    machine: machineOf(job, hypothesis.ranks),
    cause: hypothesis.cause,
    probability: thousandths(probability),
    findings: hypothesis.evidence,
    why: whyNot(findings, hypothesis),
  }));
}

/** Whom else the judge of slowness weighed, where it names somebody. */
function judgedRivals(findings: readonly Finding[], lead: Hypothesis | undefined): Conflict[] {
  if (!lead?.isJudged) return [];
  const finding = findings.find(({ id }) => id === lead.evidence[0])!;
  const rivals = factOf(finding, "slow-rank", "slow-device")?.judged.rivals ?? [];
  return rivals
    .filter(({ what, ranks }) => ranks.length > 0 || what === "unseen")
    .map(({ what, ranks, probability }) => ({
      who: what === "unseen" ? "a rank that left no record" : rankWords(ranks),
      ranks,
      machine: null,
      cause: what === "wire" || what === "device" ? "network-slow" : "unknown",
      probability: thousandths(probability),
      findings: [finding.id],
      why: "what was compared fits it less well",
    }));
}

function whyNot(findings: readonly Finding[], { ranks, evidence, kind }: Hypothesis): string {
  const clearing = findings.find(
    ({ id, clears, weight }) =>
      weight >= 0.5 &&
      !evidence.includes(id) &&
      ranks.length > 0 &&
      ranks.every((rank) => clears.includes(rank)),
  );
  if (clearing) return `it only waits: ${clauseOf(clearing)}`;
  const even = findings.find((finding) => factOf(finding, "even-iterations"));
  if (kind === "faulty-machine" && even)
    return `the job runs as evenly as before: ${clauseOf(even)}`;
  const idle = findings.find((finding) => factOf(finding, "nothing-pending")?.pending === 0);
  if (idle && kind === "faulty-machine") return "no rank waits for another";
  return "too little evidence supports it";
}

/** Would the verdict stand without its strongest finding, and without what that finding's method clears? */
function counterfactuals(
  job: Job,
  findings: readonly Finding[],
  lead: Hypothesis,
  rivals: readonly Rival[],
): string[] {
  const [first] = lead.support;
  if (!first) return [];
  const left = lead.odds - first.logTimes;
  const strongest = findings.find(({ id }) => id === first.finding);
  if (!strongest) return [];
  const { method } = strongest;
  const without = `If it is not so that ${clauseOf(strongest)}`;
  const freed = (one: Hypothesis): number =>
    one.dampedBy.every((by) => by === method) ? one.undamped : one.odds;
  const [rival] = rivals.map(({ hypothesis }) => hypothesis).sort((a, b) => freed(b) - freed(a));
  if (rival && freed(rival) > left && freed(rival) > 0)
    return [`${without}: ${nameOf(job, rival)} is to blame (${rival.cause}).`];
  if (probabilityOf(left) < 0.5)
    return [`${without}: no other evidence names a root cause with certainty.`];
  return [];
}

/** What a finding says first: reports and tickets have no numbers of findings. */
function clauseOf({ says }: Finding): string {
  return cutText(says.split("; ")[0]!, MOST_CLAUSE);
}

interface Test {
  /** What one could look at, and how it would look if the suspect were innocent. */
  readonly says: (who: string) => string;
  /** Whether it has been looked at: then it is no news. */
  readonly isKnown?: (job: Job, lead: Hypothesis, findings: readonly Finding[]) => boolean;
}

const hasStack: Test["isKnown"] = ({ stacks }, { ranks }) => ranks.some((rank) => stacks.has(rank));

const TESTS: Partial<Record<Cause, Test>> = {
  "cpu-stall": {
    says: (who) =>
      `A Python stack of ${who} inside a collective, like the others', would clear it: it would only be waiting.`,
    isKnown: (job, lead, findings) => lead.kind !== "hang" || hasStack(job, lead, findings),
  },
  dataloader: {
    says: (who) => `A Python stack of ${who} outside its data loader would speak against it.`,
    isKnown: hasStack,
  },
  storage: {
    says: (who) => `Reads and writes of ${who} as fast as elsewhere would clear the storage.`,
  },
  "gpu-slow": {
    says: (who) =>
      `Clocks, power and temperature of the GPU of ${who} like its peers' would speak against it; so would a matrix product as fast as theirs (faultline agent validate).`,
  },
  "gpu-hang": {
    says: (who) =>
      `A GPU of ${who} that nvidia-smi shows idle, without an Xid, would speak for the network instead.`,
  },
  "gpu-error": {
    says: (who) =>
      `No Xid in dmesg of the machine of ${who}, and a GPU that passes dcgmi diag -r 3, would point at the program instead.`,
    isKnown: (_, __, findings) => findings.some(({ says }) => /\bXid\b/i.test(says)),
  },
  "network-slow": {
    says: (who) =>
      `A bandwidth test between ${who} and a third machine as fast as elsewhere would clear the network there.`,
  },
  "network-hang": {
    says: (who) =>
      `Counters of the NIC of ${who} that keep counting while the job hangs would clear the network.`,
  },
  "process-gone": {
    says: (who) => `A process of ${who} that still runs would clear it: ps on its machine.`,
  },
  "process-stopped": {
    says: (who) =>
      `A process of ${who} in state R or S that uses its CPU would clear it: ps on its machine.`,
  },
  "collective-mismatch": {
    says: (who) =>
      `Dumps in which ${who} issued the same operators in the same order as its group would clear it.`,
    isKnown: ({ dumps }, { ranks }) => ranks.every((rank) => dumps.has(rank)),
  },
  "host-memory": {
    says: (who) =>
      `No line of the out-of-memory killer in dmesg of the machine of ${who} would point elsewhere.`,
  },
};

function whatWouldClear(job: Job, findings: readonly Finding[], lead: Hypothesis): string[] {
  const test = TESTS[lead.cause];
  return test && !test.isKnown?.(job, lead, findings) ? [test.says(nameOf(job, lead))] : [];
}

function nameOf(job: Job, { name, ranks, type }: Hypothesis): string {
  if (name !== null) return name;
  if (ranks.length === 0) return type === "machine" ? "a machine" : "the job";
  const machine = ranks.length > 1 ? machineOf(job, ranks) : null;
  const isAll =
    machine !== null &&
    [...job.ranks.values()].filter((one) => one.machine === machine).length === ranks.length;
  return isAll ? machine : rankWords(ranks);
}
