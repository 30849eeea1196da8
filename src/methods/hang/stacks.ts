/**
 * hang/stacks: FLARE's call-stack analysis (§5.1). When a job hangs, the ranks that wait sit in a
 * communication function or wait for their GPU; the one that holds them up sits anywhere else. It
 * says nothing when all wait (a communication hang), little when many are elsewhere, and next to
 * nothing of a job that runs (still-running.ts).
 */
import { groupBy } from "../../base/group-by.ts";
import { count, rankWords } from "../../base/text.ts";
import type { Cause } from "../../model/cause.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Place, Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { FactOf } from "../../model/facts.ts";
import { isMoving } from "../../model/moving.ts";
import type { Frame } from "../../model/operators.ts";
import type { StackDump, ThreadStack } from "../../model/stacks.ts";
import { pauseOf } from "./pause-frames.ts";
import { runsBecause } from "./still-running.ts";
import { ownLine } from "./words.ts";

type Whereabouts = "communicates" | "waits-for-gpu" | "elsewhere" | "unknown";

interface Stood {
  readonly where: Whereabouts;
  readonly thread: ThreadStack | null;
  readonly dump: StackDump;
}

export const stacks: Method = {
  id: "hang/stacks",
  // Of a job that runs a stack shows no more than a moment.
  applies: (job) => job.stacks.size > 1 && !isMoving(job),
  *run(job) {
    const { places, isCrowd } = placesOf(job);
    const known = [...places].filter(([, { where }]) => where !== "unknown");
    const outside = known.filter(([, { where }]) => where === "elsewhere");
    const waiting = known.filter(([, { where }]) => where !== "elsewhere").map(([rank]) => rank);
    const at: Place[] = outside
      .slice(0, 8)
      .map(([, { dump, thread }]) => ({ file: dump.file, line: thread?.line ?? 1 }));
    if (outside.length === 0 || waiting.length === 0) {
      const says =
        waiting.length > 0
          ? `the stacks of all ${count(waiting.length, "rank")} are in a communication call or wait for the GPU: no CPU is the root cause`
          : "the stacks do not show which ranks wait";
      yield {
        says,
        weight: 0.4,
        at,
        data: { fact: "python-stacks", waiting, ...pausesOf(places) },
        accuses: [],
        clears: [],
      };
      return;
    }
    const because = runsBecause(job, waiting);
    if (because !== null) {
      yield ofMoment(outside, known.length, because, at);
      return;
    }
    const weight = (isCrowd ? CROWD_SHARE : 1) * weightOf(job, outside, known.length);
    const ranks = outside.map(([rank]) => rank).sort((a, b) => a - b);
    const lines = new Map(outside.map(([rank, { thread }]) => [rank, ownLine(thread!.frames)]));
    yield {
      says: `${rankWords(ranks)} ${ranks.length === 1 ? "is" : "are"} outside communication (${lines.get(ranks[0]!) ?? "?"}) while ${count(waiting.length, "rank")} wait${waiting.length === 1 ? "s" : ""} in it`,
      weight,
      at,
      data: {
        fact: "python-stacks",
        outside: Object.fromEntries(lines),
        waiting,
        ...pausesOf(places),
      },
      accuses: outside.map(([rank, { thread }]) => ({
        kind: "hang",
        type: "rank",
        ranks: [rank],
        link: null,
        cause: causeOf(thread!.frames),
        weight,
        why: `rank ${rank}'s Python is at ${lines.get(rank) ?? "an unknown line"}, outside communication`,
      })),
      clears: [],
    } satisfies NewFinding;
  },
};

function placesOf(job: Job): { places: ReadonlyMap<Rank, Stood>; isCrowd: boolean } {
  const places = new Map<Rank, Stood>();
  for (const [rank, dump] of job.stacks) {
    const thread = mainThread(dump);
    places.set(rank, { where: thread ? whereabouts(thread.frames) : "unknown", thread, dump });
  }
  return { isCrowd: standTogether(places), places };
}

/** Ranks whose process was there to be looked at, and waited as the others do. */
export function waitingByStack(job: Job): ReadonlySet<Rank> {
  const { places } = placesOf(job);
  return new Set(
    [...places]
      .filter(([, { where }]) => where === "communicates" || where === "waits-for-gpu")
      .map(([rank]) => rank),
  );
}

const MOST_PAUSES = 8;

function pausesOf(places: ReadonlyMap<Rank, Stood>): Pick<FactOf<"python-stacks">, "pauses"> {
  const pauses = [...places].flatMap(([rank, { thread }]) => {
    const found = thread && pauseOf(thread.frames);
    return found ? [[rank, `${found.pause} (${lineOf(found.frame)})`] as const] : [];
  });
  return pauses.length === 0 ? {} : { pauses: Object.fromEntries(pauses.slice(0, MOST_PAUSES)) };
}

/** Of the ranks, and so many at least: they did not come to the same line by chance. */
const CROWD = 3 / 4;
const LEAST_CROWD = 4;
/** That a line waits is then inferred, not known by its name. */
const CROWD_SHARE = 0.85;

/**
 * Where a tensor's value is asked for, Python waits in C++, and its innermost frame is the script's own. No frame tells
 * that, but where nearly all ranks of a job stand in the same line, that line waits. Data that nobody gets is not that.
 */
function standTogether(places: Map<Rank, Stood>): boolean {
  const at = groupBy(
    [...places].filter(([, { where }]) => where === "elsewhere"),
    ([, { thread }]) => lineOf(thread!.frames[0]!),
  );
  const [most] = [...at.values()].sort((a, b) => b.length - a.length);
  if (!most || most.length < Math.max(LEAST_CROWD, CROWD * places.size)) return false;
  if (causeOf(most[0]![1].thread!.frames) !== "cpu-stall") return false;
  for (const [rank, stood] of most) places.set(rank, { ...stood, where: "waits-for-gpu" });
  return true;
}

function lineOf({ file, line, func }: Frame): string {
  return `${file}:${line} ${func}`;
}

/** What unrelated machines have in common is that the job runs on them, not that they all stopped in their code. */
const MOST_PLACES = 3;

/** One of many outside is telling; half of them outside is not. */
function weightOf(job: Job, outside: readonly [Rank, Stood][], known: number): number {
  const share = outside.length / known;
  const weight = share <= 0.25 ? 0.7 : share <= 0.5 ? 0.4 : 0.15;
  // A file system may hold many machines at once.
  const plain = outside.filter(([, { thread }]) => causeOf(thread!.frames) === "cpu-stall");
  const places = new Set(plain.map(([rank]) => job.ranks.get(rank)?.machine ?? rank));
  return places.size > MOST_PLACES ? Math.min(weight, 0.15) : weight;
}

/** Not enough to accuse anybody by itself: it says what a rank was at that others found to be late. */
const MOMENT_WEIGHT = 0.25;

/**
 * Of a job that runs. Who computes does so for most of the time; who waits for data does not, unless it is short of
 * them: that may be why others find it late.
 */
function ofMoment(
  outside: readonly [Rank, Stood][],
  known: number,
  because: string,
  at: readonly Place[],
): NewFinding {
  const held = outside
    .map(([rank, { thread }]) => ({ rank, frames: thread!.frames, cause: causeOf(thread!.frames) }))
    .filter(({ cause }) => cause !== "cpu-stall");
  const isFew = held.length * 4 <= known;
  const ranks = outside.map(([rank]) => rank).sort((a, b) => a - b);
  return {
    says: `${rankWords(ranks)} ${ranks.length === 1 ? "is" : "are"} outside communication, but ${because}: the stacks are a snapshot of a running job`,
    weight: MOMENT_WEIGHT,
    at: [...at],
    data: { fact: "python-stacks", isRunning: true },
    accuses: (isFew ? held : []).map(({ rank, frames, cause }) => ({
      kind: "fail-slow",
      type: "rank",
      ranks: [rank],
      link: null,
      cause,
      weight: MOMENT_WEIGHT,
      why: `rank ${rank}'s Python was at ${ownLine(frames) ?? "an unknown line"} when its stack was taken`,
    })),
    clears: [],
  };
}

function mainThread(dump: StackDump): ThreadStack | null {
  const withFrames = dump.threads.filter((thread) => thread.frames.length > 0);
  return withFrames.find((thread) => thread.isMain) ?? withFrames.at(-1) ?? null;
}

/** Only the inner part of the stack counts: every training step is below some trainer's frame. */
function whereabouts(frames: readonly Frame[]): Whereabouts {
  for (const { file, func } of frames.slice(0, INNER_FRAMES)) {
    if (
      /torch\/distributed\/(?!run|launch|elastic)|torch\/_C\/_distributed|deepspeed\/comm\/|\bc10d\b|mpi4py|horovod/.test(
        file,
      )
    ) {
      return "communicates";
    }
    if (
      /^(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier|broadcast|batch_isend_irecv)/.test(
        func,
      )
    ) {
      return "communicates";
    }
    if (/torch\/cuda\//.test(file) && /synchronize|wait/.test(func)) return "waits-for-gpu";
    if (/^(item|cpu|synchronize|_local_scalar_dense)$/.test(func) && /torch/.test(file))
      return "waits-for-gpu";
  }
  return frames.length > 0 ? "elsewhere" : "unknown";
}

const INNER_FRAMES = 6;

function causeOf(frames: readonly Frame[]): Cause {
  const inner = frames.slice(0, INNER_FRAMES);
  if (inner.some(({ file }) => /torch\/utils\/data\/|dataloader|dataset/i.test(file)))
    return "dataloader";
  if (
    inner.some(
      ({ file, func }) =>
        /torch\/serialization|checkpoint/i.test(file) ||
        /save_checkpoint|load_checkpoint/.test(func),
    )
  ) {
    return "storage";
  }
  return "cpu-stall";
}
