/**
 * Where a verdict leaves open which device it is, or whether the GPU or the CPU: which ranks have to test their GPUs and links,
 * and the verdict with what they report (Greyhound §4.3).
 */
import { validationReport } from "../ingest/validation-report.ts";
import { validationTests } from "../methods/validation/validation-method.ts";
import type { Accusation, Finding } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Env, Group, Job } from "../model/job.ts";
import type { ValidationReport } from "../model/validation.ts";
import type { Verdict } from "../model/verdict.ts";
import { fuse } from "../verdict/fuse.ts";
import { ask } from "./diagnose.ts";

export interface GroupTests {
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
}

export interface Stretch {
  readonly isNowAndThen: boolean;
  /** It may be the first of several. */
  readonly mayEnd: boolean;
  /** The network is slow, and nobody in it stands out. */
  readonly isOfAll: boolean;
}

/** Two periods of Holmes' fluctuations (appendix B). They are told of as soon as one names somebody. */
const ROUNDS = 14;
/** Fewer say no more than what is known: which of two is slow two cannot tell. */
const LEAST_TESTED = 3;

/**
 * Where the search ends in a tie: which ranks have to test their GPUs and links, and the verdict with what they report. A
 * tie is a group of which one NIC or link is slow, a link that may be a NIC, or several ranks of one group.
 */
export function testsOf(
  job: Job,
  verdict: Verdict,
  findings: readonly Finding[],
  { isNowAndThen, mayEnd, isOfAll }: Stretch,
  complete: (verdict: Verdict) => Verdict,
): GroupTests | null {
  const { suspects } = verdict;
  const [first] = suspects;
  if ((!first && !isOfAll) || verdict.kind !== "fail-slow") return null;
  const isNetwork = !first || (first.cause === "network-slow" && first.ranks.length > 1);
  // Of what is slow now and then only the network is tested.
  if (!isNetwork && (suspects.length < 2 || isNowAndThen)) return null;
  const suspected = first
    ? [...new Set(suspects.flatMap(({ ranks }) => ranks))]
    : [...(job.watched ?? [])];
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
        ...findings.map((one) => withoutWider(one, tested.findings)),
        ...tested.findings.map((one, k) => ({ ...one, id: `f${findings.length + k + 1}` })),
      ];
      const tellsMore = fuse(job, all, tested.didNotRun);
      return { verdict: complete(tellsMore), reports: validations };
    },
  };
}

/** A group's network is accused no longer where tests name a device of it. */
function withoutWider(finding: Finding, tested: readonly Finding[]): Finding {
  const named = tested.flatMap(({ accuses }) => accuses);
  const isWider = ({ cause, ranks }: Accusation): boolean =>
    cause === "network-slow" &&
    named.some(
      (one) => one.ranks.length < ranks.length && one.ranks.every((rank) => ranks.includes(rank)),
    );
  return { ...finding, accuses: finding.accuses.filter((one) => !isWider(one)) };
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
