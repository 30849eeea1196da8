/** Reports as frames. Points are hot: their columns are checked where they lie, and no row becomes an object. */
import {
  isBucket,
  MOST_BUCKETS,
  MOST_PROGRAMS,
  MOST_SHAPES,
  WORK_PARTS,
  type Histogram,
  type ShapeTimes,
  type WorkPart,
  type WorkSummary,
} from "../../model/work-summary.ts";
import { cutText } from "../../base/text.ts";
import {
  type Fields,
  fieldsOf,
  integerIn,
  isTime,
  listIn,
  nameIn,
  orNull,
  rankIn,
  ranksIn,
  textIn,
  timeIn,
} from "./fields.ts";
import {
  checkLengths,
  type Columns,
  columnsOf,
  lengthsOf,
  readColumns,
  FrameError,
  type RawFrame,
} from "./frame.ts";
import type {
  BeatReport,
  EventReport,
  GroupReport,
  JobReport,
  PointsReport,
  RankReport,
  Report,
} from "./messages.ts";
import { LIMITS } from "./messages.ts";
import { checkShares, readShares, sharesColumns, sharesHead } from "./shares-frame.ts";

const POINTS = {
  iteration: { kind: "f64", table: 0 },
  endMs: { kind: "f64", table: 0 },
  rank: { kind: "u32", table: 0 },
  durationMs: { kind: "f32", table: 0 },
  collectiveMs: { kind: "f32", table: 0 },
  sendMs: { kind: "f32", table: 0 },
  recvMs: { kind: "f32", table: 0 },
  issueMs: { kind: "f32", table: 0 },
} as const;

const KINDS = ["job", "points", "shares", "beat", "event"] as const;
const EVENTS: readonly EventReport["what"][] = [
  "gone",
  "stopped",
  "continued",
  "ended",
  "log-failure",
  "trouble",
];
const KEY_LENGTH = 512;
const PIDS = 2 ** 31;

export function reportHead(report: Report): Fields {
  if (report.kind === "event") return { ...report, says: cutText(report.says, LIMITS.textLength) };
  if (report.kind === "shares") return sharesHead(report);
  if (report.kind !== "points") return { ...report };
  const { kind, job, run } = report;
  return { kind, job, run, lengths: lengthsOf(POINTS, report) };
}

export function reportColumns(report: Report): ArrayBufferView[] {
  if (report.kind === "shares") return sharesColumns(report);
  return report.kind === "points" ? columnsOf(POINTS, report) : [];
}

/** Throws FrameError where no service would take it, before anything is encoded. */
export function checkReport(report: Report): void {
  if (report.kind === "shares") {
    checkShares(report);
    return;
  }
  if (report.kind !== "points") {
    readReport(reportHead(report), new Uint8Array(0));
    return;
  }
  for (const key of ["job", "run"]) nameIn({ ...report }, key);
  checkLengths(POINTS, lengthsOf(POINTS, report), LIMITS.pointsPerFrame);
  checkPoints(report);
}

/** null for a kind of report that only later agents know. Throws FrameError. */
export function readReport(head: Fields, payload: RawFrame["payload"]): Report | null {
  const word = textIn(head, "kind", 64);
  const kind = KINDS.find((known) => known === word);
  if (kind === undefined) return null;
  if (kind === "points") return readPoints(head, payload);
  if (kind === "shares") return readShares(head, payload);
  if (payload.length > 0) throw new FrameError("a payload behind a report that has none");
  if (kind === "job") return readJob(head);
  return kind === "beat" ? readBeat(head) : readEvent(head);
}

function readPoints(head: Fields, payload: Uint8Array): PointsReport {
  const columns = readColumns(POINTS, head["lengths"], payload, LIMITS.pointsPerFrame);
  checkPoints(columns);
  return { kind: "points", job: nameIn(head, "job"), run: nameIn(head, "run"), ...columns };
}

function checkPoints(points: Columns<typeof POINTS>): void {
  const { rank, iteration, endMs, durationMs, collectiveMs, sendMs, recvMs, issueMs } = points;
  for (let i = 0; i < rank.length; i++) {
    if (rank[i]! >= LIMITS.worldSize) throw new FrameError("a rank beyond every job");
    const number = iteration[i]!;
    if (!Number.isSafeInteger(number) || number < 0)
      throw new FrameError("an iteration without a number");
    if (!isTime(endMs[i]!)) throw new FrameError("an end of an iteration that is no time");
    const duration = durationMs[i]!;
    if (!(duration >= 0 && duration < Infinity))
      throw new FrameError("an iteration without a duration");
    if (
      isAbsurd(collectiveMs[i]!) ||
      isAbsurd(sendMs[i]!) ||
      isAbsurd(recvMs[i]!) ||
      isAbsurd(issueMs[i]!)
    ) {
      throw new FrameError("a part of an iteration that is no duration");
    }
  }
}

/** NaN says that it is not known. */
function isAbsurd(ms: number): boolean {
  return ms < 0 || ms === Infinity;
}

function readJob(head: Fields): JobReport {
  return {
    kind: "job",
    job: nameIn(head, "job"),
    run: nameIn(head, "run"),
    startedMs: timeIn(head, "startedMs"),
    worldSize: integerIn(head, "worldSize", 0, LIMITS.worldSize),
    ranks: listIn(head, "ranks", LIMITS.ranksPerAgent, readRank),
  };
}

const gpuIn = (fields: Fields, key: string): number => integerIn(fields, key, 0, 4095);
const pidIn = (fields: Fields, key: string): number => integerIn(fields, key, 0, PIDS);
const keyIn = (fields: Fields, key: string): string => textIn(fields, key, KEY_LENGTH);

function readRank(value: unknown): RankReport {
  const fields = fieldsOf(value, "a rank");
  return {
    rank: rankIn(fields, "rank"),
    gpu: orNull(fields, "gpu", gpuIn),
    pid: orNull(fields, "pid", pidIn),
    nic: orNull(fields, "nic", keyIn),
    leaf: orNull(fields, "leaf", keyIn),
    stage: orNull(fields, "stage", rankIn),
    groups: listIn(fields, "groups", LIMITS.groupsPerRank, readGroup),
  };
}

function readGroup(value: unknown): GroupReport {
  const fields = fieldsOf(value, "a group");
  return {
    key: keyIn(fields, "key"),
    name: keyIn(fields, "name"),
    desc: keyIn(fields, "desc"),
    groupRank: integerIn(fields, "groupRank", -1, LIMITS.worldSize - 1),
    size: integerIn(fields, "size", 0, LIMITS.worldSize),
    ranks: orNull(fields, "ranks", (at, key) => ranksIn(at, key, LIMITS.worldSize)),
  };
}

function readBeat(head: Fields): BeatReport {
  const dropped = fieldsOf(head["dropped"], "dropped");
  return {
    kind: "beat",
    nowMs: timeIn(head, "nowMs"),
    jobs: listIn(head, "jobs", LIMITS.ranksPerAgent, readStanding),
    dropped: {
      reports: integerIn(dropped, "reports", 0, Number.MAX_SAFE_INTEGER),
      points: integerIn(dropped, "points", 0, Number.MAX_SAFE_INTEGER),
    },
  };
}

function readStanding(value: unknown): BeatReport["jobs"][number] {
  const fields = fieldsOf(value, "a job of a beat");
  return {
    job: nameIn(fields, "job"),
    run: nameIn(fields, "run"),
    alive: integerIn(fields, "alive", 0, LIMITS.worldSize),
    stopped: ranksIn(fields, "stopped", LIMITS.ranksPerAgent),
    gone: ranksIn(fields, "gone", LIMITS.ranksPerAgent),
    silentMs: timeIn(fields, "silentMs"),
    openOperators: integerIn(fields, "openOperators", 0, Number.MAX_SAFE_INTEGER),
    lastIteration: integerIn(fields, "lastIteration", -1, Number.MAX_SAFE_INTEGER),
    ...workIn(fields["work"]),
    ...(fields["pause"] === undefined ? {} : { pause: textIn(fields, "pause") }),
  };
}

/** Another version may say it otherwise: what is not understood is left out, and the beat stands without it. */
function workIn(value: unknown): { readonly work?: WorkSummary } {
  if (typeof value !== "object" || value === null) return {};
  const { interval, parts, synchronizations, shapes, transfers, programs } = value as Fields;
  if (!Number.isSafeInteger(interval) || typeof parts !== "object" || parts === null) return {};
  const found: Partial<Record<WorkPart, Histogram>> = {};
  for (const part of WORK_PARTS) {
    const histogram = histogramIn((parts as Fields)[part]);
    if (histogram) found[part] = histogram;
  }
  return {
    work: {
      interval: interval as number,
      parts: found,
      synchronizations: amountIn(synchronizations),
      shapes: shapesIn(shapes),
      transfers: shapesIn(transfers),
      programs: Array.isArray(programs) ? programs.filter(isWord).slice(0, MOST_PROGRAMS) : [],
    },
  };
}

function shapesIn(value: unknown): ShapeTimes[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_SHAPES).flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null) return [];
    const { shape, ms } = one as Fields;
    const histogram = histogramIn(ms);
    return isWord(shape) && histogram ? [{ shape, ms: histogram }] : [];
  });
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && /^[\w-]{1,64}$/.test(value);
}

function histogramIn(value: unknown): Histogram | null {
  if (typeof value !== "object" || value === null) return null;
  const { bucket, count } = value as Readonly<Record<string, unknown>>;
  if (!Array.isArray(bucket) || !Array.isArray(count) || bucket.length !== count.length)
    return null;
  const isCount = (one: unknown): boolean => Number.isSafeInteger(one) && (one as number) > 0;
  const isSound = bucket.length <= MOST_BUCKETS && bucket.every(isBucket) && count.every(isCount);
  return isSound ? { bucket, count: count as number[] } : null;
}

function amountIn(value: unknown): number {
  return typeof value === "number" && value >= 0 && value < Infinity ? value : 0;
}

/** Agents of other versions tell of things that this service has no word for (a "hang"): to it they are a remark. */
function readEvent(head: Fields): EventReport {
  return {
    kind: "event",
    job: nameIn(head, "job"),
    run: nameIn(head, "run"),
    what: EVENTS.find((word) => word === head["what"]) ?? "trouble",
    ranks: ranksIn(head, "ranks", LIMITS.ranksPerAgent),
    atMs: timeIn(head, "atMs"),
    says: textIn(head, "says"),
  };
}
