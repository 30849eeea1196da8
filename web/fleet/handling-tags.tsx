/** Who has an incident, at a glance. */
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { acknowledgedNow } from "../../src/model/handling.ts";
import { type Handling, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { handlings, incidents } from "../live/store.ts";
import { useAsked } from "../live/use-asked.ts";

/** Of incidents that are over, too: the line tells of open ones only. */
export function useOlderHandlings(): void {
  const { value } = useAsked<{ handlings: readonly Handling[] }>(paths.handlings);
  useEffect(() => {
    if (value === null) return;
    const older = value.handlings.map((one) => [one.incident, one] as const);
    handlings.set(new Map([...older, ...handlings.value]));
  }, [value]);
}

export function HandlingTags({ id }: { readonly id: string }): VNode | null {
  const handling = useObservable(handlings).get(id);
  const incident = useObservable(incidents).get(id);
  if (!handling) return null;
  const { assignee, mergedInto, reopened, commentCount } = handling;
  const acknowledged = incident ? acknowledgedNow(handling, incident) : handling.acknowledged;
  return (
    <>
      {reopened && <span class="tag tone-bad">reopened</span>}
      {mergedInto !== null && <span class="tag tone-open">merged</span>}
      {assignee !== null ? (
        <span class="tag tone-open">{assignee.slice(0, 40)}</span>
      ) : (
        acknowledged && (
          <span class="tag tone-open">acknowledged: {acknowledged.who.slice(0, 40)}</span>
        )
      )}
      {commentCount > 0 && (
        <span class="soft small">
          {commentCount === 1 ? "1 comment" : `${commentCount} comments`}
        </span>
      )}
    </>
  );
}
