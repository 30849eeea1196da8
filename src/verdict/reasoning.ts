/** The two or three findings that decided, who disagrees, and what would change the verdict's mind. */
import { thousandths } from "../base/numbers.ts";
import { factOf } from "../model/facts.ts";
import { cutText, rankWords } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Conflict, DecidingFinding, Reasoning } from "../model/reasoning.ts";
import type { Case } from "./case.ts";
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
  given: Case,
  lead: Hypothesis | undefined,
  posterior: Posterior,
): Reasoning {
  // A strongly accused rank that was cleared belongs here too: if the clearing evidence is wrong, it is the suspect.
  const rivals = posterior.rivals
    .filter((rival) => rival.probability >= LEAST_RIVAL || isLoud(rival))
    .sort((a, b) => b.hypothesis.undamped - a.hypothesis.undamped);
  return {
    decidedBy: lead ? deciding(lead) : [],
    conflicts: [...conflictsOf(given, rivals), ...judgedRivals(given, lead)].slice(
      0,
      MOST_CONFLICTS,
    ),
    wouldChange: lead
      ? [...counterfactuals(given, lead, rivals), ...whatWouldClear(given, lead)]
      : [],
    prior: lead?.prior ? { share: lead.prior.share, says: lead.prior.says } : null,
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

function conflictsOf({ job, findings }: Case, rivals: readonly Rival[]): Conflict[] {
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
function judgedRivals({ findings }: Case, lead: Hypothesis | undefined): Conflict[] {
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
  { job, findings }: Case,
  lead: Hypothesis,
  rivals: readonly Rival[],
): string[] {
  const [first] = lead.support;
  if (!first) return [];
  const left = lead.odds - first.logTimes;
  const strongest = findings.find(({ id }) => id === first.finding)!;
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

/** What one could look at, and how it would look if the suspect were innocent. */
const WOULD_CLEAR: Partial<Record<Cause, string>> = {
  "cpu-stall":
    "A Python stack of {who} inside a collective, like the others', would clear it: it would only be waiting.",
  dataloader: "A Python stack of {who} outside its data loader would speak against it.",
  storage: "Reads and writes of {who} as fast as elsewhere would clear the storage.",
  "gpu-slow":
    "Clocks, power and temperature of the GPU of {who} like its peers' would speak against it; so would a matrix product as fast as theirs (faultline agent validate).",
  "gpu-hang":
    "A GPU of {who} that nvidia-smi shows idle, without an Xid, would speak for the network instead.",
  "gpu-error":
    "No Xid in dmesg of the machine of {who}, and a GPU that passes dcgmi diag -r 3, would point at the program instead.",
  "network-slow":
    "A bandwidth test between {who} and a third machine as fast as elsewhere would clear the network there.",
  "network-hang":
    "Counters of the NIC of {who} that keep counting while the job hangs would clear the network.",
  "process-gone": "A process of {who} that still runs would clear it: ps on its machine.",
  "process-stopped":
    "A process of {who} in state R or S that uses its CPU would clear it: ps on its machine.",
  "collective-mismatch":
    "Dumps in which {who} issued the same operators in the same order as its group would clear it.",
  "host-memory":
    "No line of the out-of-memory killer in dmesg of the machine of {who} would point elsewhere.",
};

/** Whether that has been looked at: then it is no news. */
function isKnown({ job, findings }: Case, { cause, kind, ranks }: Hypothesis): boolean {
  const hasStack = ranks.some((rank) => job.stacks.has(rank));
  if (cause === "cpu-stall") return kind !== "hang" || hasStack;
  if (cause === "dataloader") return hasStack;
  if (cause === "gpu-error") return findings.some(({ says }) => /\bXid\b/i.test(says));
  return cause === "collective-mismatch" && ranks.every((rank) => job.dumps.has(rank));
}

function whatWouldClear(given: Case, lead: Hypothesis): string[] {
  const test = WOULD_CLEAR[lead.cause];
  if (test === undefined || isKnown(given, lead)) return [];
  return [test.replaceAll("{who}", () => nameOf(given.job, lead))];
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
