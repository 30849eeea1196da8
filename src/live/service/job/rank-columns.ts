/** The latest complete iteration of every rank, as columns. Asked for each second, of ten thousand ranks. */
import { rankLayout, type RankLayout } from "./rank-layout.ts";
import type { ConnectedAgents } from "./job-events.ts";
import type { JobRun } from "./job-run.ts";
import type { RankColumns } from "../view.ts";

/** Degrees of the GPUs of a layout's ranks; NaN where nobody knows. */
export type TemperaturesOf = (layout: RankLayout) => Float32Array;

/** A job that stands still keeps the values of its last iteration. */
export function rankColumns(
  run: JobRun,
  connected: ConnectedAgents,
  temperaturesOf: TemperaturesOf,
): RankColumns {
  const layout = rankLayout(run);
  const { rank, machine, gpu, stage, groups, pipeline, data, tensor } = layout;
  const count = rank.length;
  const iteration = new Float64Array(count);
  const durationMs = new Float32Array(count).fill(NaN);
  const ownMs = new Float32Array(count).fill(NaN);
  const waitMs = new Float32Array(count).fill(NaN);
  const isLatest = new Uint8Array(count);
  const latest = run.lastIteration;
  const row = run.points.rowOf(latest) ?? run.points.rowOf(run.points.newest);
  for (let k = 0; k < count; k++) {
    const slot = run.points.slotOf(rank[k]!);
    const last = slot < 0 ? NaN : run.points.lastAt(slot);
    iteration[k] = last;
    if (slot < 0) continue;
    isLatest[k] = row && !Number.isNaN(row.durationMs[slot]!) ? 1 : 0;
    // One that has left: what it told last.
    const own = isLatest[k] ? row : run.points.rowOf(last);
    if (!own) continue;
    const inside = own.collectiveMs[slot]! + (own.sendMs[slot]! || 0) + (own.recvMs[slot]! || 0);
    // Sums of operators that run beside each other may exceed the iteration: nobody waits longer than it lasts.
    durationMs[k] = own.durationMs[slot]!;
    waitMs[k] = Math.min(inside, own.durationMs[slot]!);
    ownMs[k] = own.durationMs[slot]! - waitMs[k]!;
  }
  return {
    layout: layout.revision,
    groups,
    rank,
    machine,
    gpu,
    stage,
    pipeline,
    data,
    tensor,
    iteration,
    durationMs,
    ownMs,
    waitMs,
    lateMs: lateness(ownMs, isLatest, layout),
    temperature: temperaturesOf(layout),
    state: rank.map((one) => {
      const held = run.ranks.get(one);
      if (!held) return "silent";
      return held.state === "running" && !connected.has(held.agent) ? "silent" : held.state;
    }),
  };
}

/** Own time beyond the middle one of the same stage: stages do different work, ranks of one do the same (Holmes §4.1). */
function lateness(
  ownMs: Float32Array,
  isLatest: Uint8Array,
  { peers, peerGroups }: RankLayout,
): Float32Array {
  const sizes = new Uint32Array(peerGroups + 1);
  const isUsed = (k: number): boolean => isLatest[k] === 1 && !Number.isNaN(ownMs[k]!);
  for (let k = 0; k < peers.length; k++) if (isUsed(k)) sizes[peers[k]! + 1]!++;
  for (let g = 0; g < peerGroups; g++) sizes[g + 1]! += sizes[g]!;
  const sorted = new Float32Array(sizes[peerGroups]!);
  const next = sizes.slice();
  for (let k = 0; k < peers.length; k++) if (isUsed(k)) sorted[next[peers[k]!]!++] = ownMs[k]!;
  const middle = Float32Array.from({ length: peerGroups }, (_, g) => {
    const own = sorted.subarray(sizes[g], sizes[g + 1]).sort();
    return own.length === 0 ? NaN : own[own.length >> 1]!;
  });
  return ownMs.map((ms, k) => {
    const late = ms - middle[peers[k]!]!;
    return late < 0 ? 0 : late;
  });
}
