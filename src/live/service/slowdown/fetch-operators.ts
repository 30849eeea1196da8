/** Operators from the agents of a running job, as a search asks for them: one request an agent and round. */
import { groupBy } from "../../../base/group-by.ts";
import type { FetchedProgram, OperatorFetcher } from "../../../pipeline/live-slowdown.ts";
import type { LiveJob } from "../../../ingest/live-job.ts";
import type { Want } from "../../../methods/localize/progressive/remote-source.ts";
import type { Rank } from "../../../model/ids.ts";
import { COMPLETED, type OperatorTable, SCHEDULED } from "../../../model/operators.ts";
import type { RankOperators } from "../../../model/rank-operators.ts";
import type { WireTime } from "../../../model/wire-times.ts";
import type {
  AgentReply,
  AgentRequest,
  OperatorsReply,
  Pick,
  WireReply,
} from "../../wire/messages.ts";
import type { JobRun } from "../job/job-run.ts";

export type AskAgent = (
  agent: string,
  request: AgentRequest,
  timeoutMs: number,
) => Promise<AgentReply>;

/** An agent answers from memory: one that takes longer is as good as gone. */
const PATIENCE_MS = 5000;
/** Picks of one request: an answer of so many stays small. */
const MOST_PICKS = 512;

type DurationsWant = Extract<Want, { what: "durations" }>;
type Answer = FetchedProgram | Float64Array | null;

export function operatorFetcher(
  run: JobRun,
  live: LiveJob,
  iterations: Float64Array,
  askAgent: AskAgent,
  canAsk: (agent: string, word: string) => boolean,
): OperatorFetcher {
  const ask = async (
    rank: Rank,
    make: (agentRun: string) => AgentRequest,
  ): Promise<AgentReply | null> => {
    const held = run.ranks.get(rank);
    if (!held) return null;
    try {
      const reply = await askAgent(held.agent, make(held.agentRun), PATIENCE_MS);
      return reply.kind === "refused" ? null : reply;
    } catch {
      return null;
    }
  };
  return {
    async wireTimes(numbers) {
      const agents = groupBy([...run.ranks.values()], ({ agent }) => agent);
      const links = new Map<string, WireTime>();
      await Promise.all(
        [...agents].map(async ([agent, own]) => {
          if (!canAsk(agent, "wire")) return;
          const ranks = own.map(({ report }) => report.rank);
          const reply = await ask(ranks[0]!, (agentRun) => ({
            ask: "wire",
            job: run.job,
            run: agentRun,
            ranks,
            iterations: [...numbers],
          }));
          if (reply?.kind === "wire") addLinks(links, reply, ranks, live, numbers.length);
        }),
      );
      // By ranks, whichever agent answered first.
      const sorted = [...links.values()].sort((a, b) => a.from - b.from || a.to - b.to);
      return { iterations: numbers, links: sorted };
    },
    async fetch(wants) {
      const answers: Answer[] = wants.map(() => null);
      const batches = batchesOf(run, wants);
      const programs = wants.flatMap((want, at) => (want.what === "program" ? [{ at, want }] : []));
      await Promise.all([
        ...programs.map(async ({ at, want }) => {
          const reply = await ask(want.rank, (agentRun) => ({
            ask: "program",
            job: run.job,
            run: agentRun,
            rank: want.rank,
            iteration: null,
          }));
          if (reply?.kind === "program") answers[at] = reply;
        }),
        ...batches.map(async (batch) => {
          const [{ want: first }] = batch as [Placed, ...Placed[]];
          const reply = await ask(first.rank, (agentRun) => ({
            ask: "durations",
            job: run.job,
            run: agentRun,
            iterations: first.iterations,
            picks: batch.map(({ want }) => pickOf(want, live)),
          }));
          if (reply?.kind === "durations") share(reply.ms, batch, answers);
        }),
      ]);
      return answers;
    },
    async operators(rank) {
      const replies = await Promise.all(
        stretchesOf(iterations).map(([fromIteration, toIteration]) =>
          ask(rank, (agentRun) => ({
            ask: "operators",
            job: run.job,
            run: agentRun,
            rank,
            fromIteration,
            toIteration,
          })),
        ),
      );
      const held = replies.filter((reply) => reply?.kind === "operators");
      if (held.length === 0 || !held.every(isWhole)) return null;
      const machine = run.ranks.get(rank)?.machine ?? "?";
      return aligned(rank, `${machine}, rank ${rank}`, joined(held), live, iterations);
    },
  };
}

/** A direction's times in all groups together; what names ranks of another agent, or nobody, is left out. */
function addLinks(
  links: Map<string, WireTime>,
  { rank: ranks, group, peer, ms }: WireReply,
  own: readonly Rank[],
  { groupIds, job }: LiveJob,
  iterations: number,
): void {
  const isOwn = new Set(own);
  for (const [k, rank] of ranks.entries()) {
    const members = job.groups[groupIds.get(rank)?.[group[k]!] ?? -1]?.ranks;
    const to = peer[k]! < -1 ? members?.[-2 - peer[k]!] : peer[k]!;
    if (to === undefined || to < 0 || to === rank || !isOwn.has(rank) || to >= job.worldSize)
      continue;
    const key = `${rank} ${to}`;
    const known = links.get(key);
    const times = Float64Array.from(ms.subarray(k * iterations, (k + 1) * iterations));
    if (known) for (const [i, one] of times.entries()) known.ms[i] = sum(known.ms[i]!, one);
    else links.set(key, { from: rank, to, ms: times });
  }
}

/** Of what is known. */
function sum(a: number, b: number): number {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : a + b;
}

/** Iterations that nobody asked for are not fetched with the others where there are so many of them in between. */
const GAP = 4;

/** First and last iteration of each stretch; both 0 where there are none. */
function stretchesOf(iterations: Float64Array): [number, number][] {
  const stretches: [number, number][] = [[iterations[0] ?? 0, iterations[0] ?? 0]];
  for (const number of iterations)
    if (number - stretches.at(-1)![1] > GAP) stretches.push([number, number]);
    else stretches.at(-1)![1] = number;
  return stretches;
}

/** Several stretches as one. */
function joined(parts: readonly OperatorsReply[]): OperatorsReply {
  const [first] = parts as [OperatorsReply];
  if (parts.length === 1) return first;
  const nothing = (): number => 0;
  const laterNs = ({ epochMs }: OperatorsReply): number => (epochMs - first.epochMs) * 1e6;
  const behind = (part: OperatorsReply): number =>
    parts.slice(0, parts.indexOf(part)).reduce((sum, { op }) => sum + op.length, 0);
  const columnOf =
    <A extends Uint8Array | Int32Array | Float64Array>(make: (length: number) => A) =>
    (of: (part: OperatorsReply) => A, plus: (part: OperatorsReply) => number = nothing): A => {
      const all = make(parts.reduce((sum, part) => sum + of(part).length, 0));
      let at = 0;
      for (const part of parts) {
        const more = plus(part);
        for (const value of of(part)) all[at++] = value + more;
      }
      return all;
    };
  const bytes = columnOf((length): Uint8Array => new Uint8Array(length));
  const ints = columnOf((length): Int32Array => new Int32Array(length));
  const doubles = columnOf((length): Float64Array => new Float64Array(length));
  return {
    kind: "operators",
    epochMs: first.epochMs,
    iteration: doubles((part) => part.iteration),
    from: ints((part) => part.from, behind),
    to: ints((part) => part.to, behind),
    startMs: doubles((part) => part.startMs),
    durationMs: doubles((part) => part.durationMs),
    op: bytes((part) => part.op),
    group: ints((part) => part.group),
    peer: ints((part) => part.peer),
    seq: ints((part) => part.seq),
    bytes: doubles((part) => part.bytes),
    createdNs: doubles((part) => part.createdNs, laterNs),
    startedNs: doubles((part) => part.startedNs, laterNs),
    completedNs: doubles((part) => part.completedNs, laterNs),
  };
}

interface Placed {
  readonly at: number;
  readonly want: DurationsWant;
}

/** By agent and by which iterations are asked for. */
function batchesOf(run: JobRun, wants: readonly Want[]): Placed[][] {
  const open = new Map<string, Placed[]>();
  const batches: Placed[][] = [];
  const words = new Map<readonly number[], string>();
  for (const [at, want] of wants.entries()) {
    if (want.what !== "durations") continue;
    let numbers = words.get(want.iterations);
    if (numbers === undefined) words.set(want.iterations, (numbers = want.iterations.join()));
    const key = `${run.ranks.get(want.rank)?.agent ?? ""} ${numbers}`;
    let batch = open.get(key);
    if (!batch || batch.length >= MOST_PICKS) {
      open.set(key, (batch = []));
      batches.push(batch);
    }
    batch.push({ at, want });
  }
  return batches;
}

/** What cannot be is asked as a place behind all others: agents refuse numbers below zero, and answer NaN to this. */
function pickOf({ rank, of }: DurationsWant, live: LiveJob): Pick {
  const real = (numbers: readonly number[]): number[] =>
    numbers.map((number) => (number >= 0 ? number : NOWHERE));
  if ("group" in of) return { rank, of: { group: live.keys[of.group] ?? "", nth: real(of.nth) } };
  return { rank, of: { places: real(of.places) } };
}

const NOWHERE = 2 ** 30;

function places({ of }: DurationsWant): number {
  return "places" in of ? of.places.length : of.nth.length;
}

/** An answer of another length than was asked for is none. */
function share(ms: Float32Array, batch: readonly Placed[], answers: Answer[]): void {
  const lengths = batch.map(({ want }) => places(want) * want.iterations.length);
  if (lengths.reduce((sum, length) => sum + length, 0) !== ms.length) return;
  let from = 0;
  for (const [k, { at }] of batch.entries()) {
    answers[at] = Float64Array.from(ms.subarray(from, from + lengths[k]!));
    from += lengths[k]!;
  }
}

/** With an entry for each iteration asked for, so that it lies beside the points; empty where the agent has none. */
function aligned(
  rank: Rank,
  file: string,
  reply: OperatorsReply,
  live: LiveJob,
  iterations: Float64Array,
): RankOperators {
  const held = new Map([...reply.iteration].map((number, i) => [number, i]));
  const columnOf = (column: ArrayLike<number>, absent: number): Float64Array =>
    Float64Array.from(iterations, (number) => column[held.get(number) ?? -1] ?? absent);
  return {
    rank,
    file,
    ops: tableOf(reply, rank, live),
    epochNs: BigInt(Math.round(reply.epochMs)) * 1_000_000n,
    groupIds: live.groupIds.get(rank) ?? new Int32Array(0),
    hasSequence: true,
    iteration: iterations,
    from: Int32Array.from(columnOf(reply.from, 0)),
    to: Int32Array.from(columnOf(reply.to, 0)),
    startMs: columnOf(reply.startMs, NaN),
    durationMs: columnOf(reply.durationMs, NaN),
  };
}

function isWhole({ op, iteration, from, to }: OperatorsReply): boolean {
  return iteration.every((_, i) => from[i]! >= 0 && from[i]! <= to[i]! && to[i]! <= op.length);
}

function tableOf(reply: OperatorsReply, rank: Rank, { job, groupIds }: LiveJob): OperatorTable {
  const ids = groupIds.get(rank) ?? new Int32Array(0);
  /** Index of the rank's group → global rank → place in it. */
  const places = Array.from(ids, (id) => {
    const members = job.groups[id]?.ranks ?? [];
    return new Map(members.map((member, place) => [member, place]));
  });
  const { op, group, seq, bytes, createdNs, startedNs, completedNs } = reply;
  const count = op.length;
  return {
    count,
    group,
    name: new Int32Array(count),
    seq,
    p2pSeq: new Int32Array(count),
    recordId: Float64Array.from(op, (_, i) => i),
    state: Uint8Array.from(completedNs, (ns) => (ns > 0 ? COMPLETED : SCHEDULED)),
    isP2p: op.map((kind) => (kind === 0 ? 0 : 1)),
    // Below -1 the agent knows the place only (ProgramReply.peer).
    peer: reply.peer.map((peer, i) =>
      peer < -1 ? -2 - peer : (places[group[i]!]?.get(peer) ?? -1),
    ),
    isSend: op.map((kind) => (kind === 1 ? 1 : 0)),
    createdNs,
    startedNs,
    completedNs,
    durationMs: Float32Array.from(completedNs, (ns, i) => (ns - startedNs[i]!) / 1e6),
    inputNumel: bytes,
    outputNumel: bytes,
    dtype: new Int32Array(count).fill(-1),
    names: ["operator"],
    dtypes: [],
  };
}
