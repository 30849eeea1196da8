/** The two or three findings that decided, who disagrees, and what would change the verdict's mind. */
import { rankWords } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Conflict, DecidingFinding, Reasoning } from "../model/reasoning.ts";
import type { Hypothesis } from "./hypotheses.ts";
import type { Posterior, Rival } from "./posterior.ts";
import { probabilityOf } from "./reliability.ts";
import { machineOf } from "./summary.ts";

const MOST_DECIDING = 3;
const MOST_CONFLICTS = 4;
/** What multiplies the odds by less did not decide. */
const LEAST_TIMES = 1.5;
const MOST_TIMES = 1000;
/** A rival below this is no conflict. */
const LEAST_RIVAL = 0.01;

export function reasoningOf(
  job: Job,
  findings: readonly Finding[],
  lead: Hypothesis | undefined,
  posterior: Posterior,
): Reasoning {
  const rivals = posterior.rivals.filter(({ probability }) => probability >= LEAST_RIVAL);
  return {
    decidedBy: lead ? deciding(lead) : [],
    conflicts: conflictsOf(job, findings, rivals),
    wouldChange: lead ? [...counterfactuals(job, lead, rivals), ...whatWouldClear(job, lead)] : [],
    prior: lead?.prior ? { share: round(lead.prior.share), says: lead.prior.says } : null,
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
  return rivals.slice(0, MOST_CONFLICTS).map(({ hypothesis, probability }) => ({
    who: nameOf(job, hypothesis),
    ranks: hypothesis.ranks,
    machine: machineOf(job, hypothesis.ranks),
    cause: hypothesis.cause,
    probability: round(probability),
    findings: hypothesis.evidence,
    why: whyNot(findings, hypothesis),
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
  if (clearing) return `${clearing.id} shows that it only waits`;
  const even = findings.find(({ data }) => data["evenIterations"] !== undefined);
  if (kind === "faulty-machine" && even) return `the job runs as evenly as before (${even.id})`;
  return "too little speaks for it";
}

/** Would the verdict stand without its strongest findings? */
function counterfactuals(job: Job, lead: Hypothesis, rivals: readonly Rival[]): string[] {
  const [first] = lead.support;
  if (!first) return [];
  const left = lead.odds - first.logTimes;
  const rival = rivals[0]?.hypothesis;
  if (rival && rival.odds > left)
    return [
      `If ${first.finding} is wrong, ${nameOf(job, rival)} is to blame (${rival.cause}, ${rival.evidence.slice(0, 3).join(", ")}).`,
    ];
  if (probabilityOf(left) < 0.5)
    return [`If ${first.finding} is wrong, nothing else here names a culprit for certain.`];
  return [];
}

/** What one could look at, and how it would look if the suspect were innocent; by cause. */
const CLEARS: Partial<Record<Cause, (who: string) => string>> = {
  "cpu-stall": (who) =>
    `A Python stack of ${who} inside a collective would clear it: it would wait, as the others do.`,
  dataloader: (who) => `A Python stack of ${who} outside its data loader would speak against it.`,
  storage: (who) =>
    `Reads and writes on the file system that ${who} uses, as quick as elsewhere, would clear the storage.`,
  "gpu-slow": (who) =>
    `Clocks, power and temperature of the GPU of ${who} like its peers' would speak against it; so would a matrix multiplication as quick as theirs (faultline agent validate).`,
  "gpu-hang": (who) =>
    `If nvidia-smi shows the GPU of ${who} idle and without an Xid, the kernel it waits for is elsewhere.`,
  "gpu-error": (who) =>
    `No Xid in dmesg of the machine of ${who}, and a GPU that passes dcgmi diag -r 3, would point at the program instead.`,
  "network-slow": (who) =>
    `A bandwidth test between ${who} and a third machine as quick as elsewhere would clear the network there.`,
  "network-hang": (who) =>
    `Counters of the NIC of ${who} that go on counting while the job hangs would clear the network.`,
  "process-gone": (who) => `A process of ${who} that still runs would clear it: ps on its machine.`,
  "process-stopped": (who) =>
    `A process of ${who} in state R or S that uses its CPU would clear it: ps on its machine.`,
  "collective-mismatch": (who) =>
    `Dumps in which ${who} issued the same operators in the same order as its group would clear it.`,
  "host-memory": (who) =>
    `No line of the out-of-memory killer in dmesg of the machine of ${who} would point elsewhere.`,
};

function whatWouldClear(job: Job, lead: Hypothesis): string[] {
  const words = CLEARS[lead.cause];
  return words ? [words(nameOf(job, lead))] : [];
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

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
