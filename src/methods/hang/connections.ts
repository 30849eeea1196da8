/**
 * hang/connections: which line or GPU a communication hang begins at, from what the proxies of both sides know. The wait
 * graph says that all have entered an operator and none leaves it; this says where inside it the data stands still.
 */
import { count, rankWords } from "../../base/text.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { isMoving } from "../../model/moving.ts";
import { COMPLETED, SCHEDULED } from "../../model/operators.ts";
import * as P from "../../model/probe.ts";
import { originsOf, type Origin } from "./connection-origins.ts";
import { wirings, type Line, type Wiring } from "./connection-lines.ts";
import { placesOf } from "./accuse.ts";
import { isHalted } from "./process-state.ts";

/** Proxies of a job that runs move all the time; steps take microseconds. */
const STANDSTILL_MS = 1_000;
const MAX_FINDINGS = 8;

export const connections: Method = {
  id: "hang/connections",
  applies: (job) =>
    (job.probes ?? []).some((probe) => probe.connections.count > 0) && !isMoving(job),
  *run(job) {
    const stuck = wirings(job).filter(
      (wiring) => wiring.idleMs >= STANDSTILL_MS && hasPending(job, wiring),
    );
    const found = stuck.flatMap((wiring) => originsIn(job, wiring));
    const findings = merged(job, found);
    const accused = new Set(
      findings.flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks)),
    );
    const waiting = new Set<Rank>();
    for (const wiring of stuck)
      for (const member of wiring.members.keys()) {
        const rank = wiring.rankOf(member);
        if (rank !== null && !accused.has(rank)) waiting.add(rank);
      }
    const clears = findings.length > 0 ? [...waiting].sort((a, b) => a - b) : [];
    for (const finding of findings.slice(0, MAX_FINDINGS)) yield { ...finding, clears };
    if (stuck.length > 0 && findings.length === 0) yield undecided(stuck);
  },
};

/** The rank whose data a member of a communicator waits for although it was given to the wire; null where none. */
export function wireInto(job: Job, communicator: string, rank: Rank): Rank | null {
  for (const wiring of wirings(job)) {
    if (wiring.id !== communicator) continue;
    for (const { origin } of originsIn(job, wiring)) {
      if (origin.kind !== "wire" || wiring.rankOf(origin.line.to) !== rank) continue;
      return wiring.rankOf(origin.line.from);
    }
  }
  return null;
}

interface Found {
  readonly wiring: Wiring;
  readonly origin: Origin;
}

/** A step may be on its way although nothing hangs: of an operator that another communicator holds up. */
function hasPending(job: Job, { id, members }: Wiring): boolean {
  let isKnown = false;
  for (const { rank } of members.values()) {
    const dump = rank === null ? undefined : job.dumps.get(rank)?.dump;
    const group = dump?.groups.findIndex(({ name }) => name === id) ?? -1;
    if (!dump || group < 0) continue;
    isKnown = true;
    const { ops } = dump;
    for (let i = ops.count - 1; i >= 0; i--)
      if (ops.group[i] === group && ops.state[i] !== COMPLETED) return true;
    if ((dump.unknownEnds ?? 0) > 0) return true;
  }
  return !isKnown;
}

function originsIn(job: Job, wiring: Wiring): Found[] {
  const hasHalted = [...wiring.members.values()].some((process) => isHalted(job, process));
  const origins = originsOf(wiring).filter((origin) => {
    // The proxies of a process that is stopped or gone stand in the middle of something; why is known. What passes through
    // them is broken off anywhere, so that a GPU beyond seems to have all it needs.
    if (origin.kind === "gpu")
      return !hasHalted && origin.members.every((member) => !isHeldUp(job, wiring, member));
    const { sender, receiver } = origin.line;
    return ![sender, receiver].some((end) => end && isHalted(job, end.process));
  });
  return origins.map((origin) => ({ wiring, origin }));
}

/** Whether a member's GPU has something else to wait for: an operator of another communicator comes first. */
function isHeldUp(job: Job, wiring: Wiring, member: number): boolean {
  const rank = wiring.rankOf(member);
  const dump = rank === null ? undefined : job.dumps.get(rank)?.dump;
  const own = dump?.groups.findIndex(({ name }) => name === wiring.id) ?? -1;
  if (!dump || own < 0) return false;
  const { ops, timing } = dump;
  for (let i = 0; i < ops.count; i++) {
    if (ops.state[i] === COMPLETED) continue;
    if (timing && ops.state[i] === SCHEDULED) continue;
    // The first that runs, or without times the first that was issued.
    return ops.group[i] !== own;
  }
  return false;
}

/** One finding for a link, a GPU or a NIC, whatever number of channels and communicators show it. */
function merged(job: Job, found: readonly Found[]): NewFinding[] {
  const wires = found.filter(({ origin }) => origin.kind === "wire");
  const hub = hubOf(wires);
  const byWhat = new Map<string, Found[]>();
  for (const one of found) {
    const { origin, wiring } = one;
    const ranks = ranksOf(one);
    if (ranks === null) continue;
    const isHub = origin.kind === "wire" && hub !== null;
    const what = isHub
      ? `nic ${hub}`
      : `${origin.kind} ${wiring.machineOf(origin.line.to)} ${ranks.join()}`;
    const key =
      origin.kind === "wire" && !isHub ? `wire ${ranks.toSorted((a, b) => a - b).join()}` : what;
    const list = byWhat.get(key);
    if (list) list.push(one);
    else byWhat.set(key, [one]);
  }
  return [...byWhat.values()]
    .map((list) => findingOf(job, list, hub))
    .sort((a, b) => b.weight - a.weight);
}

function ranksOf({ wiring, origin }: Found): Rank[] | null {
  const members = origin.kind === "gpu" ? origin.members : ends(origin.line, origin.kind);
  const ranks = members.map(wiring.rankOf);
  return ranks.every((rank): rank is Rank => rank !== null) ? ranks : null;
}

function ends({ from, to }: Line, kind: "wire" | "flush"): number[] {
  return kind === "wire" ? [from, to] : [to];
}

/** The one rank that all stuck lines share, where they lead to several others: its NIC, not each of the links. */
function hubOf(wires: readonly Found[]): Rank | null {
  const pairs = wires.flatMap((one) => {
    const ranks = ranksOf(one);
    return ranks ? [ranks] : [];
  });
  const all = new Set(pairs.flat());
  if (all.size < 3) return null;
  const shared = [...all].filter((rank) => pairs.every((pair) => pair.includes(rank)));
  return shared.length === 1 ? shared[0]! : null;
}

const SURE = 0.9;

function findingOf(job: Job, list: readonly Found[], hub: Rank | null): NewFinding {
  const { wiring, origin } = list[0]!;
  const ranks = ranksOf(list[0]!)!;
  const channels = new Set(list.map((one) => one.origin.line.channel));
  const where = `in ${wiring.label}${channels.size > 1 ? ` on ${count(channels.size, "channel")}` : `, channel ${[...channels][0]}`}`;
  const accusation = accusationOf(list, ranks, hub, where);
  const { sender, receiver } = origin.line;
  return {
    says: accusation.why,
    weight: accusation.weight,
    at: placesOf(job, ranks),
    data: {
      fact: "stuck-connection",
      side: origin.kind === "gpu" ? "gpu" : "communication",
      communicator: wiring.id,
      channels: [...channels].sort((a, b) => a - b),
      from: wiring.rankOf(origin.line.from),
      to: wiring.rankOf(origin.line.to),
      sentSteps: sender?.finished ?? null,
      receivedSteps: receiver?.finished ?? null,
      idleMs: Math.round(wiring.idleMs),
    },
    accuses: [accusation],
    clears: [],
  };
}

function accusationOf(
  list: readonly Found[],
  ranks: readonly Rank[],
  hub: Rank | null,
  where: string,
): Accusation {
  const { origin, wiring } = list[0]!;
  if (origin.kind === "wire") {
    if (hub !== null) {
      const why = `all stalled transfers ${where} start or end at rank ${hub}: its NIC or its proxy`;
      return accuse("nic", [hub], null, "network-hang", 0.85, why);
    }
    const [from, to] = ranks as [Rank, Rank];
    const sorted = [from, to].sort((a, b) => a - b);
    const link = [`rank:${sorted[0]}`, `rank:${sorted[1]}`] as const;
    const why = `data sent from rank ${from} to rank ${to} does not arrive ${where}: rank ${from} ${sentWords(origin.line)}, rank ${to} waits for step ${origin.line.receiver!.finished + 1}`;
    return accuse("link", sorted, link, "network-hang", SURE, why);
  }
  if (origin.kind === "flush") {
    const why = `the data that rank ${ranks[0]} received ${where} does not reach its GPU's memory: the flush does not complete`;
    return accuse("nic", ranks, null, "network-hang", 0.7, why);
  }
  const what = gpuWords(
    origin.line,
    wiring.rankOf(origin.line.from),
    wiring.rankOf(origin.line.to),
  );
  const isOne = ranks.length === 1;
  const doubt = origin.isDoubtful ? 0.6 : 1;
  const either = origin.isDoubtful ? ", judging by the steps" : "";
  const why = `${rankWords(ranks)} ${isOne ? "has its" : "have their"} data and ${isOne ? "does" : "do"} not continue ${where}${either}: ${what}`;
  // Between the GPUs of one machine nothing is seen: any of them may be it.
  return accuse(
    isOne ? "gpu" : "machine",
    ranks,
    null,
    "gpu-hang",
    (isOne ? 0.88 : 0.6) * doubt,
    why,
  );
}

function sentWords({ sender }: Line): string {
  if (sender?.state === P.SEND_WAITS_FOR_PEER) return `waits for credit that it was already given`;
  if (sender?.state === P.SEND_WAITS_FOR_WIRE)
    return `waits for step ${sender.finished + 1} to leave`;
  return `has sent ${sender!.finished} steps`;
}

function gpuWords(line: Line, from: Rank | null, to: Rank | null): string {
  if (
    line.sender?.state === P.SEND_WAITS_FOR_GPU &&
    line.receiver?.state !== P.RECEIVE_WAITS_FOR_GPU
  )
    return `its proxy waits for the GPU to fill the buffer for rank ${to}`;
  return `its proxy waits for the GPU to empty the buffer from rank ${from}`;
}

function accuse(
  type: Accusation["type"],
  ranks: readonly Rank[],
  link: Accusation["link"],
  cause: Accusation["cause"],
  weight: number,
  why: string,
): Accusation {
  return { kind: "hang", type, ranks, link, cause, weight, why };
}

function undecided(stuck: readonly Wiring[]): NewFinding {
  const names = stuck.slice(0, 4).map(({ label }) => label);
  return {
    says: `the proxies of ${names.join(", ")} are stalled, and each waits for another: the rings do not show where this starts`,
    weight: 0.2,
    at: [],
    data: { fact: "stuck-communicators", communicators: stuck.map(({ id }) => id) },
    accuses: [],
    clears: [],
  };
}
