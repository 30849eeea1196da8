/** A mitigation plan in words, for the terminal and the page. */
import type { Mitigation, MitigationStep, Placement } from "../model/mitigation.ts";
import { rankWords } from "../base/text.ts";
import { actionTitle } from "./action-words.ts";

/** "Rebalance the micro-batches: 145 → 128 ms per iteration" */
export function stepHead(step: MitigationStep, plan: Mitigation): string {
  const { iterationMs } = step;
  const brings =
    iterationMs === null
      ? ""
      : `: ${time(plan.nowMs)} → ${time(iterationMs)} per iteration${withoutIt(plan.healthyMs, plan.beside)}`;
  return `${actionTitle(step)}${brings}`;
}

/** " (healthy 508 ms)", or " (749 ms with rank 3 still slow; healthy 508 ms)". */
export function withoutIt(ms: number, beside: Mitigation["beside"]): string {
  if (!(ms > 0)) return "";
  return beside && beside.healthyMs < ms
    ? ` (${time(ms)} with ${rankWords(beside.ranks)} still slow; healthy ${time(beside.healthyMs)})`
    : ` (healthy ${time(ms)})`;
}

/** When it is due: what it would have saved equals what it costs. */
export function stepWhen(
  { afterIterations, overheadMs }: MitigationStep,
  plan: Mitigation,
): string {
  if (afterIterations === null) return "not needed while the earlier steps help";
  const costs = overheadMs > 0 ? `costs ${time(overheadMs)}; ` : "";
  if (afterIterations <= 3) return `${costs}at once`;
  const lasts = time(afterIterations * plan.nowMs);
  return `${costs}if it lasts longer than ${afterIterations.toLocaleString("en")} slow iterations (${lasts})`;
}

const MOST_SHOWN = 64;

/** What exactly to do; null where the head says it all. */
export function stepHow({ microBatches, swaps, exclude, placement }: MitigationStep): string[] {
  const how: string[] = [];
  if (swaps && swaps.length > 0)
    how.push(
      `swap ${shown(
        swaps.map(([a, b]) => `${a} ↔ ${b}`),
        ", then ",
      )}`,
    );
  if (placement) how.push(`at the next restart: ${placementWords(placement)}`);
  if (microBatches) how.push(`micro-batches by replica: ${counts(microBatches)}`);
  if (exclude && exclude.length > 0) how.push(`leave out ${shown(exclude, ", ")}`);
  return how;
}

/** Whole machines in a row are an order of nodes, as torchrun and pods have it; else each rank has its line in a host file. */
function placementWords({ hosts }: Placement): string {
  const nodes = hosts.filter((host, rank) => host !== hosts[rank - 1]);
  return new Set(nodes).size === nodes.length
    ? `start the nodes in the order ${shown(nodes, ", ")}`
    : "give ranks their machines by a host file, one line per rank (--json: placement.hosts)";
}

/** "8 8 8 5", or "8 each, replica 5: 5" where there are many. */
export function counts(microBatches: readonly number[]): string {
  if (microBatches.length <= 16) return microBatches.join(" ");
  const times = new Map<number, number>();
  for (const count of microBatches) times.set(count, (times.get(count) ?? 0) + 1);
  const [usual] = [...times].sort((a, b) => b[1] - a[1])[0]!;
  const others = microBatches.flatMap((count, replica) =>
    count === usual ? [] : [`replica ${replica}: ${count}`],
  );
  return others.length === 0 ? `${usual} each` : `${usual} each, but ${shown(others, ", ")}`;
}

function shown(items: readonly string[], by: string): string {
  const more = items.length - MOST_SHOWN;
  return (
    items.slice(0, MOST_SHOWN).join(by) + (more > 0 ? ` and ${more} more (--json has all)` : "")
  );
}

/** "145 ms", "1.6 s", "30 min" */
export function time(ms: number): string {
  if (ms < 1000) return `${ms >= 100 ? Math.round(ms) : Number(ms.toPrecision(3))} ms`;
  if (ms < 120_000) return `${Number((ms / 1000).toPrecision(3))} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${Number((ms / 3_600_000).toPrecision(3))} h`;
}

/** The whole plan as lines without an indent. */
export function planLines(plan: Mitigation): string[] {
  if (plan.steps.length === 0)
    return [
      "moving or redistributing work does not make iterations shorter: wait, or fix the fault",
    ];
  return plan.steps.flatMap((step) => [
    stepHead(step, plan),
    ...[stepWhen(step, plan), ...stepHow(step)].map((line) => `  ${line}`),
  ]);
}
