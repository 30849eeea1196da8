/**
 * How a job was ended from outside: a scheduler, a person, a signal. That is the cause only of a job that ran until then;
 * what ends a job that hangs or has failed only cleans up.
 */
import type { FaultMatch } from "../../library/matcher.ts";
import { causeOfRecord, type FaultRecord, type Layer } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { ContextCause } from "./cause.ts";
import { isSequel } from "./indicating.ts";
import { EXCEPTION } from "./known-lines.ts";
import type { SignatureGroup } from "./signature-groups.ts";

/** Clocks of different machines are no better. */
const SKEW_MS = 5_000;
/** A stand-still is longer than this, and than so many of the longest pauses that the job got over. */
const LEAST_STILL_MS = 60_000;
const PAUSES = 2;
/** And than any evaluation or checkpoint, where one was announced. */
const ANNOUNCED_MS = 30 * 60_000;
const ANNOUNCED = /\b(?:evaluat|validat|saving|checkpoint)/i;
const FEWEST_REPORTS = 3;
const TIMEOUTS = new Set(["torch.watchdog.timeout", "torch.watchdog.barrier"]);

/** By kept line: whether it tells of the end of a job that stood still before. */
export function endsStandStill(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
): Uint8Array {
  const stillMs = stoodStillSince(digest);
  const waited = known.flatMap((match, i) =>
    match && TIMEOUTS.has(match.record.id) ? [digest.kept[i]!] : [],
  );
  return Uint8Array.from(digest.kept, ({ file, line, timeMs, text }, i) => {
    const match = known[i];
    if (!match || !isEnd(match.record)) return 0;
    const endMs = saidTime(text) ?? timeMs;
    const isAfterTimeout = waited.some((one) =>
      one.file === file ? one.line < line : one.timeMs + SKEW_MS < endMs,
    );
    return isAfterTimeout || (stillMs !== null && endMs >= stillMs) ? 1 : 0;
  });
}

/** Slurm's lines begin without a time and hold one: "CANCELLED AT 2031-05-06T07:08:09 DUE TO TIME LIMIT". */
function saidTime(text: string): number | null {
  const at = /\bAT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b/.exec(text)?.[1];
  return at === undefined ? null : Date.parse(`${at}Z`);
}

/** Also kills: a hung process that is killed was not killed for its memory. */
function isEnd(record: FaultRecord): boolean {
  const cause = causeOfRecord(record);
  return cause === "scheduler" || (cause === "process-gone" && record.category === "user.config");
}

/** From when on nothing that tells of an end can have ended a job that ran; null where iterations do not tell. */
function stoodStillSince({ iterations, cells, shapes }: LogDigest): number | null {
  let lastMs = -Infinity;
  let pauseMs = 0;
  for (const { timeMs } of iterations) {
    const times = timeMs.filter((ms) => !Number.isNaN(ms));
    if (times.length < FEWEST_REPORTS) continue;
    lastMs = Math.max(lastMs, times.at(-1)!);
    for (let i = 1; i < times.length; i++) pauseMs = Math.max(pauseMs, times[i]! - times[i - 1]!);
  }
  if (lastMs === -Infinity) return null;
  let isAnnounced = false;
  for (let c = 0; c < cells.count && !isAnnounced; c++)
    isAnnounced = cells.lastMs[c]! >= lastMs && ANNOUNCED.test(shapes[cells.shape[c]!]!.text);
  return lastMs + Math.max(LEAST_STILL_MS, PAUSES * pauseMs, isAnnounced ? ANNOUNCED_MS : 0);
}

/** A program that ends processes, or counts their ends, shows that one has ended. */
const ENDERS: readonly Layer[] = ["launcher", "scheduler", "container"];

/**
 * Whether anything says that a process ended: a traceback or a C++ abort, an exception that nothing ordinary follows, its
 * launcher, scheduler or kernel, or others that lost it. A line of trouble alone may be one that the job lived with.
 */
export function saysEnded(
  { kept, blocks }: LogDigest,
  known: readonly (FaultMatch | null)[],
  isLeftOut: (kept: number) => boolean,
  isSettled: Uint8Array,
): boolean {
  const inBlock = new Set(blocks.map(({ stream, line }) => `${stream} ${line}`));
  return kept.some(({ stream, line, text }, i) => {
    if (isLeftOut(i)) return false;
    const record = known[i]?.record;
    if (record && (ENDERS.includes(record.layer) || isSequel(record) || KILLED.test(text)))
      return true;
    return inBlock.has(`${stream} ${line}`) || (EXCEPTION.test(text) && isSettled[i] === 0);
  });
}

const KILLED = /\b(?:killed|terminated|aborted|core dumped|exit(?:ed|ing)?)\b/i;

const ENDED_WEIGHT = 0.3;

/** Asked where nothing says what broke: a signal or a cancellation is then what ended the job. */
export function endingCauses(digest: LogDigest, groups: readonly SignatureGroup[]): ContextCause[] {
  const ends = groups.filter(({ record }) => causeOfRecord(record) === "scheduler");
  const firstLine = ({ lines }: SignatureGroup): number => lines[0]!;
  // Exit codes and aborts come with the end, now before it, now after.
  const others = groups.filter((group) => !ends.includes(group) && isSequel(group.record));
  const [first] = ends.sort((a, b) => firstLine(a) - firstLine(b));
  // What came before the end is what it was ended for.
  if (!first || others.some((group) => firstLine(group) < firstLine(first))) return [];
  const { file, line, text } = digest.kept[firstLine(first)]!;
  const at = { file: digest.files[file]!.name, line, text };
  const { record } = first;
  return [
    {
      weight: ENDED_WEIGHT,
      cause: {
        category: record.category!,
        cause: "scheduler",
        signature: record.id,
        title: "the job was ended from outside",
        role: "root",
        owner: record.owner,
        meaning: `Nothing says that anything was wrong before: ${record.title}.`,
        action: record.action,
        falseFriends: record.falseFriends,
        at,
        places: [at],
        nodes: [],
        ranks: [],
        captures: {},
      },
    },
  ];
}
