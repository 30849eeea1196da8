import type { Execution, Meeting } from "./execute.ts";

/** A rank is inside a meeting that has not ended. */
export interface Wait {
  /** Index of the operator in the rank's program. */
  readonly index: number;
  readonly meeting: Meeting;
}

/** Per rank what it waits in when nothing moves any more. */
export function openWaits(execution: Execution): Wait[][] {
  const waits: Wait[][] = execution.runs.map(() => []);
  for (const meetings of execution.open)
    for (const meeting of meetings.values())
      meeting.came.forEach((rank, i) => {
        const index = meeting.ops[i] as number;
        // A buffered send ends without its receiver, so its sender does not wait.
        if (Number.isNaN(execution.runs[rank]?.endNs[index])) waits[rank]?.push({ index, meeting });
      });
  return waits;
}

/** Members that a meeting still waits for; none when it is dead. */
export function notCome(meeting: Meeting): number[] {
  if (meeting.came.length === meeting.expected.length) return [];
  const came = new Set(meeting.came);
  return meeting.expected.filter((rank) => !came.has(rank));
}
