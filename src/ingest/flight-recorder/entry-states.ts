/**
 * What the entries of a dump really say. PyTorch moves the state of an entry through the CUDA events of its work, and not
 * every entry has some: the sends and receives of a batch (batch_isend_irecv; since format 2.7 also the collectives of a
 * coalescing manager) are recorded without any and stay "scheduled" for ever (pytorch issue 137969). The batch has one
 * closing entry, "coalesced", with the same numbers, and that one moves. Every row that leaves here is one operator with
 * the state and the times it really had, so that no method has to know. docs/formats/flight-recorder.md has the table.
 */
import type { DumpGroup } from "../../model/operators.ts";
import { COMPLETED, SCHEDULED } from "../../model/operators.ts";
import type { Columns } from "../operator-columns.ts";

/** What an operator's name tells. */
export interface NameFacts {
  /** Group rank of the other side; -1 for what is no single send or receive. */
  readonly peer: number;
  readonly isSend: number;
  /** Whether it is the closing entry of a batch: "coalesced", "ALLGATHER_coalesced". */
  readonly closes: boolean;
}

interface Settled {
  /** The rows that are operators, ascending; the others are a batch's closing entry, or a part of a collective. */
  readonly rows: Int32Array;
  /** Operators that count as completed although nothing says whether the last of them ended. */
  readonly unknownEnds: number;
  /** Whether completed entries were left out when the dump was written. */
  readonly onlyActive: boolean;
}

/** `nameOf` gives a coalesced collective its name: by its first part, and its closing entry. */
export function settleEntries(
  t: Columns,
  count: number,
  names: readonly NameFacts[],
  groups: readonly DumpGroup[],
  nameOf: (part: number, closing: number) => number,
): Settled {
  const carriesP2p = new Uint8Array(groups.length);
  for (let i = 0; i < count; i++) if (t.isP2p[i] === 1) carriesP2p[t.group[i]!] = 1;
  const batches = settleBatches(t, count, names, carriesP2p, nameOf);
  settleByCounters(t, count, groups, carriesP2p);
  const onlyActive = count > 0 && t.state.indexOf(COMPLETED) < 0;
  settleByOrder(t, count, batches);
  const unknownEnds = settleOpenBatches(t, count, groups, batches, onlyActive);
  const rows = new Int32Array(count);
  let kept = 0;
  for (let i = 0; i < count; i++) {
    if (batches.role[i] === DROPPED) continue;
    rows[kept++] = i;
    // Before PyTorch 2.6 a batch has a collective's number; P2P numbers need not match the peer's.
    if (batches.role[i] === PART && t.p2pSeq[i] === 0) t.p2pSeq[i] = t.seq[i]!;
  }
  return { rows: rows.subarray(0, kept), unknownEnds, onlyActive };
}

/** Of each row: an operator of its own, a part of a batch, or no operator at all. */
const SINGLE = 0;
const PART = 1;
const DROPPED = 2;

interface Batches {
  readonly role: Uint8Array;
  /** Parts whose closing entry the dump has; what it says of them is certain. */
  readonly isClosed: Uint8Array;
  /** Groups in which sends and receives come in batches. */
  readonly used: Uint8Array;
}

/**
 * The parts of a batch and its closing entry have both numbers in common, and nothing of their group stands between them:
 * the number that a batch takes is p2p_seq_id, before PyTorch 2.6 collective_seq_id (pytorch PR 135132).
 */
function settleBatches(
  t: Columns,
  count: number,
  names: readonly NameFacts[],
  carriesP2p: Uint8Array,
  nameOf: (part: number, closing: number) => number,
): Batches {
  const role = new Uint8Array(count);
  const isClosed = new Uint8Array(count);
  const used = new Uint8Array(carriesP2p.length);
  /** By group: the latest entries that share their numbers. */
  const runs: number[][] = Array.from(carriesP2p, () => []);
  for (let i = 0; i < count; i++) {
    const group = t.group[i]!;
    const run = runs[group]!;
    const before = run[0] ?? i;
    if (t.seq[before] !== t.seq[i] || t.p2pSeq[before] !== t.p2pSeq[i]) run.length = 0;
    if (!names[t.name[i]!]!.closes) {
      run.push(i);
      // A send or receive of its own has a number of its own.
      if (t.isP2p[i] !== 1 || run.length < 2 || t.seq[i]! + t.p2pSeq[i]! <= 0) continue;
      used[group] = 1;
      for (const part of run) role[part] = PART;
      continue;
    }
    const parts = run.splice(0);
    if (parts.some((part) => t.isP2p[part] === 1)) {
      closeTransfers(t, parts, i);
      used[group] = 1;
      for (const part of parts) {
        role[part] = PART;
        isClosed[part] = 1;
      }
      role[i] = DROPPED;
    } else if (parts.length > 0) {
      closeCollective(t, parts, i, nameOf);
      for (const part of parts) role[part] = DROPPED;
    } else if (carriesP2p[group] === 1 && t.seq[i] === 0) {
      // Its parts were overwritten: it opens the ring. A collective has a number.
      role[i] = DROPPED;
    }
  }
  return { role, isClosed, used };
}

/**
 * A batch ends as a whole, so its sends and receives have its state and its times. Its duration must count once: the
 * last receive has it, because receiving is what waits for others; the rest have none.
 */
function closeTransfers(t: Columns, parts: readonly number[], closing: number): void {
  const durationMs = t.durationMs[closing]!;
  const carrier = parts.findLast((part) => t.isSend[part] === 0) ?? parts.at(-1)!;
  for (const part of parts) {
    t.state[part] = t.state[closing]!;
    t.startedNs[part] = t.startedNs[closing]!;
    t.completedNs[part] = t.completedNs[closing]!;
    t.durationMs[part] = part === carrier || Number.isNaN(durationMs) ? durationMs : 0;
  }
}

/** One call to NCCL, one number, one operator: the closing entry, with the sizes of all its parts. */
function closeCollective(
  t: Columns,
  parts: readonly number[],
  closing: number,
  nameOf: (part: number, closing: number) => number,
): void {
  const sum = (column: Float64Array): number =>
    parts.reduce((total, part) => total + column[part]!, 0);
  t.inputNumel[closing] = sum(t.inputNumel);
  t.outputNumel[closing] = sum(t.outputNumel);
  t.dtype[closing] = t.dtype[parts[0]!]!;
  t.name[closing] = nameOf(parts[0]!, closing);
  t.createdNs[closing] = t.createdNs[parts[0]!]!;
}

/** Gloo never moves the state of an entry. Its counter says how far it is. */
function settleByCounters(
  t: Columns,
  count: number,
  groups: readonly DumpGroup[],
  carriesP2p: Uint8Array,
): void {
  for (let i = 0; i < count; i++) {
    const group = t.group[i]!;
    // A group that carries P2P counts both kinds in one number: no use.
    if (carriesP2p[group] === 1 || t.state[i] === COMPLETED) continue;
    if (t.seq[i]! <= groups[group]!.completed) t.state[i] = COMPLETED;
  }
}

/**
 * NCCL runs what is issued to one communicator in the order of issue, so nothing is pending before something that is
 * complete. Collectives and batches share their group's communicator; a send or receive of its own has one with its peer.
 */
function settleByOrder(t: Columns, count: number, { role, used }: Batches): void {
  const laterEnded = new Set<number>();
  for (let i = count - 1; i >= 0; i--) {
    if (role[i] === DROPPED) continue;
    const group = t.group[i]!;
    const isAlone = t.isP2p[i] === 1 && role[i] === SINGLE && used[group] === 0;
    // Below 2^53: peers up to 2^20.
    const line = isAlone ? (t.peer[i]! + 2) * 2 + t.isSend[i]! : 0;
    const key = line * 2 ** 24 + group;
    if (t.state[i] === COMPLETED) laterEnded.add(key);
    else if (laterEnded.has(key)) t.state[i] = COMPLETED;
  }
}

/**
 * Parts of a batch without its closing entry. A dump of active entries only leaves the closing entry out because the
 * batch has ended, and keeps the parts, which never end. In a whole dump it is a batch that is being put together,
 * or one captured into a CUDA graph. Neither is evidence of a hang: they count as completed. Where a batch of one
 * leaves no other trace, the group's counter tells it from a send that is pending; without a counter, what follows it.
 */
function settleOpenBatches(
  t: Columns,
  count: number,
  groups: readonly DumpGroup[],
  { role, isClosed, used }: Batches,
  onlyActive: boolean,
): number {
  // The counter is of P2P operators where their numbers are the only ones that the group has.
  const lastSeq = new Int32Array(groups.length);
  const lastP2p = new Int32Array(groups.length);
  for (let i = 0; i < count; i++) {
    lastSeq[t.group[i]!] = t.seq[i]!;
    lastP2p[t.group[i]!] = t.p2pSeq[i]!;
  }
  /** Groups without a counter, in which something was left out behind a transfer. */
  const hasGaps = new Set<number>();
  let unknown = 0;
  for (let i = 0; i < count; i++) {
    const group = t.group[i]!;
    if (t.isP2p[i] !== 1 || t.state[i] !== SCHEDULED || isClosed[i] === 1 || role[i] === DROPPED)
      continue;
    const number = Math.max(
      lastSeq[group] === 0 ? t.p2pSeq[i]! : 0,
      lastP2p[group] === 0 ? t.seq[i]! : 0,
    );
    const { completed: counter, ranks } = groups[group]!;
    const isCounted = number > 0 && number <= counter;
    const isPart = role[i] === PART || used[group] === 1;
    // What closes a batch is recorded right behind it: something else there, and it is none.
    const next = i + 1 < count ? t.recordId[i + 1]! : t.recordId[i]! + 1;
    if (counter < 0 && next > t.recordId[i]! + 1) hasGaps.add(group);
    if (!isPart && !(onlyActive && (isCounted || hasGaps.has(group)))) continue;
    t.state[i] = COMPLETED;
    // Single transfers with different peers do not end in the order of their numbers.
    const isCertain = isCounted && (isPart || ranks?.length === 2);
    if (!isCertain) unknown++;
  }
  return unknown;
}
