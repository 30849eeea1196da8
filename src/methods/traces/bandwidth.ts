/**
 * ③ Bus bandwidth of collectives (FLARE §5.2.2: from "the final communication kernels issued across all participating
 * ranks"). The kernel of the last rank to arrive does not wait: of the members' kernels of one collective it is the
 * shortest, which needs no common clock, as comparing start times would. Bus bandwidth is NCCL's: bytes over time,
 * times what the algorithm moves over each link (nccl-tests, doc/PERFORMANCE.md).
 */
import { getOrInsert } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import { COMMUNICATION } from "../../model/kernels.ts";
import type { BandwidthRow } from "../../model/trace-profile.ts";
import { bytesOf } from "./gemm-shape.ts";
import type { Measured } from "./measured.ts";

/** Of a row, in profiles that have it; baselines stored earlier do not. */
export interface LeastTimes {
  /** The shortest transfer of a step, milliseconds: of the step in which it is shortest, and longest. */
  readonly leastMs?: readonly [fastest: number, slowest: number];
}

/** Rank → its rows: each rank has those of its groups. */
export function bandwidthRows(
  ranks: ReadonlyMap<Rank, readonly Measured[]>,
): Map<Rank, (BandwidthRow & LeastTimes)[]> {
  const calls = new Map<string, Call>();
  const stepsOf = new Map<Rank, number>();
  for (const [rank, traces] of ranks) {
    for (const one of traces) {
      stepsOf.set(rank, (stepsOf.get(rank) ?? 0) + one.steps.startNs.length);
      collect(rank, one, calls);
    }
  }
  const rows = new Map<
    string,
    { call: Call; gbps: number[]; byStep: Map<number, number[]>; ms: number }
  >();
  for (const call of calls.values()) {
    const { operation, group, members, bytes, shortestNs } = call;
    const isWhole = call.seen.size === members.length;
    if (shortestNs <= 0 || bytes <= 0 || members.length < 2) continue;
    const key = [operation, group, members.join(), bytes, isWhole].join("|");
    const row = rows.get(key) ?? { call, gbps: [], byStep: new Map<number, number[]>(), ms: 0 };
    const gbps = (bytes / shortestNs) * busFactor(operation, members.length);
    row.gbps.push(gbps);
    getOrInsert(row.byStep, call.step, () => []).push(gbps);
    row.ms += shortestNs / 1e6;
    rows.set(key, row);
  }
  const byRank = new Map<Rank, (BandwidthRow & LeastTimes)[]>();
  for (const { call, gbps, byStep, ms } of rows.values()) {
    const medians = [...byStep.values()].map((list) => median(list));
    const msOf = (rate: number): number =>
      ((call.bytes / rate) * busFactor(call.operation, call.members.length)) / 1e6;
    const least = [...byStep.values()].map((list) => msOf(Math.max(...list)));
    for (const rank of call.seen) {
      const list = byRank.get(rank) ?? [];
      list.push({
        collective: call.operation,
        group: call.group,
        groupRanks: call.members,
        bytes: call.bytes,
        busGBps: median(gbps),
        stepGBps: [Math.min(...medians), Math.max(...medians)],
        count: gbps.length,
        isWhole: call.seen.size === call.members.length,
        meanMs: ms / gbps.length,
        msPerStep: ms / Math.max(1, stepsOf.get(rank)!),
        leastMs: [Math.min(...least), Math.max(...least)],
      });
      byRank.set(rank, list);
    }
  }
  for (const list of byRank.values()) list.sort((a, b) => b.msPerStep - a.msPerStep);
  return byRank;
}

interface Call {
  readonly operation: string;
  readonly group: string;
  readonly members: readonly Rank[];
  readonly bytes: number;
  readonly step: number;
  shortestNs: number;
  readonly seen: Set<Rank>;
}

function collect(rank: Rank, { trace, step }: Measured, calls: Map<string, Call>): void {
  const { gpu, collectives, groups, names } = trace;
  const counted = new Map<string, number>();
  for (let i = 0; i < gpu.count; i++) {
    const row = gpu.collective[i]!;
    if (gpu.kind[i] !== COMMUNICATION || row < 0 || step[i]! < 0) continue;
    const group = groups[collectives.group[row]!];
    if (!group?.ranks) continue;
    const operation = names[collectives.operation[row]!]!;
    const peer = collectives.peer[row]!;
    const isP2p = peer >= 0 && /^(?:send|recv)$/.test(operation);
    const ends = operation === "send" ? [rank, peer] : [peer, rank];
    const members = isP2p ? ends : group.ranks;
    const bytes = sizeBytes(trace, row, operation);
    const what = isP2p ? "send/recv" : operation;
    const place = `${group.name}|${members.join()}|${what}|${bytes}`;
    // The group's own numbers match wherever traces begin. Point-to-point calls are counted by each side for itself.
    const seq = collectives.seq[row]!;
    const order = counted.get(place) ?? 0;
    counted.set(place, order + 1);
    const key = `${place}|${isP2p || Number.isNaN(seq) ? `#${order}` : seq}`;
    const durNs = gpu.durNs[i]!;
    const known = calls.get(key);
    if (known) {
      known.shortestNs = Math.min(known.shortestNs, durNs);
      known.seen.add(rank);
    } else {
      calls.set(key, {
        operation: what,
        group: group.desc === "" ? group.name : group.desc,
        members,
        bytes,
        step: step[i]!,
        shortestNs: durNs,
        seen: new Set([rank]),
      });
    }
  }
}

/** The size that NCCL's formulas mean: of the larger side. */
function sizeBytes(
  { collectives, names }: Measured["trace"],
  row: number,
  operation: string,
): number {
  const each = bytesOf(names[collectives.dtype[row]!] ?? "");
  const input = collectives.inputNumel[row]!;
  const output = collectives.outputNumel[row]!;
  const elements = /gather/i.test(operation)
    ? output
    : /scatter/i.test(operation)
      ? input
      : Math.max(input, output);
  return each * (Number.isNaN(elements) ? 0 : elements);
}

export function busFactor(operation: string, n: number): number {
  if (/all_?reduce/i.test(operation)) return (2 * (n - 1)) / n;
  if (/gather|scatter|to_?all/i.test(operation)) return (n - 1) / n;
  return 1;
}
