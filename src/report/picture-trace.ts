/**
 * An incident's picture as a trace that ui.perfetto.dev opens: Chrome's JSON of complete events, a process a rank. The
 * story runs as the iteration did, the first cause first, one operator after the other, ends of an operator at one moment.
 * Times are relative: pictures keep durations, not clocks. Runs in the browser.
 */
import { largest } from "../base/numbers.ts";
import type { Rank } from "../model/ids.ts";
import type { IncidentPicture, StoryHop } from "../model/picture.ts";
import {
  GPU_ACTIVITIES,
  type NamedSpan,
  type RankLane,
  type TimelinePicture,
} from "../model/trace-picture.ts";
import type { Verdict } from "../model/verdict.ts";
import { plain } from "./parts/plain.ts";
import { amount } from "./parts/story-bars.tsx";
import { revived } from "./parts/timeline.tsx";

/** Between two operators, and before the kernels, so that they can be distinguished. */
const GAP_SHARE = 0.05;
const MOST_NAME = 200;

type TraceEvent = Readonly<Record<string, unknown>>;

interface Tracks {
  /** The number of a rank's track; announces process and track when they are new. */
  of(rank: Rank, track: string, order: number): number;
}

export function pictureTrace(picture: IncidentPicture, verdict: Verdict): string {
  const events: TraceEvent[] = [];
  const machines = new Map(
    (picture.story?.hops ?? []).flatMap(({ bars }) =>
      bars.flatMap(({ rank, machine }) => (machine === null ? [] : [[rank, machine] as const])),
    ),
  );
  const tracks = newTracks(events, machines);
  let atMs = 0;
  for (const hop of (picture.story?.hops ?? []).toReversed())
    atMs = putHop(hop, atMs, tracks, events);
  const timeline = picture.timeline && revived(picture.timeline);
  if (timeline) putTimeline(timeline, atMs, tracks, events);
  return JSON.stringify({
    displayTimeUnit: "ms",
    otherData: {
      tool: "faultline",
      verdict: text(verdict.summary, 1_000),
      times:
        "relative: operators follow one another, the first cause first; all members of an operator leave it at the same moment",
      ...(timeline
        ? {
            kernels: `step ${timeline.step} of rank ${timeline.rank}, placed after the story; times relative to its window`,
          }
        : {}),
    },
    traceEvents: events,
  });
}

function newTracks(events: TraceEvent[], machines: ReadonlyMap<Rank, string>): Tracks {
  const numbers = new Map<string, number>();
  const named = new Set<Rank>();
  const meta = (pid: Rank, tid: number, name: string, args: object): void => {
    events.push({ ph: "M", pid, tid, ts: 0, name, args });
  };
  return {
    of(rank, track, order) {
      if (!named.has(rank)) {
        named.add(rank);
        const machine = machines.get(rank);
        meta(rank, 0, "process_name", {
          name: machine === undefined ? `rank ${rank}` : `rank ${rank} on ${text(machine)}`,
        });
        meta(rank, 0, "process_sort_index", { sort_index: rank });
      }
      const key = `${rank}|${track}`;
      const known = numbers.get(key);
      if (known !== undefined) return known;
      // Unique in the file: viewers differ in whether processes may share numbers of tracks.
      const tid = numbers.size + 1;
      numbers.set(key, tid);
      meta(rank, tid, "thread_name", { name: track });
      meta(rank, tid, "thread_sort_index", { sort_index: order });
      return tid;
    },
  };
}

/** Returns where the next one begins. */
function putHop(hop: StoryHop, atMs: number, tracks: Tracks, events: TraceEvent[]): number {
  const isOwn = hop.kind === "own";
  const lengths = hop.bars.flatMap(({ ms }) => amount(ms) ?? []);
  const longestMs = largest(lengths, 0);
  const endMs = atMs + longestMs;
  for (const { rank, ms: given, beforeMs, role } of hop.bars) {
    const ms = amount(given);
    const tid = tracks.of(rank, isOwn ? "own time" : "communication", isOwn ? 0 : 1);
    const common = { pid: rank, tid, cat: isOwn ? "own" : hop.kind };
    const args = {
      role,
      says: text(hop.says, 600),
      ...(beforeMs === null ? {} : { "before, ms": beforeMs }),
    };
    if (ms === null) {
      events.push({
        ...common,
        ph: "i",
        s: "t",
        ts: micros(endMs),
        name: `${role === "absent" ? "never arrived" : "waits"}: ${text(hop.title)}`,
        args,
      });
      continue;
    }
    events.push({
      ...common,
      ph: "X",
      ts: micros(isOwn ? atMs : endMs - ms),
      dur: micros(ms),
      name: text(hop.title),
      args,
    });
  }
  return endMs + Math.max(1, GAP_SHARE * longestMs);
}

function putTimeline(
  timeline: TimelinePicture,
  atMs: number,
  tracks: Tracks,
  events: TraceEvent[],
): void {
  for (const lane of timeline.lanes) {
    const { rank } = lane;
    const put = (tid: number, cat: string, name: string, fromMs: number, durMs: number): void => {
      const from = Math.max(0, fromMs);
      const dur = Math.min(fromMs + durMs, timeline.windowMs) - from;
      if (!(dur > 0)) return;
      events.push({
        ph: "X",
        pid: rank,
        tid,
        cat,
        name,
        ts: micros(atMs + from),
        dur: micros(dur),
      });
    };
    for (const { number, startMs, endMs } of lane.steps)
      put(tracks.of(rank, "steps", 2), "step", `step ${number}`, startMs, endMs - startMs);
    for (const { name, from, to } of activityRuns(lane)) {
      const partMs = timeline.windowMs / timeline.parts;
      put(
        tracks.of(rank, "GPU, what it mostly does", 3),
        "gpu",
        name,
        from * partMs,
        (to - from) * partMs,
      );
    }
    // Calls of several threads may overlap; slices of one track must not.
    const untilMs: number[] = [];
    for (const call of lane.calls.toSorted(byStart)) {
      const free = untilMs.findIndex((until) => until <= call.startMs);
      const slot = free < 0 ? untilMs.length : free;
      untilMs[slot] = call.startMs + call.durMs;
      const track = slot === 0 ? "CPU calls" : `CPU calls ${slot + 1}`;
      put(
        tracks.of(rank, track, 4 + slot),
        call.activity,
        text(call.name),
        call.startMs,
        call.durMs,
      );
    }
  }
}

function byStart(a: NamedSpan, b: NamedSpan): number {
  return a.startMs - b.startMs;
}

/** Stretches in which a GPU mostly does the same; nothing where the trace has nothing. */
function activityRuns(lane: RankLane): { name: string; from: number; to: number }[] {
  const runs: { name: string; from: number; to: number }[] = [];
  const parts = lane.gpu.matrix.length;
  for (let part = 0; part < parts; part++) {
    let [name, most] = ["", 0];
    for (const activity of GPU_ACTIVITIES) {
      const share = lane.gpu[activity][part] ?? 0;
      if (share > most) [name, most] = [activity, share];
    }
    if (name === "") continue;
    const last = runs.at(-1);
    if (last && last.name === name && last.to === part) last.to = part + 1;
    else runs.push({ name, from: part, to: part + 1 });
  }
  return runs;
}

function text(given: string, most: number = MOST_NAME): string {
  return plain(given, most);
}

/** Whole nanoseconds as microseconds. */
function micros(ms: number): number {
  return Math.round(ms * 1e6) / 1e3;
}
