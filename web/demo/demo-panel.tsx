/** Breaks the simulated job and shows it being found, beside the truth. There only where the service says so. */
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { DemoFault, DemoState } from "../live/api.ts";
import { now } from "../live/now.ts";
import { useObservable } from "../live/observable.ts";
import { line } from "../live/store.ts";
import { kept, oneOf } from "../shell/kept.ts";
import { links } from "../shell/route.ts";
import { spanWords } from "../shell/words.ts";
import { breakIt, demo, fixIt, followDemo, isAsking, refusal, trials } from "./demo-state.ts";
import { Guide, guideAt, useLearning } from "./guide.tsx";
import { GUIDE } from "./guide-steps.ts";
import type { Trial } from "./trial.ts";
import "./demo.css";

const KINDS: readonly (readonly [DemoFault["kind"], string])[] = [
  ["gpu", "GPU"],
  ["link", "Link"],
  ["nic", "NIC"],
  ["data-loader", "Data loader"],
  ["machine", "Machine"],
];

const folded = kept("demo-panel", "open", oneOf("open", "folded"));

export function DemoPanel(): VNode | null {
  const state = useObservable(demo);
  const isFolded = useObservable(folded) === "folded";
  useEffect(() => followDemo(), []);
  const panel = useRef<HTMLElement>(null);
  useRoomBelow(panel, state !== null);
  if (state === null) return null;
  return (
    <aside
      ref={panel}
      class={isFolded ? "demo demo-folded" : "demo"}
      aria-label="Demonstration: break something"
    >
      <button
        type="button"
        class="demo-head button-quiet"
        aria-expanded={!isFolded}
        aria-controls="demo-body"
        onClick={() => folded.set(isFolded ? "open" : "folded")}
      >
        <span>
          <strong>Demo</strong> <span class="soft">break something</span>
        </span>
        <svg viewBox="0 0 12 12" class="demo-chevron" aria-hidden="true">
          <path d="M2 4l4 4 4-4" fill="none" stroke="currentColor" stroke-width="1.8" />
        </svg>
      </button>
      <div id="demo-body" class="demo-body" hidden={isFolded}>
        <Guide />
        <Buttons state={state} />
        <Result state={state} />
        <TourAgain />
      </div>
    </aside>
  );
}

function Buttons({ state }: { readonly state: DemoState }): VNode {
  const { state: lineState } = useObservable(line);
  const refused = useObservable(refusal);
  const isLearning = useLearning(state);
  const isPending = useObservable(isAsking);
  const whyNow = isPending ? "Waiting for the service …" : whyNot(state, isLearning);
  const why = lineState === "up" ? whyNow : "The service cannot be reached.";
  return (
    <div>
      <div class="demo-buttons" role="group" aria-label="Break" aria-describedby="demo-why">
        {KINDS.map(([kind, words]) => (
          <button
            key={kind}
            type="button"
            data-break={kind}
            aria-disabled={why !== ""}
            title={why === "" ? `Break a ${words}` : why}
            onClick={() => {
              if (why === "") void breakIt(kind);
            }}
          >
            <span class="visually-hidden">Break a </span>
            {words}
          </button>
        ))}
      </div>
      <p
        id="demo-why"
        class="small soft demo-why"
        role="status"
        data-asking={isPending || undefined}
      >
        {refused === "" ? why : `Refused: ${refused}.`}
      </p>
    </div>
  );
}

/** "" where something may be broken. */
function whyNot({ faults, isReady }: DemoState, isLearning: boolean): string {
  if (faults.length > 1) return "Two faults at a time: fix them first.";
  if (faults.length === 1 && !isReady) return "A second fault can follow once the first is found.";
  if (!isReady)
    return isLearning
      ? "The job has just started: the service is learning its healthy pace."
      : "The job is recovering; this takes a few seconds.";
  return "";
}

function Result({ state }: { readonly state: DemoState }): VNode | null {
  const all = useObservable(trials);
  if (all.length === 0) return null;
  return (
    <>
      {all.map((one) => (
        <div key={one.fault.id} class="demo-result">
          <dl>
            <dt>Truth</dt>
            <dd>
              {sentence(one.fault.says)}
              {one.isFixed ? " — fixed." : <Lasting sinceMs={one.fault.sinceMs} />}
            </dd>
            <dt>Service</dt>
            <dd aria-live="polite">
              <Answer last={one} />
            </dd>
          </dl>
        </div>
      ))}
      {state.faults.length > 0 && (
        <button type="button" class="demo-mend" onClick={() => void fixIt()}>
          {state.isHung ? "Fix and restart the job" : state.faults.length > 1 ? "Fix both" : "Fix"}
        </button>
      )}
    </>
  );
}

function Answer({ last: { found, fault, isFixed } }: { readonly last: Trial }): VNode {
  if (found === null)
    return isFixed ? (
      <span class="soft">It was fixed before a suspect was named.</span>
    ) : (
      <Stopwatch sinceMs={fault.sinceMs} />
    );
  const { isRight, says, afterMs, isAtMost, incident } = found;
  return (
    <>
      <span class={isRight ? "tone-good" : "tone-warn"}>
        {isRight ? `✓ found ${isAtMost ? "within" : "in"} ` : "✗ "}
        {isRight && <strong class="num">{(afterMs / 1000).toFixed(1)} s</strong>}
        {isRight ? `: ${says}` : `after ${(afterMs / 1000).toFixed(1)} s it ${worded(says)}`}
      </span>{" "}
      <a href={links.incident(incident)} onClick={foldOnPhone}>
        Why?
      </a>
    </>
  );
}

/** There the panel covers what the link leads to: its answer and its actions. */
function foldOnPhone(): void {
  if (matchMedia("(max-width: 40rem)").matches) folded.set("folded");
}

function worded(says: string): string {
  return says.startsWith("named") ? says : `says: ${says}`;
}

function Lasting({ sinceMs }: { readonly sinceMs: number }): VNode {
  return <span class="num">, since {spanWords(useObservable(now) - sinceMs)}</span>;
}

/** Tenths of seconds: somebody waits for it. Not read aloud. */
function Stopwatch({ sinceMs }: { readonly sinceMs: number }): VNode {
  const shown = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const draw = (): void => {
      const seconds = Math.max(0, Date.now() - sinceMs) / 1000;
      if (shown.current) shown.current.textContent = `${seconds.toFixed(1)} s`;
    };
    draw();
    const timer = setInterval(draw, 100);
    return () => clearInterval(timer);
  }, [sinceMs]);
  return (
    <>
      looks for it <span ref={shown} class="num" aria-hidden="true" />
    </>
  );
}

function TourAgain(): VNode | null {
  if (useObservable(guideAt) < GUIDE.length) return null;
  return (
    <button type="button" class="button-quiet small soft" onClick={() => guideAt.set(0)}>
      Show me around
    </button>
  );
}

/** The page ends above the panel: what is at its end can be scrolled clear of it. */
function useRoomBelow(panel: { readonly current: HTMLElement | null }, isThere: boolean): void {
  useEffect(() => {
    const { current } = panel;
    if (!current || !isThere) return;
    const room = (): void => {
      document.body.style.paddingBottom = `${current.offsetHeight + 32}px`;
    };
    const watch = new ResizeObserver(room);
    watch.observe(current);
    room();
    return () => {
      watch.disconnect();
      document.body.style.paddingBottom = "";
    };
  }, [isThere]);
}

function sentence(words: string): string {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1, 300)}`;
}
