/** One incident: the verdict in a sentence, and everything that speaks for it, as it happens. */
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { intermittentWords } from "../../src/base/text.ts";
import type { IncidentValidation } from "../../src/model/incident.ts";
import { validationWords } from "../../src/report/reasoning-words.ts";
import { Fact, headOfIncident, VerdictHead } from "../../src/report/parts/verdict-head.tsx";
import { type Incident, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { incidents } from "../live/store.ts";
import { useAsked } from "../live/use-asked.ts";
import { effectOf, jobOf, sayingOf, STATE } from "../fleet/kinds.ts";
import { PriceControl } from "../shell/price-control.tsx";
import { links } from "../shell/route.ts";
import { Loading, Problem } from "../shell/states.tsx";
import { Since, Time } from "../shell/time.tsx";
import { Waste } from "../shell/waste.tsx";
import { spanWords } from "../shell/words.ts";
import { Exports } from "./exports.tsx";
import { HandlingSection } from "./handling.tsx";
import { Audit, History } from "./history.tsx";
import { Searching } from "./searching.tsx";
import { ShareLink } from "./share-link.tsx";
import { usePicture } from "./use-picture.ts";
import { Findings, Pictures, WhatToDo, WhoIsIt, Why } from "./sections.tsx";

export function IncidentPage({ id }: { readonly id: string }): VNode {
  const live = useObservable(incidents).get(id) ?? null;
  const asked = useAsked<Incident>(paths.incident(id));
  /** What an action of the viewer's led to, before it comes by the line. */
  const [acted, setActed] = useState<Incident | null>(null);
  const incident = newest(newest(asked.value, live), acted);
  const picture = usePicture(incident);
  useHeading(incident !== null);
  // Title and breadcrumb know an older one by this, too.
  useEffect(() => {
    const { value } = asked;
    if (value?.state === "resolved" && !incidents.value.has(id))
      incidents.set(new Map([...incidents.value, [id, value]]));
  }, [asked.value]);

  if (incident === null)
    return (
      <div class="stack">
        <h1 tabIndex={-1}>
          {asked.error?.status === 404 ? "There is no such incident" : "Incident"}
        </h1>
        {asked.error === null && <Loading what="the incident" />}
        {asked.error?.status === 404 && (
          <p>
            The service does not know <code>{id.slice(0, 200)}</code>. It may be older than the
            history goes back, or another service may keep it.{" "}
            <a href={links.fleet}>Go to the fleet</a>.
          </p>
        )}
        {asked.error !== null && asked.error.status !== 404 && (
          <Problem error={asked.error} retry={asked.again} />
        )}
      </div>
    );

  const { verdict } = incident;
  const job = jobOf(incident);
  return (
    <article class="incident">
      <VerdictHead
        verdict={{ ...headOfIncident(incident), summary: sayingOf(incident) }}
        effect={effectOf(incident)}
        where={verdict?.answer?.where ?? []}
        badges={<StateTag incident={incident} />}
        about={
          job === null ? (
            "found by the machines' metrics"
          ) : (
            <>
              job <a href={links.job(job)}>{job.slice(0, 200)}</a>, run {incident.run.slice(0, 80)}
            </>
          )
        }
        time={(ms) => <Time ms={ms} />}
        facts={<Facts incident={incident} />}
      />
      {incident.state === "suspected" && <Searching incident={incident} />}
      {verdict && <WhatToDo incident={incident} verdict={verdict} onChange={setActed} />}
      {verdict && (
        <details class="fl-proof" id="proof">
          <summary>Show me the proof</summary>
          {incident.validation && <Tests of={incident.validation} />}
          <WhoIsIt incident={incident} verdict={verdict} />
          <Pictures incident={incident} asked={picture} />
          <Why verdict={verdict} />
          <Findings verdict={verdict} />
        </details>
      )}
      <div class="line incident-bar">
        <Exports incident={incident} picture={picture.value} />
        <ShareLink incident={incident} />
        <PriceControl />
      </div>
      <HandlingSection incident={incident} />
      <section class="section" aria-labelledby="history-title">
        <h2 id="history-title">What happened when</h2>
        <History incident={incident} />
        <Audit incident={incident} />
      </section>
    </article>
  );
}

function Facts({ incident }: { readonly incident: Incident }): VNode {
  const { onsetMs, resolvedMs, wastedGpuMs, relapses, intermittent } = incident;
  return (
    <>
      <Fact name={resolvedMs === null ? "For" : "Lasted"}>
        {resolvedMs === null ? <Since ms={onsetMs} /> : spanWords(resolvedMs - onsetMs)}
      </Fact>
      {wastedGpuMs > 0 && (
        <Fact name="Lost">
          <Waste gpuMs={wastedGpuMs} />
        </Fact>
      )}
      {intermittent && (
        <Fact name="Now and then">
          {intermittentWords(intermittent.slow, intermittent.of, intermittent.ratio)}
        </Fact>
      )}
      {relapses > 0 && (
        <Fact name="Came back">{relapses === 1 ? "once" : `${relapses} times`}</Fact>
      )}
    </>
  );
}

function Tests({ of }: { readonly of: IncidentValidation }): VNode {
  return (
    <p class="section">
      <b>Tests by the ranks:</b> {validationWords(of)}
      {of.costGpuMs !== null && (
        <>
          , cost <Waste gpuMs={of.costGpuMs} />
        </>
      )}
    </p>
  );
}

function StateTag({ incident }: { readonly incident: Incident }): VNode {
  const { says, tone } = STATE[incident.state];
  return <span class={`tag tone-${tone}`}>{says}</span>;
}

function newest(a: Incident | null, b: Incident | null): Incident | null {
  if (a === null || b === null) return a ?? b;
  return b.revision >= a.revision ? b : a;
}

/** The heading that had the focus is replaced when the incident is there: it moves along. */
function useHeading(isThere: boolean): void {
  const wasThere = useRef(isThere);
  useEffect(() => {
    if (!isThere || wasThere.current) return;
    wasThere.current = true;
    if (document.activeElement !== null && document.activeElement !== document.body) return;
    const heading = document.querySelector<HTMLElement>("main h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }, [isThere]);
}
