/** Everything that is watched: what is open, how each job does, which machines are at fault again and again. */
import type { VNode } from "preact";
import type { Incident, JobView } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { handlings, incidents, jobs, line } from "../live/store.ts";
import { PriceControl } from "../shell/price-control.tsx";
import { useWaste } from "../shell/price.ts";
import { Empty, Loading } from "../shell/states.tsx";
import { links } from "../shell/route.ts";
import { openOf } from "../shell/title.ts";
import { thousands } from "../shell/words.ts";
import { SearchBox } from "../history/search-box.tsx";
import { JobsTable } from "./jobs-table.tsx";
import { changesOf } from "./kinds.ts";
import { Offenders } from "./offenders.tsx";
import { OpenIncidents } from "./open-incidents.tsx";
import { Resolved } from "./resolved.tsx";

const WELL: readonly JobView["health"][] = ["healthy", "learning", "ended"];

export function FleetPage(): VNode {
  const all = useObservable(jobs);
  const known = useObservable(incidents);
  const { state } = useObservable(line);
  // Somebody may reopen one.
  useObservable(handlings);
  const open = openOf(known);
  const changes = changesOf(known);
  return (
    <>
      <div class="fleet-head">
        <h1 tabIndex={-1}>Fleet</h1>
        <SearchBox />
        <a href={links.site}>Mutes, digest</a>
        <PriceControl />
      </div>
      {all === null ? (
        <div class="section">
          {state === "refused" ? (
            <Empty>
              <p>You need a token to see the fleet. Enter it in the form above.</p>
            </Empty>
          ) : (
            <Loading what="the fleet" />
          )}
        </div>
      ) : all.length === 0 && open.length === 0 ? (
        <NoAgents />
      ) : (
        <>
          <Figures jobs={all} open={open} />
          <OpenIncidents
            open={open}
            areAllWell={all.every(({ health }) => WELL.includes(health))}
          />
          {all.length > 0 && <JobsTable jobs={all} />}
          <div class="fleet-columns">
            <Offenders changes={changes} />
            <Resolved changes={changes} />
          </div>
        </>
      )}
    </>
  );
}

/** The fleet in four figures. */
function Figures({
  jobs,
  open,
}: {
  readonly jobs: readonly JobView[];
  readonly open: readonly Incident[];
}): VNode {
  const running = jobs.filter(({ health }) => health !== "ended");
  const well = running.filter(({ health }) => WELL.includes(health));
  const gpus = running.reduce((sum, { ranks, worldSize }) => sum + (worldSize || ranks), 0);
  const lost = useWaste(jobs.reduce((sum, { wastedGpuMs }) => sum + wastedGpuMs, 0));
  return (
    <dl class="figures">
      <Figure
        name="open incidents"
        value={String(open.length)}
        tone={open.length > 0 ? "bad" : "good"}
      />
      <Figure
        name="jobs running well"
        value={`${well.length} of ${running.length}`}
        tone={well.length < running.length ? "warn" : "good"}
      />
      <Figure name={gpus === 1 ? "GPU" : "GPUs"} value={thousands(gpus)} tone="" />
      <Figure name={`lost in these runs, ${lost.hours}`} value={lost.money} tone="" />
    </dl>
  );
}

function Figure({
  name,
  value,
  tone,
}: {
  readonly name: string;
  readonly value: string;
  readonly tone: string;
}): VNode {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd class={`num ${tone === "" ? "" : `tone-${tone}`}`}>{value}</dd>
    </div>
  );
}

function NoAgents(): VNode {
  return (
    <div class="section">
      <Empty>
        <h2>No job has reported yet</h2>
        <p>On each machine of a job, start an agent:</p>
        <pre class="command">
          <code>faultline agent --server {location.origin}</code>
        </pre>
        <p>No job at hand? This starts a simulated job that you can break:</p>
        <pre class="command">
          <code>npm start</code>
        </pre>
        <p>The page updates by itself as soon as an agent reports.</p>
      </Empty>
    </div>
  );
}
