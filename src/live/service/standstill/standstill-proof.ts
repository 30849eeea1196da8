/**
 * Whether the evidence of a job that is silent proves that it stands still, or shows that it pauses: a rank that saves a
 * checkpoint keeps all others waiting in a collective, as one that hangs does.
 */
import type { Cause } from "../../../model/cause.ts";
import type { Verdict } from "../../../model/verdict.ts";

/** Less is no proof a few seconds after the last iteration. */
const SURE = 0.5;
/** A rank that pauses looks like one of these: it does something else than to communicate, for a while. */
const LIKE_A_PAUSE: ReadonlySet<Cause> = new Set<Cause>([
  "cpu-stall",
  "dataloader",
  "garbage-collection",
  "host-memory",
  "memory-management",
  "storage",
  "synchronization",
  "user-program",
  "unknown",
]);

export function provesStandstill(verdict: Verdict): boolean {
  if (verdict.confidence < SURE || looksLikePause(verdict) || shownPause(verdict) !== null)
    return false;
  return verdict.kind === "hang" || verdict.kind === "crash";
}

/** What explains the silence: "rank 0: checkpoint (torch/serialization.py:629 save)"; null where nothing does. */
export function explainedPause(verdict: Verdict): string | null {
  return looksLikePause(verdict) ? shownPause(verdict) : null;
}

/** Of a standstill that ended by itself: it may have been a checkpoint, and the next one will be another. */
export function looksLikePause({ suspects: [first] }: Verdict): boolean {
  return first === undefined || LIKE_A_PAUSE.has(first.cause);
}

function shownPause({ findings }: Verdict): string | null {
  for (const { data } of findings) {
    if (data.fact !== "python-stacks" || data.pauses === undefined) continue;
    const [first] = Object.entries(data.pauses);
    if (first) return `rank ${first[0]}: ${first[1]}`;
  }
  return null;
}
