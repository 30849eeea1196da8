/** Kernels around the worst step, zoomed and moved in place: by buttons, keys, the pointer and a finger. */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { TimelineView } from "../../src/report/html/trace-timeline.ts";
import {
  TIMELINE_LEFT,
  TIMELINE_PLOT,
  TIMELINE_WIDTH,
} from "../../src/report/html/trace-timeline.ts";
import type { TimelinePicture } from "../../src/model/trace-picture.ts";
import { revived, TimelineParts } from "../../src/report/parts/timeline.tsx";
import { movedView, zoomedView } from "./timeline-view.ts";

const STEP = 0.25;

export function ZoomedTimeline({ timeline }: { readonly timeline: TimelinePicture }): VNode | null {
  const picture = useMemo(() => revived(timeline), [timeline]);
  return picture && <Zoomed key={picture.step} picture={picture} />;
}

function Zoomed({ picture }: { readonly picture: TimelinePicture }): VNode {
  const { windowMs } = picture;
  const all: TimelineView = { fromMs: 0, toMs: windowMs };
  const [view, setView] = useState(all);
  const dragged = useRef<{ readonly x: number; readonly view: TimelineView } | null>(null);
  const span = view.toMs - view.fromMs;
  const isPart = span < windowMs;
  /** Milliseconds of a pixel of the screen, and of the pixel under the pointer. */
  const scaleOf = (
    host: Element,
  ): { readonly msPerPx: number; msAt: (clientX: number) => number } => {
    const { left = 0, width = 1 } = host.querySelector("svg")?.getBoundingClientRect() ?? {};
    const msPerPx = (span * TIMELINE_WIDTH) / TIMELINE_PLOT / width;
    return {
      msPerPx,
      msAt: (x) => view.fromMs + (x - left) * msPerPx - (span * TIMELINE_LEFT) / TIMELINE_PLOT,
    };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") setView(zoomedView(view, 0.5, windowMs));
    else if (event.key === "-" || event.key === "−") setView(zoomedView(view, 2, windowMs));
    else if (event.key === "0") setView(all);
    else if (event.key === "ArrowLeft") setView(movedView(view, -STEP * span, windowMs));
    else if (event.key === "ArrowRight") setView(movedView(view, STEP * span, windowMs));
    else return;
    event.preventDefault();
  };
  const controls = (
    <div class="line small timeline-controls">
      <div class="segmented" role="group" aria-label="Zoom of the trace">
        <button
          type="button"
          aria-label="Show less of the trace"
          onClick={() => setView(zoomedView(view, 0.5, windowMs))}
        >
          +
        </button>
        <button
          type="button"
          aria-label="Show more of the trace"
          disabled={!isPart}
          onClick={() => setView(zoomedView(view, 2, windowMs))}
        >
          −
        </button>
      </div>
      {isPart && (
        <>
          <div class="segmented" role="group" aria-label="Move in the trace">
            <button
              type="button"
              aria-label="Earlier"
              onClick={() => setView(movedView(view, -STEP * span, windowMs))}
            >
              ←
            </button>
            <button
              type="button"
              aria-label="Later"
              onClick={() => setView(movedView(view, STEP * span, windowMs))}
            >
              →
            </button>
          </div>
          <button type="button" onClick={() => setView(all)}>
            Show all
          </button>
        </>
      )}
      <span class="soft" role="status">
        {isPart
          ? `${span.toFixed(1)} of ${windowMs.toFixed(1)} ms; drag to move`
          : `${windowMs.toFixed(1)} ms`}
      </span>
    </div>
  );
  return (
    <TimelineParts
      picture={picture}
      view={view}
      controls={controls}
      frame={(drawn) => (
        <div
          class={`timeline-frame ${isPart ? "timeline-part" : ""}`}
          role="group"
          tabIndex={0}
          aria-label="Trace. Plus and minus zoom, arrows move, 0 shows all."
          onKeyDown={onKeyDown}
          onDblClick={(event) =>
            setView(
              zoomedView(view, 0.5, windowMs, scaleOf(event.currentTarget).msAt(event.clientX)),
            )
          }
          onPointerDown={(event) => {
            if (!isPart || event.button !== 0) return;
            dragged.current = { x: event.clientX, view };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={({ currentTarget, clientX }) => {
            const from = dragged.current;
            if (!from) return;
            const by = (from.x - clientX) * scaleOf(currentTarget).msPerPx;
            setView(movedView(from.view, by, windowMs));
          }}
          onPointerUp={() => (dragged.current = null)}
          onPointerCancel={() => (dragged.current = null)}
        >
          {drawn}
        </div>
      )}
    />
  );
}
