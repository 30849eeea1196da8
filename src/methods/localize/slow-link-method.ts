/** The question "which link became slow?" asked of a job whose ranks log their pipeline passes. */
import type { NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { StageOperations } from "../../model/stage-operations.ts";
import { lastingRise } from "./shift.ts";
import { slowLinks, type LinkFinding } from "./links/slow-links.ts";

const MAX_FILES = 4;
/** Iterations before and after a rise in a log that is asked for its place only, and its least size (Greyhound: 1.1). */
const FEWEST = 3;
const SLOWER = 1.1;

export const slowLink: Method = {
  id: "localize/slow-link",
  applies: (job) => passesOf(job).length > 1,
  *run(job) {
    const tables = passesOf(job);
    for (const found of slowLinks(tables)) yield findingOf(found, tables, job);
  },
};

/** Passes with a clock of their own iteration: neighbours are compared within an iteration only. */
function passesOf(job: Job): readonly StageOperations[] {
  return job.stageOperations.filter(({ format }) => format.startsWith("stage-passes"));
}

function findingOf(found: LinkFinding, tables: readonly StageOperations[], job: Job): NewFinding {
  const { link, iteration, until, beforeMs, delayMs, directions, confidence, format } = found;
  const [from, to] = link;
  const ends = until === null ? "" : ` until iteration ${until}`;
  // Each format counts iterations by itself, and not as the job's log does.
  const whose = format.endsWith("-cpu") ? " of those through host memory" : "";
  const longer = `${delayMs.toFixed(1)} ms longer (${wayOf(found)}; ${beforeMs.toFixed(1)} ms before) from iteration ${iteration}${ends}${whose}`;
  return {
    says: `tensors between rank ${from} and rank ${to} take ${longer}, even when neither waits for another rank`,
    weight: confidence,
    at: tables
      .filter((table) => table.format === format && link.includes(table.writer ?? -1))
      .slice(0, MAX_FILES)
      .map(({ file }) => ({ file })),
    data: {
      fact: "slow-link",
      slowDown: false,
      iteration,
      onset: onsetOf(found, job),
      until,
      delayMs: round(delayMs),
      beforeMs: round(beforeMs),
      directions,
      format,
    },
    accuses: [
      {
        kind: "fail-slow",
        type: "link",
        ranks: [from, to],
        link: [`rank:${from}`, `rank:${to}`],
        cause: "network-slow",
        weight: confidence,
        why: `a transfer takes ${longer}`,
      },
    ],
    clears: [],
  };
}

/**
 * The iteration of the job in which it began; null where that is not known. Passes through host memory are counted by
 * themselves: then the job's log is asked, which may be too short to say by itself that anything changed.
 */
function onsetOf({ format, iteration }: LinkFinding, { iterations }: Job): number | null {
  if (!format.endsWith("-cpu")) return iteration;
  const printed = iterations.find(({ series }) => series.basis !== "operators")?.series;
  const rise = printed && lastingRise(printed.iteration, printed.durationMs, FEWEST);
  return rise && rise.afterMs >= SLOWER * rise.beforeMs ? printed.iteration[rise.from]! : null;
}

function wayOf({ directions, isOneWay }: LinkFinding): string {
  if (directions.length === 2) return "both ways";
  const other = directions[0] === "forward" ? "backward" : "forward";
  return `${directions[0]}, ${isOneWay ? `not ${other}` : `${other} unknown`}`;
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
