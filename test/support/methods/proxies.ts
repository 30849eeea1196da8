/**
 * Proxies and GPUs of one collective that obey NCCL's rules until nothing moves any more: eight buffers a connection, a
 * step is filled by the sender's GPU, carried when the receiver has given credit, and emptied by the receiver's GPU.
 * For tests of the inspection of hangs.
 */
import { pick, type Random } from "../../../src/base/random.ts";
import * as P from "../../../src/model/probe.ts";
import { firstParent, secondParent } from "../../../src/methods/hang/tree-roots.ts";

export const BUFFERS = 8;

export type ProxyFault =
  | { readonly kind: "wire"; readonly from: number; readonly to: number; readonly step: number }
  /** The sender's side believes that it was sent. */
  | { readonly kind: "lost"; readonly from: number; readonly to: number; readonly step: number }
  | { readonly kind: "credit"; readonly from: number; readonly to: number; readonly step: number }
  | { readonly kind: "gpu"; readonly rank: number; readonly step: number }
  /** Its proxy threads stop after so many moves of all; the GPU goes on with what it has. */
  | { readonly kind: "stopped"; readonly rank: number; readonly after: number }
  /** It never begins. */
  | { readonly kind: "absent"; readonly rank: number };

export interface SimLine {
  readonly from: number;
  readonly to: number;
  filled: number;
  sent: number;
  arrived: number;
  emptied: number;
  /** What a proxy that was stopped last wrote down. */
  frozenSend: { finished: number; state: number } | null;
  frozenReceive: { finished: number; state: number } | null;
}

/** What a GPU does in one go: empties a step of some lines and fills one of others. */
interface Work {
  readonly rank: number;
  readonly empties: readonly SimLine[];
  readonly fills: readonly SimLine[];
  /** Steps that it may do before the first data is there (a ring begins with its own part). */
  readonly lead: number;
  done: number;
}

export type Shape = "ring" | "tree" | "second-tree";

export function runProxies(
  shape: Shape,
  size: number,
  steps: number,
  fault: ProxyFault,
  random: Random,
): SimLine[] {
  const { lines, works } = shape === "ring" ? ring(size) : tree(size, shape === "tree");
  let moves = 0;
  const isStopped = (rank: number): boolean =>
    fault.kind === "stopped" && fault.rank === rank && moves >= fault.after;
  for (;;) {
    const possible: (() => void)[] = [];
    for (const work of works) {
      if (mayWork(work, steps, fault)) possible.push(() => doWork(work, steps));
    }
    for (const line of lines) {
      if (isStopped(line.from) || isStopped(line.to)) continue;
      if (mayCarry(line, fault)) possible.push(() => carry(line, fault));
    }
    if (possible.length === 0) return lines;
    pick(random, possible)();
    moves++;
    if (fault.kind === "stopped" && moves === fault.after) freeze(lines, fault, steps);
  }
}

function ring(size: number) {
  const lines = Array.from({ length: size }, (_, from) => line(from, (from + 1) % size));
  const works = lines.map((out, rank): Work => {
    const into = lines[(rank + size - 1) % size]!;
    return { rank, empties: [into], fills: [out], lead: 1, done: 0 };
  });
  return { lines, works };
}

function tree(size: number, isFirst: boolean) {
  const parentOf = isFirst ? firstParent : secondParent;
  const lines: SimLine[] = [];
  const up = new Map<number, SimLine>();
  const down = new Map<number, SimLine>();
  for (let rank = 0; rank < size; rank++) {
    const parent = parentOf(size, rank);
    if (parent < 0) continue;
    up.set(rank, line(rank, parent));
    down.set(rank, line(parent, rank));
    lines.push(up.get(rank)!, down.get(rank)!);
  }
  const works: Work[] = [];
  for (let rank = 0; rank < size; rank++) {
    const children = [...up.keys()].filter((child) => parentOf(size, child) === rank);
    const ups = children.map((child) => up.get(child)!);
    const downs = children.map((child) => down.get(child)!);
    const own = up.get(rank);
    if (!own) works.push({ rank, empties: ups, fills: downs, lead: 0, done: 0 });
    else {
      works.push({ rank, empties: ups, fills: [own], lead: 0, done: 0 });
      works.push({ rank, empties: [down.get(rank)!], fills: downs, lead: 0, done: 0 });
    }
  }
  return { lines, works };
}

function line(from: number, to: number): SimLine {
  const none = { frozenSend: null, frozenReceive: null };
  return { from, to, filled: 0, sent: 0, arrived: 0, emptied: 0, ...none };
}

/** Work item k fills step k and empties step k − lead. */
function mayWork(work: Work, steps: number, fault: ProxyFault): boolean {
  const { rank, empties, fills, lead, done } = work;
  if (done >= steps + lead) return false;
  if (fault.kind === "absent" && fault.rank === rank) return false;
  if (fault.kind === "gpu" && fault.rank === rank && done >= fault.step) return false;
  const hasData = done < lead || empties.every(({ arrived, emptied }) => arrived > emptied);
  const hasRoom = done >= steps || fills.every(({ filled, sent }) => filled < sent + BUFFERS);
  return hasData && hasRoom;
}

function doWork(work: Work, steps: number): void {
  if (work.done >= work.lead) for (const into of work.empties) into.emptied++;
  if (work.done < steps) for (const out of work.fills) out.filled++;
  work.done++;
}

function mayCarry(one: SimLine, fault: ProxyFault): boolean {
  const { from, to, filled, sent, arrived, emptied } = one;
  if (fault.kind === "absent" && (fault.rank === from || fault.rank === to)) return false;
  const isHere = "from" in fault && fault.from === from && fault.to === to;
  if (isHere && fault.kind !== "lost" && sent >= fault.step) return false;
  if (isHere && fault.kind === "lost" && sent >= fault.step + 2) return false;
  return filled > sent && Math.max(arrived, sent) < emptied + BUFFERS;
}

function carry(one: SimLine, fault: ProxyFault): void {
  one.sent++;
  const isHere = fault.kind === "lost" && fault.from === one.from && fault.to === one.to;
  if (!isHere || one.sent <= fault.step) one.arrived++;
}

function freeze(lines: readonly SimLine[], { rank }: { rank: number }, steps: number): void {
  for (const one of lines) {
    if (one.from === rank) one.frozenSend = sendEnd(one, steps, null);
    if (one.to === rank) one.frozenReceive = receiveEnd(one, steps);
  }
}

export function sendEnd(
  one: SimLine,
  steps: number,
  fault: ProxyFault | null,
): { finished: number; state: number } {
  if (one.frozenSend) return one.frozenSend;
  const finished = one.sent;
  if (finished >= steps) return { finished, state: 0 };
  if (one.filled <= finished) return { finished, state: P.SEND_WAITS_FOR_GPU };
  const isCredit = fault?.kind === "credit" && fault.from === one.from && fault.to === one.to;
  const hasCredit = !isCredit && finished < one.emptied + BUFFERS && !isAbsent(one.to, fault);
  return { finished, state: hasCredit ? P.SEND_WAITS_FOR_WIRE : P.SEND_WAITS_FOR_PEER };
}

export function receiveEnd(one: SimLine, steps: number): { finished: number; state: number } {
  if (one.frozenReceive) return one.frozenReceive;
  const finished = one.emptied;
  if (finished >= steps) return { finished, state: 0 };
  const hasData = one.arrived > finished;
  return { finished, state: hasData ? P.RECEIVE_WAITS_FOR_GPU : P.RECEIVE_WAITS_FOR_DATA };
}

export function isAbsent(rank: number, fault: ProxyFault | null): boolean {
  return fault?.kind === "absent" && fault.rank === rank;
}
