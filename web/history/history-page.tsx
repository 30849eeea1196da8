/** All incidents that fit some words: of a job, of a machine, of a cause; what was lost on which day. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { ask, type Incident } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { incidents as known, jobs } from "../live/store.ts";
import { useAsked } from "../live/use-asked.ts";
import { useOlderHandlings } from "../fleet/handling-tags.tsx";
import { changesOf, jobOf } from "../fleet/kinds.ts";
import { IncidentRow } from "../fleet/resolved.tsx";
import { links } from "../shell/route.ts";
import { Empty, Loading, Problem } from "../shell/states.tsx";
import { Waste } from "../shell/waste.tsx";
import { thousands } from "../shell/words.ts";
import { byDay, type Day, matching, mostNamed, type Named } from "./matching.ts";
import { SearchBox } from "./search-box.tsx";

const MOST_ASKED = 2000;
const MOST_SHOWN = 200;
const MOST_DAYS = 31;
const MOST_NAMED = 12;

export function HistoryPage({ words }: { readonly words: string }): VNode {
  const open = useObservable(known);
  useOlderHandlings();
  const { value, error, again } = useAsked("/incidents?most=500", [changesOf(open)], askPages);
  const found = useMemo(
    () =>
      matching(
        (value?.incidents ?? []).map((one) => open.get(one.id) ?? one),
        words,
      ),
    [value, words, open],
  );
  const shown = useMemo(() => found.toSorted((a, b) => b.onsetMs - a.onsetMs), [found]);
  return (
    <div class="stack history">
      <h1 tabIndex={-1}>Incidents</h1>
      <SearchBox words={words} />
      {value === null && error === null && <Loading what="incidents" />}
      {value === null && error !== null && <Problem error={error} retry={again} />}
      {value !== null && (
        <>
          <p class="soft" role="status">
            {thousands(found.length)} of {thousands(value.incidents.length)} incidents
            {value.incidents.length === MOST_ASKED && " (the newest; older ones are not searched)"}
          </p>
          <Jobs words={words} />
          {found.length === 0 && <Empty>No incident fits these words.</Empty>}
          {found.length > 0 && (
            <div class="history-columns">
              <section aria-labelledby="found-title">
                <h2 id="found-title">Newest first</h2>
                <ul class="rows">
                  {shown.slice(0, MOST_SHOWN).map((incident) => (
                    <li key={incident.id}>
                      <IncidentRow incident={incident} />
                    </li>
                  ))}
                </ul>
                {shown.length > MOST_SHOWN && (
                  <p class="soft">and {thousands(shown.length - MOST_SHOWN)} older ones</p>
                )}
              </section>
              <div class="stack">
                <Losses days={byDay(found)} />
                <Names
                  title="By machine"
                  names={mostNamed(found, ({ machines }) => machines, MOST_NAMED)}
                />
                <Names
                  title="By job"
                  names={mostNamed(found, (one) => [jobOf(one) ?? []].flat(), MOST_NAMED)}
                />
              </div>
            </div>
          )}
        </>
      )}
    </div>
  );
}

/** One page after the other: the service answers others in between. */
async function askPages(
  path: string,
  init: RequestInit,
): Promise<{ readonly incidents: readonly Incident[] }> {
  const incidents: Incident[] = [];
  let from = "";
  do {
    const page = await ask<{ incidents: Incident[]; next: string | null }>(path + from, init);
    incidents.push(...page.incidents);
    from = page.next === null ? "" : `&before=${encodeURIComponent(page.next)}`;
  } while (from !== "" && incidents.length < MOST_ASKED);
  return { incidents };
}

/** Jobs that report now and have the words in their name. */
function Jobs({ words }: { readonly words: string }): VNode | null {
  const wanted = words.toLowerCase().trim();
  const all = useObservable(jobs) ?? [];
  const fit = wanted === "" ? [] : all.filter(({ job }) => job.toLowerCase().includes(wanted));
  if (fit.length === 0) return null;
  return (
    <p class="line">
      <span class="soft">{fit.length === 1 ? "Job" : "Jobs"}:</span>
      {fit.slice(0, MOST_NAMED).map(({ job }) => (
        <a key={job} class="cut" href={links.job(job)}>
          {job.slice(0, 200)}
        </a>
      ))}
    </p>
  );
}

function Losses({ days }: { readonly days: readonly Day[] }): VNode {
  const most = Math.max(1, ...days.map(({ wastedGpuMs }) => wastedGpuMs));
  return (
    <section aria-labelledby="losses-title">
      <h2 id="losses-title">Lost by day (UTC)</h2>
      <ul class="rows">
        {days.slice(0, MOST_DAYS).map(({ day, incidents, wastedGpuMs }) => (
          <li key={day} class="offender">
            <span class="offender-bar" aria-hidden="true">
              <span style={{ width: `${(100 * wastedGpuMs) / most}%` }} />
            </span>
            <span class="offender-words">
              <span class="num">{day}</span> <Waste gpuMs={wastedGpuMs} />
              <span class="soft small">
                {incidents === 1 ? "one incident" : `${incidents} incidents`}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Names({
  title,
  names,
}: {
  readonly title: string;
  readonly names: readonly Named[];
}): VNode | null {
  if (names.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul class="rows">
        {names.map(({ name, incidents }) => (
          <li key={name} class="line">
            <a class="cut" href={links.history(name)}>
              {name.slice(0, 200)}
            </a>
            <span class="soft num">{incidents}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
