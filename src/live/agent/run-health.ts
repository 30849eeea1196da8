/** What is wrong with a run, from what its rings and processes show now. */
import { largest } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import type { FoundRing } from "./rings/discover.ts";
import type { RingFollower } from "./rings/follow-ring.ts";
import { readProgress } from "./rings/ring-header.ts";

/** Silence that is shorter than so many of the longest iteration so far is no hang. */
const USUAL_ITERATIONS = 3;
const EXIT_IN_ORDER = 1;

/** A ring that is followed, and its process as of the last look. */
export interface WatchedRing {
  readonly follower: RingFollower;
  ring: FoundRing;
  runKey: string;
  state: string;
  stoppedTicks: number;
  wasAlive: boolean;
}

/**
 * How long nothing went on though something should; 0 where nothing should, calls are held by a trap, or the job has
 * named a phase (a checkpoint). Where a ring of
 * the native library is there, communication counts: Python may go on in threads that have nothing to do with it. Where
 * there is none, calls and iterations do, and a job may take for an iteration what it took before.
 */
export function silence(watched: readonly WatchedRing[], nowNs: number): number {
  const alive = watched.filter(({ state }) => state !== "X" && state !== "Z");
  const isHeld = ({ follower }: WatchedRing): boolean => {
    const { trapUntilNs, phase } = readProgress(follower.header);
    return phase !== null || Number(trapUntilNs) > nowNs;
  };
  if (alive.some(isHeld)) return 0;
  const followers = alive.map(({ follower }) => follower);
  if (followers.some(({ lastWorkNs }) => lastWorkNs > 0)) {
    if (!followers.some(({ openOperators }) => openOperators > 0)) return 0;
    return Math.max(
      0,
      nowNs -
        largest(
          followers.map(({ lastWorkNs }) => lastWorkNs),
          0,
        ),
    );
  }
  const longestNs = largest(
    followers.map(({ longestIterationNs }) => longestIterationNs),
    0,
  );
  if (longestNs === 0 && !followers.some(({ openCalls }) => openCalls > 0)) return 0;
  const lastNs = largest(
    followers.map(({ lastCallNs }) => lastCallNs),
    0,
  );
  if (lastNs === 0) return 0;
  const silentNs = nowNs - lastNs;
  return silentNs > USUAL_ITERATIONS * longestNs ? silentNs : 0;
}

export function openWords(watched: readonly WatchedRing[]): string {
  const operators = watched.filter(({ follower }) => follower.openOperators > 0);
  const sum = operators.reduce((total, { follower }) => total + follower.openOperators, 0);
  if (sum > 0) return `${count(sum, "operator")} open on ${who(operators)}`;
  const inside = watched.filter(({ follower }) => follower.openCalls > 0);
  if (inside.length > 0) return `${who(inside)} inside a call`;
  const last = largest(
    watched.map(({ follower }) => follower.lastIteration),
    -1,
  );
  return `no iteration after ${last}`;
}

/** Gone, and not in order: an exit with code 0 is how jobs end. */
export function hasFailed({ state, wasAlive, follower }: WatchedRing): boolean {
  if (!wasAlive || (state !== "X" && state !== "Z")) return false;
  const { endedHow, endedCode } = readProgress(follower.header);
  return endedHow !== EXIT_IN_ORDER || endedCode !== 0;
}

/** "rank 3 is", "ranks 3–5 are": a process may have several rings. */
export function whoIs(watched: readonly WatchedRing[]): string {
  const processes = new Set(watched.map(({ ring }) => ring.header.pid));
  return `${who(watched)} ${processes.size === 1 ? "is" : "are"}`;
}

function who(watched: readonly WatchedRing[]): string {
  const ranks = [...new Set(watched.map(({ ring }) => ring.header.rank))].sort((a, b) => a - b);
  if (ranks.some((rank) => rank < 0))
    return `process ${[...new Set(watched.map(({ ring }) => ring.header.pid))].join(", ")}`;
  return rankWords(ranks);
}
