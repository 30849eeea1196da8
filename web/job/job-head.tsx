/** The job in a glance: how it is, how fast, how large, what is open, what it has cost. */
import type { VNode } from "preact";
import type { Incident, JobView } from "../live/api.ts";
import { Health, healthOf } from "../shell/health.tsx";
import { sayingOf } from "../fleet/kinds.ts";
import { links } from "../shell/route.ts";
import { Since, Time } from "../shell/time.tsx";
import { slowerWords, thousands } from "../shell/words.ts";
import { useWaste } from "../shell/price.ts";
import { msWords } from "./measures.ts";
import { standsStill } from "./stands-still.ts";

const MOST_LACKS = 5;
/** What an open incident says better. */
const TOLD: readonly JobView["health"][] = ["slow", "hung", "failed"];

export function JobHead({
  view,
  incident,
  besides,
}: {
  readonly view: JobView;
  readonly incident: Incident | null;
  /** Open ones beside the worst. */
  readonly besides: readonly Incident[];
}): VNode {
  const waste = useWaste(view.wastedGpuMs);
  const { levelMs, baselineMs } = view;
  const isStill = standsStill(view);
  const open = incident ? [incident, ...besides] : besides;
  return (
    <header class="job-head stack">
      <div class="line">
        <h1 tabIndex={-1} class="job-name" title={view.job.slice(0, 300)}>
          {view.job.slice(0, 200)}
        </h1>
        <Health health={healthOf(view)} />
        <span class="soft small cut">run {view.run.slice(0, 80)}</span>
        <a class="small" href={links.history(view.job)}>
          Its incidents
        </a>
      </div>
      {open.map((one) => (
        <p
          class={`job-incident panel ${one.kind === "fail-slow" ? "incident-warn" : "incident-bad"}`}
        >
          <a href={links.incident(one.id)}>{sayingOf(one)}</a>{" "}
          <span class="small soft">
            {one.state === "suspected" ? "being investigated" : one.state}, since{" "}
            <Time ms={one.onsetMs} /> (<Since ms={one.onsetMs} />)
          </span>
        </p>
      ))}
      {(incident === null || !TOLD.includes(view.health)) && <p class="soft">{stateWords(view)}</p>}
      <dl class="job-figures">
        <Figure
          name="Iteration"
          value={view.lastIteration < 0 ? "–" : thousands(view.lastIteration)}
        />
        <Figure
          name="Pace now"
          value={isStill ? "hangs" : levelMs === null ? "–" : msWords(levelMs)}
          note={isStill ? "since the last iteration" : slowerWords(levelMs, baselineMs)}
        />
        <Figure name="Healthy pace" value={baselineMs === null ? "–" : msWords(baselineMs)} />
        <Figure
          name="Ranks"
          value={thousands(view.ranks)}
          note={`${view.worldSize > 0 && view.worldSize !== view.ranks ? `of ${thousands(view.worldSize)}, ` : ""}on ${thousands(view.machines)} ${view.machines === 1 ? "machine" : "machines"}`}
        />
        <Figure
          name="Running for"
          value={<Since ms={view.startedMs} />}
          note={
            <>
              since <Time ms={view.startedMs} />
            </>
          }
        />
        <Figure name="Time wasted" value={waste.hours} note={waste.money} />
      </dl>
      {view.lacks.length > 0 && (
        <ul class="job-lacks small soft">
          {view.lacks.slice(0, MOST_LACKS).map((lack) => (
            <li key={lack}>{lack.slice(0, 300)}</li>
          ))}
          {view.lacks.length > MOST_LACKS && <li>and {view.lacks.length - MOST_LACKS} more</li>}
        </ul>
      )}
    </header>
  );
}

function Figure({
  name,
  value,
  note = "",
}: {
  readonly name: string;
  readonly value: string | VNode;
  readonly note?: string | VNode;
}): VNode {
  return (
    <div class="job-figure">
      <dt class="small soft">{name}</dt>
      <dd class="job-figure-value num">{value}</dd>
      <dd class="small soft num">{note}</dd>
    </div>
  );
}

/** One sentence on what the state means for what is shown below. */
function stateWords(view: JobView): VNode | string {
  switch (view.health) {
    case "learning":
      return `Learning the healthy pace: about 20 iterations are needed, ${thousands(Math.max(0, view.lastIteration + 1))} have ended so far.`;
    case "healthy":
      return healthOf(view) === "healthy"
        ? "Runs at its usual pace."
        : "Is slower than its usual pace at the moment; whether that lasts is being watched.";
    case "slow":
      return "Runs slower than before.";
    case "hung":
      return "Hangs: no rank has finished an iteration for longer than usual.";
    case "failed":
      return "Has crashed.";
    case "silent":
      return (
        <>
          Its agents have stopped reporting; the last report was at <Time ms={view.seenMs} />.
        </>
      );
    case "ended":
      return (
        <>
          Has ended; it was last seen at <Time ms={view.seenMs} />.
        </>
      );
    default:
      return "";
  }
}
