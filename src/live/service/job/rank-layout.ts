/** Who a run's ranks are and where they stand: worked out once after agents have told of them, not at each request. */
import { createHash } from "node:crypto";
import type { LiveJob } from "../../../ingest/live-job.ts";
import type { Rank } from "../../../model/ids.ts";
import { coordinatesOf, type Coordinates } from "../lease/coordinates.ts";
import type { JobRun } from "./job-run.ts";
import type { GroupView } from "../view.ts";

export interface RankLayout extends Coordinates {
  /** The same wherever the same is known: also after a restart. */
  readonly revision: string;
  /** Ascending, as all columns. */
  readonly rank: readonly Rank[];
  readonly machine: readonly (string | null)[];
  readonly gpu: readonly (number | null)[];
  readonly stage: readonly (number | null)[];
  readonly groups: readonly GroupView[];
  /** By entry: which ranks are alike, from 0: those of one stage. */
  readonly peers: Int32Array;
  readonly peerGroups: number;
}

/** Names of strangers; a page shows them. */
const MOST_NAME = 256;
const MOST_GROUPS = 20_000;

/** While ranks of ten thousand are coming, half a second of work each time: a twentieth of the time is spent on it. */
const REST = 20;

interface Made {
  readonly revision: number;
  readonly layout: RankLayout;
  readonly untilMs: number;
}

const known = new WeakMap<JobRun, Made>();

/** As of a moment ago while ranks come and go; else as it is. */
export function rankLayout(run: JobRun): RankLayout {
  const startMs = performance.now();
  const found = known.get(run);
  if (found && (found.revision === run.revision || startMs < found.untilMs)) return found.layout;
  const layout = makeLayout(run, run.known());
  const endMs = performance.now();
  const { revision } = run;
  known.set(run, { revision, layout, untilMs: endMs + REST * (endMs - startMs) });
  return layout;
}

function makeLayout(run: JobRun, { job }: LiveJob): RankLayout {
  const held = [...run.ranks.values()].sort((a, b) => a.report.rank - b.report.rank);
  const rank = held.map(({ report }) => report.rank);
  const stageOf = (one: Rank): number | null => job.ranks.get(one)?.stage ?? null;
  const coordinates = coordinatesOf(rank, job.groups, stageOf);
  const groups = job.groups.slice(0, MOST_GROUPS).map(({ name, desc, role, ranks }) => ({
    name: cut(desc === "" || desc === "undefined" ? name : desc),
    role: cut(role),
    ranks,
  }));
  // A job file knows better than agents, and verdicts name machines as it does.
  const machine = held.map(({ report, machine }) =>
    cut(job.ranks.get(report.rank)?.machine ?? machine),
  );
  const gpu = held.map(({ report }) => job.ranks.get(report.rank)?.gpu ?? report.gpu);
  const stage = rank.map((one, k) => stageOf(one) ?? coordinates.pipeline[k]!);
  const said = { rank, machine, gpu, stage, ...coordinates, groups };
  const numberOf = new Map<number | null, number>();
  const peers = Int32Array.from(stage, (one) => {
    const number = numberOf.get(one) ?? numberOf.size;
    numberOf.set(one, number);
    return number;
  });
  return {
    ...said,
    peers,
    peerGroups: numberOf.size,
    revision: createHash("sha256").update(JSON.stringify(said)).digest("base64url").slice(0, 16),
  };
}

function cut(text: string): string {
  return text.length > MOST_NAME ? `${text.slice(0, MOST_NAME - 1)}…` : text;
}
