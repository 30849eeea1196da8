/** How a job is: a word and a shape of its own each, so that nobody depends on colours. */
import type { VNode } from "preact";
import type { JobView } from "../live/api.ts";
import { isSlower } from "./words.ts";

type State = JobView["health"];

const TONE: Readonly<Record<State, string>> = {
  learning: "wait",
  healthy: "good",
  slow: "warn",
  hung: "bad",
  failed: "bad",
  silent: "open",
  ended: "open",
};

const SAYS: Readonly<Record<State, string>> = {
  learning: "its healthy pace is being learned",
  healthy: "it runs at its usual pace",
  slow: "it runs slower than before",
  hung: "it hangs",
  failed: "it has crashed",
  silent: "its agents have stopped reporting",
  ended: "it has ended",
};

/** Drawn in a box of 16 × 16. */
const SHAPE: Readonly<Record<State, VNode>> = {
  learning: (
    <>
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2" />
      <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
    </>
  ),
  healthy: (
    <>
      <circle cx="8" cy="8" r="7" fill="currentColor" />
      <path d="M4.6 8.2l2.4 2.4 4.4-4.8" fill="none" stroke="var(--page)" stroke-width="1.8" />
    </>
  ),
  slow: (
    <>
      <path d="M8 1.2L15.4 14.4H.6z" fill="currentColor" />
      <path d="M8 6v4M8 11.4v1.6" stroke="var(--page)" stroke-width="1.8" />
    </>
  ),
  hung: (
    <>
      <rect x="1.5" y="1.5" width="13" height="13" rx="1.5" fill="currentColor" />
      <path d="M6 5v6M10 5v6" stroke="var(--page)" stroke-width="2" />
    </>
  ),
  failed: (
    <>
      <path d="M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z" fill="currentColor" />
      <path d="M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6" stroke="var(--page)" stroke-width="1.8" />
    </>
  ),
  silent: (
    <circle
      cx="8"
      cy="8"
      r="6"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-dasharray="2.6 2.2"
    />
  ),
  ended: (
    <rect
      x="2.5"
      y="2.5"
      width="11"
      height="11"
      rx="1.5"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
    />
  ),
};

/** As it is shown: no job is called healthy beside a pace that is slower than its own. */
export function healthOf(view: Pick<JobView, "health" | "levelMs" | "baselineMs">): State {
  return view.health === "healthy" && isSlower(view.levelMs, view.baselineMs)
    ? "slow"
    : view.health;
}

export function Health({ health }: { readonly health: State }): VNode {
  const known = health in SHAPE ? health : "silent";
  return (
    <span class={`health tone-${TONE[known]}`} title={SAYS[known]}>
      <svg class="shape" viewBox="0 0 16 16" aria-hidden="true">
        {SHAPE[known]}
      </svg>
      <span>{health}</span>
    </span>
  );
}
