/** What was wrong lately and is over. */
import type { VNode } from "preact";
import type { Incident } from "../live/api.ts";
import { useAsked } from "../live/use-asked.ts";
import { links } from "../shell/route.ts";
import { Empty, Loading, Problem } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";
import { Waste } from "../shell/waste.tsx";
import { spanWords } from "../shell/words.ts";
import { HandlingTags, useOlderHandlings } from "./handling-tags.tsx";
import { jobOf, KIND, sayingOf } from "./kinds.ts";

const MOST_SHOWN = 12;
/** Open ones are among those asked for. */
const MOST_ASKED = 60;

export function Resolved({ changes }: { readonly changes: string }): VNode {
  useOlderHandlings();
  const { value, error, again } = useAsked<{ incidents: readonly Incident[] }>(
    `/incidents?most=${MOST_ASKED}`,
    [changes],
  );
  const ended = (value?.incidents ?? [])
    .filter(({ state }) => state === "resolved")
    .sort((a, b) => (b.resolvedMs ?? 0) - (a.resolvedMs ?? 0))
    .slice(0, MOST_SHOWN);
  return (
    <section class="section" aria-labelledby="resolved-title">
      <div class="section-head">
        <h2 id="resolved-title">Recently resolved</h2>
        <a href={links.history("")}>All incidents</a>
      </div>
      {value === null && error === null && <Loading what="incidents" />}
      {value === null && error !== null && <Problem error={error} retry={again} />}
      {value !== null && ended.length === 0 && <Empty>Nothing yet.</Empty>}
      {ended.length > 0 && (
        <ul class="rows">
          {ended.map((incident) => (
            <li key={incident.id}>
              <IncidentRow incident={incident} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** One that may be over, in two lines. */
export function IncidentRow({ incident }: { readonly incident: Incident }): VNode {
  const job = jobOf(incident);
  const isOver = incident.state === "resolved";
  const endMs = incident.resolvedMs ?? incident.changedMs;
  return (
    <a class="resolved" data-row href={links.incident(incident.id)}>
      <span class="line small">
        <span class="tag tone-open">{(KIND[incident.kind] ?? KIND.undetermined).says}</span>
        <HandlingTags id={incident.id} />
        {job !== null && <span class="cut resolved-job">{job.slice(0, 120)}</span>}
        {isOver ? (
          <span class="soft">
            ended <Time ms={endMs} />, lasted {spanWords(endMs - incident.onsetMs)}
          </span>
        ) : (
          <span class="tone-bad">
            open, since <Time ms={incident.onsetMs} />
          </span>
        )}
        {incident.wastedGpuMs > 0 && (
          <span class="soft">
            lost <Waste gpuMs={incident.wastedGpuMs} />
          </span>
        )}
      </span>
      <span class="resolved-says">{sayingOf(incident)}</span>
    </a>
  );
}
