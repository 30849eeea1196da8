/** One job, live: how it is, how long its iterations take, and which of its ranks hold it up. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { JobView } from "../live/api.ts";
import { type Observable, useObservable } from "../live/observable.ts";
import { jobs, line } from "../live/store.ts";
import { links } from "../shell/route.ts";
import { Empty, Loading, problemWords } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";
import { useIterations } from "./follow-iterations.ts";
import { type RankState, useRanks } from "./follow-ranks.ts";
import { IterationChart } from "./iteration-chart.tsx";
import { JobHead } from "./job-head.tsx";
import { useJobIncidents } from "./job-incidents.ts";
import { Latecomers } from "./latecomers.tsx";
import { NetworkMatrix } from "./network-matrix.tsx";
import { RankGrid } from "./rank-grid.tsx";
import { refreshThemeColors } from "./theme-colors.ts";
import "./job.css";

export function JobPage({ job }: { readonly job: string }): VNode {
  const known = useObservable(jobs);
  const { state } = useObservable(line);
  const view = known?.find((one) => one.job === job);
  if (view) return <KnownJob key={`${view.job}\n${view.run}`} view={view} />;
  return (
    <div class="job-page stack">
      <h1 tabIndex={-1} class="job-name">
        {job.slice(0, 200)}
      </h1>
      {known === null ? (
        state === "connecting" || state === "up" ? (
          <Loading what="the job" />
        ) : (
          <Empty>
            <p>The service cannot be reached. The page shows the job as soon as it can.</p>
          </Empty>
        )
      ) : (
        <Empty>
          <p>
            The service does not know a job of this name. It may have ended long ago, or may not
            have reported yet.
          </p>
          <p>
            <a href={links.fleet}>All jobs</a>
          </p>
        </Empty>
      )}
    </div>
  );
}

function KnownJob({ view }: { readonly view: JobView }): VNode {
  const ranks = useRanks(view.job, view.run, view.health === "ended");
  const iterations = useIterations(view.job, view.run);
  const { episodes, earlierRun } = useJobIncidents(view.job, view.run);
  const incident = episodes.find(({ id }) => id === view.incident) ?? null;
  const besides = useMemo(
    () => episodes.filter(({ id, state }) => id !== view.incident && state !== "resolved"),
    [episodes, view.incident],
  );
  const open = useMemo(() => (incident ? [incident, ...besides] : besides), [incident, besides]);
  useMemo(refreshThemeColors, []);
  return (
    <div class="job-page">
      <JobHead view={view} incident={incident} besides={besides} />
      <OldValues feed={ranks} />
      <IterationChart view={view} feed={iterations} episodes={episodes} earlierRun={earlierRun} />
      <Latecomers view={view} feed={ranks} incident={incident} />
      <NetworkMatrix feed={ranks} incidents={open} />
      <RankGrid view={view} feed={ranks} incidents={open} />
    </div>
  );
}

/** What is old stays, and says so. */
function OldValues({ feed }: { readonly feed: Observable<RankState> }): VNode {
  const { table, atMs, problem } = useObservable(feed);
  const isOld = problem !== null && table !== null;
  return (
    <p class="old-values small" role="status">
      {isOld && (
        <span class="tag tone-warn">
          Ranks as of <Time ms={atMs} />: {problemWords(problem)}
        </span>
      )}
    </p>
  );
}
