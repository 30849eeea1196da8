/** Moments and durations, as everything on the page shows them. */
import type { VNode } from "preact";
import { now } from "../live/now.ts";
import { useObservable } from "../live/observable.ts";
import { durationWords, spanWords } from "./words.ts";
import { exactWords, timeWords, zone } from "./zone.ts";

/** A moment in the viewer's zone or in UTC, whichever is chosen; the title says both. */
export function Time({ ms }: { readonly ms: number }): VNode {
  const chosen = useObservable(zone);
  const isDate = Number.isFinite(ms) && Math.abs(ms) < 8.64e15;
  return (
    <time
      class="num"
      {...(isDate ? { dateTime: new Date(ms).toISOString() } : {})}
      title={exactWords(ms)}
    >
      {timeWords(ms, chosen, Date.now())}
    </time>
  );
}

/** How long something takes: "850 ms", "12.4 s", "3 min 05 s"; a dash where it is not known. */
export function Duration({ ms }: { readonly ms: number | null }): VNode {
  return <span class="num">{ms === null ? "–" : durationWords(ms)}</span>;
}

/** How long it has been, counting on: "3 min 05 s". */
export function Since({ ms }: { readonly ms: number }): VNode {
  const at = useObservable(now);
  return (
    <span class="num" title={exactWords(ms)}>
      {spanWords(at - ms)}
    </span>
  );
}
