/**
 * What pipeline stages did, pass by pass: the Chrome trace that ByteDance's StragglerAnalysis writes (analyzer/to_timeline.py). It
 * puts the data-parallel index into `pid` and five threads a rank into `tid`, and tells the stage in the threads' names alone.
 */

export interface Operation {
  readonly rank: number;
  readonly replica: number;
  readonly stage: number;
  readonly step: number;
  readonly kind: string;
  readonly durationMs: number;
}

/** compute, pp-comm, tp-comm, dp-comm, misc */
const LANES = 5;
const US_PER_MS = 1000;

interface TraceEvent {
  readonly ph: "M" | "X";
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly dur: number;
  readonly args: { readonly name?: string; readonly step?: number };
}

export function readTimeline(text: string): Operation[] {
  const events = JSON.parse(text) as readonly TraceEvent[];
  const rankOf = ({ tid }: TraceEvent): number => Math.floor(tid / LANES);
  const stages = new Map<number, number>();
  for (const event of events) {
    const stage = /^PP rank (\d+),/.exec(event.args?.name ?? "")?.[1];
    if (event.ph === "M" && event.name === "thread_name" && stage !== undefined)
      stages.set(rankOf(event), Number(stage));
  }
  return events
    .filter(({ ph }) => ph === "X")
    .map((event) => ({
      rank: rankOf(event),
      replica: event.pid,
      stage: stages.get(rankOf(event)) ?? -1,
      step: event.args.step!,
      kind: event.name,
      durationMs: event.dur / US_PER_MS,
    }));
}
