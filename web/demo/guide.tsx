/** Shows somebody new around: a card in the panel, and an outline around what it speaks of. Nothing is in the way. */
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { DemoState } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { jobs } from "../live/store.ts";
import { kept } from "../shell/kept.ts";
import { route } from "../shell/route.ts";
import { demo, trials } from "./demo-state.ts";
import { GUIDE, type GuideFacts, stepNow } from "./guide-steps.ts";

/** The step, from 0; the number of steps: it is over. */
export const guideAt = kept<number>("demo-guide", 0, (text) =>
  /^\d$/.test(text) ? Math.min(Number(text), GUIDE.length) : null,
);

const LOOK_MS = 400;

export function Guide(): VNode | null {
  const at = useObservable(guideAt);
  const { page } = useObservable(route);
  const state = useObservable(demo);
  const last = useObservable(trials).at(-1) ?? null;
  const all = useObservable(jobs);
  const isLearning = useLearning(state);
  const facts: GuideFacts = {
    page,
    hasJob: (all?.length ?? 0) > 0,
    isReady: state?.isReady ?? false,
    isLearning,
    isBroken: (state?.faults.length ?? 0) > 0,
    isFound: last !== null && last.found !== null && !last.isFixed,
    isFixed: last !== null && last.found !== null && last.isFixed,
  };
  const next = stepNow(at, facts);
  useEffect(() => {
    if (next !== at) guideAt.set(next);
  }, [next, at]);
  const step = GUIDE[next];
  useOutline(step?.points ?? []);
  if (!step) return null;
  const isLast = next === GUIDE.length - 1;
  return (
    <section class="guide" aria-label="A guided first minute">
      <div role="status">
        <p class="guide-title">
          <span class="soft num">
            {next + 1}/{GUIDE.length}
          </span>{" "}
          {step.title}
        </p>
        <p class="small">{step.says(facts)}</p>
      </div>
      <p class="guide-buttons">
        {step.hasNext && (
          <button type="button" onClick={() => guideAt.set(next + 1)}>
            Next
          </button>
        )}
        {isLast && facts.isFixed ? (
          <button type="button" onClick={() => guideAt.set(GUIDE.length)}>
            Done
          </button>
        ) : (
          <button type="button" class="button-quiet" onClick={() => guideAt.set(GUIDE.length)}>
            Skip the tour
          </button>
        )}
      </p>
    </section>
  );
}

/** Whether the service does not know yet what is normal for the job, or the job at all. */
export function useLearning(state: DemoState | null): boolean {
  const view = useObservable(jobs)?.find(({ job }) => job === state?.job);
  return view === undefined || view.health === "learning";
}

/** Pages draw what is pointed at when they like: it is looked for again and again. */
function useOutline(points: readonly string[]): void {
  useEffect(() => {
    let marked: Element | null = null;
    const look = (): void => {
      const found = points.map((one) => document.querySelector(one)).find((one) => one !== null);
      if (found === marked) return;
      marked?.classList.remove("guide-target");
      marked = found ?? null;
      marked?.classList.add("guide-target");
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => {
      clearInterval(timer);
      marked?.classList.remove("guide-target");
    };
  }, [points]);
}
