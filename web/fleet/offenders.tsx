/** Machines that were at fault more than once, or at all, in 30 days. */
import type { VNode } from "preact";
import type { Offender } from "../live/api.ts";
import { useAsked } from "../live/use-asked.ts";
import { Machine } from "../shell/place.tsx";
import { links } from "../shell/route.ts";
import { Empty, Loading, Problem } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";

const MOST_SHOWN = 12;

/** `changes`: whatever changes when incidents do. */
export function Offenders({ changes }: { readonly changes: string }): VNode {
  const { value, error, again } = useAsked<{ offenders: readonly Offender[] }>(
    `/offenders?days=30&most=${MOST_SHOWN}`,
    [changes],
  );
  return (
    <section class="section" aria-labelledby="offenders-title">
      <div class="section-head">
        <h2 id="offenders-title">Faulty machines, last 30 days</h2>
      </div>
      {value === null && error === null && <Loading what="machines" />}
      {value === null && error !== null && <Problem error={error} retry={again} />}
      {value?.offenders.length === 0 && <Empty>No faulty machine.</Empty>}
      {value !== null && value.offenders.length > 0 && (
        <ul class="rows">
          {value.offenders.map((offender) => (
            <OffenderRow
              key={offender.machine}
              offender={offender}
              most={value.offenders[0]!.incidents}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

function OffenderRow({
  offender,
  most,
}: {
  readonly offender: Offender;
  readonly most: number;
}): VNode {
  const { machine, incidents, jobs, lastMs, causes } = offender;
  return (
    <li class="offender">
      <span class="offender-bar" aria-hidden="true">
        <span style={{ width: `${(100 * incidents) / Math.max(1, most)}%` }} />
      </span>
      <span class="offender-words">
        <a href={links.history(machine)}>
          <Machine name={machine} />
        </a>{" "}
        <span>
          <strong class="num">{incidents}</strong> {incidents === 1 ? "incident" : "incidents"} in{" "}
          {jobs === 1 ? "one job" : `${jobs} jobs`}
        </span>
        <span class="soft small">
          {causes.slice(0, 4).join(", ")}
          {causes.length > 0 && " · "}last seen <Time ms={lastMs} />
        </span>
      </span>
    </li>
  );
}
