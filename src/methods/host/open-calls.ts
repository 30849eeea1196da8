/**
 * host/open-calls: in which traced call each rank is when the job hangs. A rank inside a collective
 * waits; so does one that waits for its GPU. A rank that is in the data loader, or in no call of communication while
 * its peers are in one that blocks, is what they wait for.
 */
import { largest } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Method } from "../../model/method.ts";
import {
  callPurpose,
  ITERATION,
  PYTHON_CALL,
  type CallPurpose,
  type HostCalls,
  type ProbeProcess,
} from "../../model/probe.ts";
import { mainThread, withCalls } from "./host-times.ts";

/** Nothing of a job that runs takes this long without a call, however short its iterations are. */
const LEAST_IDLE_MS = 1_000;
/** And of one with long iterations, so many of them. */
const IDLE_ITERATIONS = 10;

interface Standing {
  readonly rank: Rank;
  readonly process: ProbeProcess;
  /** The innermost call that goes on; "" for none. */
  readonly call: string;
  readonly purpose: CallPurpose | null;
  readonly forMs: number;
}

export const openCalls: Method = {
  id: "host/open-calls",
  applies: (job) => withCalls(job).some(({ rank, ended }) => rank !== null && ended === null),
  *run(job) {
    const all = withCalls(job).filter(({ rank }) => rank !== null);
    // A process that has ended left its peers in whatever they were doing: that is another question.
    if (all.some(({ ended }) => ended !== null)) return;
    const nowMs = largest(all.map(takenMs), -Infinity);
    const standing = all.flatMap((process) => standingOf(process, nowMs));
    if (standing.length < all.length || standing.length < 2) return;
    yield* findingsOf(standing);
  },
};

/** Empty where the rank still does something. */
function standingOf(process: ProbeProcess, nowMs: number): Standing[] {
  const { calls, rank, copiedNs } = process;
  // The heartbeat of a process that is stopped stands still with it: the others tell how late it is.
  const takenNs = Number.isFinite(copiedNs)
    ? copiedNs
    : (nowMs - Number(process.epochNs / 1_000_000n)) * 1e6;
  let newestNs = -Infinity;
  const lasted: number[] = [];
  for (let i = 0; i < calls.count; i++) {
    newestNs = Math.max(
      newestNs,
      calls.startNs[i]!,
      Number.isFinite(calls.endNs[i]!) ? calls.endNs[i]! : 0,
    );
    if (calls.kind[i] === ITERATION && Number.isFinite(calls.endNs[i]!))
      lasted.push((calls.endNs[i]! - calls.startNs[i]!) / 1e6);
  }
  const idleMs = (takenNs - newestNs) / 1e6;
  const usualMs = lasted.length > 0 ? median(lasted) : 0;
  if (!(idleMs >= Math.max(LEAST_IDLE_MS, IDLE_ITERATIONS * usualMs))) return [];
  const open = innermost(calls);
  const call = open < 0 ? "" : (calls.names[calls.name[open]!] ?? "");
  const forMs = open < 0 ? idleMs : (takenNs - calls.startNs[open]!) / 1e6;
  return [{ rank: rank!, process, call, purpose: callPurpose(call), forMs }];
}

function takenMs({ epochNs, copiedNs, heartbeatNs }: ProbeProcess): number {
  const takenNs = Number.isFinite(copiedNs) ? copiedNs : heartbeatNs;
  return Number(epochNs / 1_000_000n) + takenNs / 1e6;
}

/** Of the thread that trains; calls are in the order of their starts. */
function innermost(calls: HostCalls): number {
  const thread = mainThread(calls);
  for (let i = calls.count - 1; i >= 0; i--) {
    const isOpen = calls.kind[i] === PYTHON_CALL && !Number.isFinite(calls.endNs[i]!);
    if (isOpen && calls.thread[i] === thread) return i;
  }
  return -1;
}

function* findingsOf(standing: readonly Standing[]): Iterable<NewFinding> {
  const waiting = standing.filter(({ purpose }) => purpose === "communication");
  const loading = standing.filter(({ purpose }) => purpose === "dataloader");
  // Who is in no call may be anywhere; only where others block in communication is that telling.
  const elsewhere = standing.filter(
    ({ purpose }) => purpose === null || purpose === "garbage-collection",
  );
  const suspects = loading.length > 0 ? loading : waiting.length > 0 ? elsewhere : [];
  if (suspects.length === 0) return;
  const clears = waiting.map(({ rank }) => rank).sort((a, b) => a - b);
  if (suspects.length * 2 > standing.length) {
    if (loading.length > 0) yield allLoad(loading, standing.length, clears);
    return;
  }
  for (const one of suspects) yield suspectFinding(one, waiting, clears);
}

function suspectFinding(one: Standing, waiting: readonly Standing[], clears: Rank[]): NewFinding {
  const { rank, process, call, purpose, forMs } = one;
  const isLoading = purpose === "dataloader";
  const where = call === "" ? "outside traced calls" : `in ${call}`;
  const others =
    waiting.length === 0
      ? ""
      : `, while ${rankWords(clears)} ${waiting.length === 1 ? "waits" : "wait"} in ${waiting[0]!.call}`;
  const why = `rank ${rank} has been ${where} for ${(forMs / 1e3).toFixed(0)} s${others}`;
  const weight = isLoading ? 0.85 : 0.75;
  return {
    says: why,
    weight,
    at: [{ file: process.file }],
    data: { fact: "open-call", side: "cpu", call, forMs: Math.round(forMs) },
    accuses: [accuse("rank", [rank], isLoading ? "dataloader" : "cpu-stall", weight, why)],
    clears,
  };
}

function allLoad(loading: readonly Standing[], all: number, clears: Rank[]): NewFinding {
  const ranks = loading.map(({ rank }) => rank).sort((a, b) => a - b);
  const why = `${count(ranks.length, "rank")} of ${all} are in ${loading[0]!.call}: suspect what they read from, not one of the ranks`;
  return {
    says: why,
    weight: 0.7,
    at: loading.slice(0, 4).map(({ process }) => ({ file: process.file })),
    data: { fact: "open-call", side: "cpu", loading: ranks },
    accuses: [accuse("data", [], "dataloader", 0.7, why)],
    clears,
  };
}

function accuse(
  type: Accusation["type"],
  ranks: readonly Rank[],
  cause: Accusation["cause"],
  weight: number,
  why: string,
): Accusation {
  return { kind: "hang", type, ranks, link: null, cause, weight, why };
}
