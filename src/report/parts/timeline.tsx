/** Kernels around the worst step. */
import type { VNode } from "preact";
import {
  CPU_ACTIVITIES,
  GPU_ACTIVITIES,
  type RankLane,
  type TimelinePicture,
} from "../../model/trace-picture.ts";
import {
  renderTimelineBody,
  renderTimelineDrawing,
  renderTimelineHead,
  renderTimelineNotes,
  type TimelineView,
} from "../html/trace-timeline.ts";
import { Drawn } from "./markup.tsx";

const MOST_LANES = 16;

export function Timeline({ timeline }: { readonly timeline: TimelinePicture }): VNode | null {
  const picture = revived(timeline);
  if (picture === null) return null;
  return <Drawn markup={renderTimelineBody(picture)} />;
}

/** The same with something between what it says and what it draws: a page's controls, which choose the part that is drawn. */
export function TimelineParts({
  picture,
  view,
  controls,
  frame,
}: {
  readonly picture: TimelinePicture;
  readonly view: TimelineView;
  readonly controls: VNode;
  readonly frame: (drawn: VNode) => VNode;
}): VNode {
  return (
    <>
      <Drawn markup={renderTimelineHead(picture)} />
      {controls}
      {frame(<Drawn markup={renderTimelineDrawing(picture, view)} />)}
      <Drawn markup={renderTimelineNotes(picture)} />
    </>
  );
}

/**
 * JSON knows no typed arrays: a column that came by wire is a list, or an object with an entry a part. null where nothing
 * can be drawn.
 */
export function revived(timeline: TimelinePicture): TimelinePicture | null {
  const lanes = timeline.lanes.slice(0, MOST_LANES).map(revivedLane);
  const isWhole = lanes.some(({ rank }) => rank === timeline.rank) && timeline.windowMs > 0;
  const dropped = timeline.lanes.slice(MOST_LANES).map(({ rank }) => rank);
  return isWhole ? { ...timeline, lanes, leftOut: [...timeline.leftOut, ...dropped] } : null;
}

function revivedLane(lane: RankLane): RankLane {
  const columns = <K extends string>(
    keys: readonly K[],
    given: Readonly<Record<K, Float32Array>>,
  ): Record<K, Float32Array> =>
    Object.fromEntries(keys.map((key) => [key, column(given[key])])) as Record<K, Float32Array>;
  return {
    ...lane,
    gpu: columns(GPU_ACTIVITIES, lane.gpu),
    cpu: columns(CPU_ACTIVITIES, lane.cpu),
    communication: column(lane.communication),
  };
}

function column(given: unknown): Float32Array {
  if (given instanceof Float32Array) return given;
  if (typeof given !== "object" || given === null) return new Float32Array();
  return Float32Array.from(Object.values(given), (share) => {
    const value = Number(share);
    return value >= 0 && value <= 1 ? value : 0;
  });
}
