/** A picture that fits: what is too much is left out by what it is worth, and it says so. */
import type { IncidentPicture } from "../../../model/picture.ts";

const MOST_BYTES = 2 << 20;

export const NO_PICTURE: IncidentPicture = {
  schema: "faultline.picture/1",
  story: null,
  metrics: [],
  logs: [],
  timeline: null,
  lacks: [],
};

/** As plain JSON: columns become lists, and what is not a number null. */
export function bounded(picture: IncidentPicture, mostBytes = MOST_BYTES): IncidentPicture {
  const steps: readonly ((from: IncidentPicture) => IncidentPicture)[] = [
    (from) => from,
    (from) => without(from, { timeline: null }, "The kernels are"),
    (from) => without(from, { logs: [], stacks: [] }, "The log lines are"),
    (from) => without(from, { metrics: [] }, "The metrics are"),
    (from) => without(from, { story: null }, "The story is"),
  ];
  let now = picture;
  for (const step of steps) {
    now = step(now);
    const text = JSON.stringify(now, listed);
    if (Buffer.byteLength(text) <= mostBytes) return JSON.parse(text) as IncidentPicture;
  }
  return NO_PICTURE;
}

function without(
  from: IncidentPicture,
  change: Partial<IncidentPicture>,
  what: string,
): IncidentPicture {
  return { ...from, ...change, lacks: [...from.lacks, `${what} too large to be kept.`] };
}

function listed(_: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) ? Array.from(value as Float32Array) : value;
}

/** Of a file that somebody may have changed: its frame is as it should be. */
export function isPicture(value: unknown): value is IncidentPicture {
  const picture = value as Partial<IncidentPicture> | null;
  return (
    typeof picture === "object" &&
    picture?.schema === "faultline.picture/1" &&
    [picture.metrics, picture.logs, picture.lacks].every((list) => Array.isArray(list))
  );
}
