/** What is open now, the newest first: each one readable from across a room. */
import type { VNode } from "preact";
import type { Incident } from "../live/api.ts";
import { Machines } from "../shell/place.tsx";
import { links } from "../shell/route.ts";
import { useSteady } from "../shell/steady.ts";
import { Since, Time } from "../shell/time.tsx";
import { Waste } from "../shell/waste.tsx";
import { percentWords } from "../shell/words.ts";
import { Empty } from "../shell/states.tsx";
import { HandlingTags } from "./handling-tags.tsx";
import { jobOf, KIND, sayingOf, STATE } from "./kinds.ts";

const MOST_SHOWN = 30;

export function OpenIncidents({
  open,
  areAllWell,
}: {
  readonly open: readonly Incident[];
  readonly areAllWell: boolean;
}): VNode {
  const newest = [...open].sort((a, b) => b.openedMs - a.openedMs || (a.id < b.id ? -1 : 1));
  const byId = new Map(newest.map((incident) => [incident.id, incident]));
  const { order, hold } = useSteady(newest.map(({ id }) => id));
  return (
    <section class="section" aria-labelledby="open-title">
      <div class="section-head">
        <h2 id="open-title">Open now</h2>
        {open.length > 0 && <span class="soft num">{open.length}</span>}
      </div>
      {open.length === 0 ? (
        <Empty>
          <p>No open incidents.{areAllWell && " Every reporting job runs well."}</p>
        </Empty>
      ) : (
        <ul class="open-list" {...hold}>
          {order.slice(0, MOST_SHOWN).map((id) => (
            <li key={id}>
              <OpenCard incident={byId.get(id)!} />
            </li>
          ))}
        </ul>
      )}
      {open.length > MOST_SHOWN && <p class="soft">and {open.length - MOST_SHOWN} older ones</p>}
    </section>
  );
}

function OpenCard({ incident }: { readonly incident: Incident }): VNode {
  const { verdict } = incident;
  const job = jobOf(incident);
  const kind = KIND[incident.kind] ?? KIND.undetermined;
  const isSearched = incident.state === "suspected";
  const tone = isSearched ? "wait" : kind.tone;
  return (
    <a class={`open-card edge-${tone}`} data-row href={links.incident(incident.id)}>
      <span class="line">
        <span class={`tag tone-${tone}`}>{isSearched ? STATE.suspected.says : kind.says}</span>
        {incident.state === "relapsed" && <span class="tag tone-bad">{STATE.relapsed.says}</span>}
        <HandlingTags id={incident.id} />
        {job !== null && <strong class="open-job cut">{job.slice(0, 200)}</strong>}
        <span class="soft">
          for <Since ms={incident.onsetMs} />, since <Time ms={incident.onsetMs} />
        </span>
      </span>
      <span class="open-says">{sayingOf(incident)}</span>
      <span class="line open-facts">
        {incident.machines.length > 0 && <Machines names={incident.machines} />}
        {verdict && !isSearched && (
          <span class="sure">
            <span class="sure-bar" aria-hidden="true">
              <span style={{ width: `${Math.round(verdict.confidence * 100)}%` }} />
            </span>
            <span class="num">{percentWords(verdict.confidence)} sure</span>
          </span>
        )}
        {incident.wastedGpuMs > 0 && (
          <span>
            lost <Waste gpuMs={incident.wastedGpuMs} />
          </span>
        )}
      </span>
    </a>
  );
}
