/** Every job: how it is, how fast it goes beside its healthy pace, and what it has lost. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobView } from "../live/api.ts";
import { Health, healthOf } from "../shell/health.tsx";
import { links } from "../shell/route.ts";
import { useSteady } from "../shell/steady.ts";
import { Duration } from "../shell/time.tsx";
import { Waste } from "../shell/waste.tsx";
import { slowerWords, thousands } from "../shell/words.ts";
import { Sparkline } from "./sparkline.tsx";

const ORDER: readonly JobView["health"][] = [
  "failed",
  "hung",
  "slow",
  "silent",
  "learning",
  "healthy",
  "ended",
];
const RUNS: readonly JobView["health"][] = ["healthy", "slow", "learning"];
/** Before the others are asked for: those that need somebody come first. */
const FIRST_SHOWN = 30;
const MOST_SHOWN = 1000;

export function JobsTable({ jobs }: { readonly jobs: readonly JobView[] }): VNode {
  const worst = [...jobs].sort(
    (a, b) => ORDER.indexOf(a.health) - ORDER.indexOf(b.health) || (a.job < b.job ? -1 : 1),
  );
  const [shown, setShown] = useState(FIRST_SHOWN);
  const byName = new Map(worst.map((job) => [job.job, job]));
  const { order, hold } = useSteady(worst.map(({ job }) => job));
  return (
    <section class="section" aria-labelledby="jobs-title">
      <div class="section-head">
        <h2 id="jobs-title">Jobs</h2>
        <span class="soft num">{jobs.length}</span>
      </div>
      <table class="table jobs" {...hold}>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Health</th>
            <th scope="col" class="right">
              Ranks
            </th>
            <th scope="col" class="right">
              Iteration
            </th>
            <th scope="col" class="right">
              Pace now
            </th>
            <th scope="col" class="right">
              Healthy
            </th>
            <th scope="col">
              <span class="visually-hidden">Now vs. healthy</span>
            </th>
            <th scope="col" class="spark-cell">
              Last iterations
            </th>
            <th scope="col" class="right">
              Lost in this run
            </th>
          </tr>
        </thead>
        <tbody>
          {order.slice(0, shown).map((name) => (
            <JobRow key={name} job={byName.get(name)!} />
          ))}
        </tbody>
      </table>
      {jobs.length > shown && (
        <p>
          {shown < MOST_SHOWN ? (
            <button type="button" onClick={() => setShown(MOST_SHOWN)}>
              Show {jobs.length - shown} more, {restWords(worst.slice(shown))}
            </button>
          ) : (
            <span class="soft">and {jobs.length - shown} more</span>
          )}
        </p>
      )}
    </section>
  );
}

/** "all of them healthy or ended", or "3 of them not healthy" */
function restWords(rest: readonly JobView[]): string {
  const off = rest.filter(({ health }) => health !== "healthy" && health !== "ended").length;
  return off === 0 ? "all of them healthy or ended" : `${off} of them not healthy`;
}

function JobRow({ job }: { readonly job: JobView }): VNode {
  // The pace of a job that does not run says nothing.
  const slower = RUNS.includes(job.health) ? slowerWords(job.levelMs, job.baselineMs) : "";
  const known = job.worldSize > 0 ? ` of ${thousands(job.worldSize)}` : "";
  return (
    <tr>
      <th scope="row">
        <a class="job-link cut" data-row href={links.job(job.job)}>
          {job.job.slice(0, 200)}
        </a>
      </th>
      <td data-label="Health">
        <Health health={healthOf(job)} />
      </td>
      <td class="right num" data-label="Ranks">
        {thousands(job.ranks)}
        {job.ranks !== job.worldSize && known}
      </td>
      <td class="right num" data-label="Iteration">
        {thousands(job.lastIteration)}
      </td>
      <td class="right" data-label="Pace now">
        <Duration ms={job.levelMs} />
      </td>
      <td class="right" data-label="Healthy">
        <Duration ms={job.baselineMs} />
      </td>
      <td class="pace-words num" data-label="Compared with healthy">
        <span class={slower.endsWith("slower") ? "tone-warn" : "soft"}>{slower || "–"}</span>
      </td>
      <td class="spark-cell">
        <Sparkline job={job.job} healthyMs={job.baselineMs} />
      </td>
      <td class="right" data-label="Lost">
        {job.wastedGpuMs > 0 ? (
          <Waste gpuMs={job.wastedGpuMs} />
        ) : (
          <span class="soft">nothing</span>
        )}
      </td>
    </tr>
  );
}
