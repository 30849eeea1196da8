/** What happens to a run, each thing told once; kept until the run has a name to tell it under. */
import { cutText, harmless, rankWords } from "../../base/text.ts";
import type { EventReport } from "../wire/messages.ts";
import { hasFailed } from "./run-health.ts";
import { isOver, isStopped, ranksIn } from "./rank-processes.ts";
import type { RunProblem, WatchedRun } from "./run-watcher.ts";

const SAYS = 400;
const MOST_HELD = 256;
/** A job that has not ended an iteration by then may still be loading: it is said once, as a remark. */
const MISSED_MS = 120_000;

export class RunEvents {
  readonly #job: string;
  readonly #held: EventReport[] = [];
  #stopped: readonly number[] = [];
  #hasEnded = false;
  #metMs: number | null = null;
  #hasMissed = false;

  constructor(job: string) {
    this.#job = job;
  }

  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  tell(what: EventReport["what"], ranks: readonly number[], atMs: number, says: string): void {
    if (this.#held.length >= MOST_HELD) return;
    const line = cutText(harmless(says), SAYS);
    this.#held.push({ kind: "event", job: this.#job, run: "", what, ranks, atMs, says: line });
  }

  take(run: string): EventReport[] {
    return this.#held.splice(0).map((event) => ({ ...event, run }));
  }

  judge({ watched, run }: WatchedRun, problems: readonly RunProblem[], nowMs: number): void {
    for (const { kind, ranks, says } of problems) {
      // Beats say how long a run has been silent, and the service decides what is a hang of the whole job.
      if (kind === "hang") continue;
      this.tell(kind, ranks, nowMs, says);
      if (kind === "stopped") this.#stopped = [...new Set([...this.#stopped, ...ranks])];
    }
    const stopped = new Set(ranksIn(watched.filter(isStopped)));
    const over = new Set(ranksIn(watched.filter(isOver)));
    const onAgain = this.#stopped.filter((rank) => !stopped.has(rank) && !over.has(rank));
    if (onAgain.length > 0)
      this.tell("continued", onAgain, nowMs, `${run.job}: ${rankWords(onAgain)} running again`);
    this.#stopped = this.#stopped.filter((rank) => stopped.has(rank));
    const hasEnded = watched.every(isOver);
    if (hasEnded && !this.#hasEnded) {
      const failed = ranksIn(watched.filter(hasFailed));
      const how = failed.length > 0 ? `${rankWords(failed)} not in order` : "in order";
      this.tell("ended", ranksIn(watched), nowMs, `${run.job}: ended, ${how}`);
    }
    this.#hasEnded = hasEnded;
  }

  /** `without`: ranks of which no iteration is known, where that is all of them. Nothing can be said of the job's pace. */
  missIterations(without: readonly number[], hasLogs: boolean, nowMs: number): void {
    this.#metMs ??= nowMs;
    if (this.#hasMissed || nowMs - this.#metMs < MISSED_MS || this.#hasEnded) return;
    if (without.length === 0) return;
    this.#hasMissed = true;
    const logs = hasLogs ? "and none in the logs" : "and no log is followed (--log)";
    const says = `${this.#job}: no iteration of ${rankWords(without)} so far: the Python probe marks none, its calls do not repeat, ${logs}`;
    this.tell("trouble", without, nowMs, says);
  }
}
