/** What the judge of a job is told: who its ranks are, how their time passed, and when iterations ended. */
import { rankWords } from "../../../base/text.ts";
import type { Rank } from "../../../model/ids.ts";
import type { SharesReport } from "../../wire/messages.ts";
import type { JobIteration } from "../job/job-iterations.ts";
import type { JobRun } from "../job/job-run.ts";
import type { JudgedLayout, SessionJudgement } from "./judge-host.ts";
import type { JobJudge, Judging } from "./judge-thread.ts";

/** Agents introduce a job one after the other: whom to compare is settled once none has told more for so long. */
const SETTLED_MS = 2000;
/** New shares of micro-batches hold from some iteration after the next one on: jobs ask ahead. */
const CHANGING_ITERATIONS = 5;

interface Fed {
  readonly run: JobRun;
  readonly judge: JobJudge;
  revision: number;
  revisedMs: number;
  /** The layout as the judge has it; "" for none. */
  layout: string;
}

export class JudgeFeed {
  readonly #judging: Judging;
  readonly #hear: (run: JobRun, said: SessionJudgement) => void;
  #fed: Fed | null = null;
  #shares: string | null = null;

  constructor(judging: Judging, hear: (run: JobRun, said: SessionJudgement) => void) {
    this.#judging = judging;
    this.#hear = hear;
  }

  /** Of ranks that this agent holds. */
  shares(run: JobRun, agent: string, report: SharesReport, nowMs: number): void {
    const isOwn = (rank: Rank): boolean => {
      const held = run.ranks.get(rank);
      return held?.agent === agent && held.agentRun === report.run;
    };
    const told = report.ranks.every(isOwn) ? report : ofRanks(report, isOwn);
    if (told.ranks.length > 0) this.#of(run).judge.tell({ say: "shares", told, nowMs });
  }

  iterations(run: JobRun, iterations: readonly JobIteration[]): void {
    const counted = iterations.filter(({ iteration }) => !run.iterations.isPause(iteration));
    this.#of(run).judge.tell({
      say: "iterations",
      endMs: counted.map(({ endMs }) => endMs),
      durationMs: counted.map(({ durationMs }) => durationMs),
    });
  }

  /** Micro-batches are shared out otherwise soon. */
  rebalanced(shares: string | null, nowMs: number): void {
    this.#shares = shares;
    const fed = this.#fed;
    if (!fed) return;
    const changingMs = CHANGING_ITERATIONS * (fed.run.levelMs || 0);
    fed.judge.tell({ say: "micro-batches", shares, fromMs: nowMs + changingMs });
  }

  tick(run: JobRun, nowMs: number): void {
    const fed = this.#of(run);
    if (fed.revision !== run.revision) {
      fed.revision = run.revision;
      fed.revisedMs = nowMs;
    }
    // One alone is compared with nobody.
    if (run.ranks.size < 2) return;
    const isWhole = run.ranks.size >= run.worldSize;
    if (fed.revisedMs <= nowMs - (isWhole && fed.layout === "" ? 0 : SETTLED_MS)) {
      fed.revisedMs = Infinity;
      const layout = layoutOf(run);
      const words = JSON.stringify(layout);
      if (words !== fed.layout) fed.judge.tell({ say: "layout", layout });
      fed.layout = words;
    }
    fed.judge.tell({ say: "tick", nowMs });
  }

  close(): void {
    this.#fed?.judge.close();
    this.#fed = null;
  }

  #of(run: JobRun): Fed {
    if (this.#fed?.run === run) return this.#fed;
    this.close();
    const judge = this.#judging.open((said) => {
      for (const one of said) this.#hear(run, one);
    });
    if (this.#shares !== null)
      judge.tell({ say: "micro-batches", shares: this.#shares, fromMs: -Infinity });
    return (this.#fed = { run, judge, revision: -1, revisedMs: Infinity, layout: "" });
  }
}

/** Ranks in ascending order, their groups of two and more, and their machines. */
function layoutOf(run: JobRun): JudgedLayout {
  const { job, keys } = run.known();
  const ranks = [...run.ranks.keys()].sort((a, b) => a - b);
  const placeOf = new Map(ranks.map((rank, place) => [rank, place]));
  const groups = job.groups
    .map(({ id, desc, ranks: members }) => ({
      key: keys[id]!,
      name: desc === "" ? `the group of ${rankWords(members)}` : desc,
      places: members.flatMap((rank) => placeOf.get(rank) ?? []),
    }))
    .filter(({ places }) => places.length > 1);
  const machines = new Map<string, number>();
  const machineOf = ranks.map((rank) => {
    const { machine } = run.ranks.get(rank)!;
    if (!machines.has(machine)) machines.set(machine, machines.size);
    return machines.get(machine)!;
  });
  return {
    job: { ranks, groups: groups.map(({ name, places }) => ({ name, places })), machineOf },
    wireKeys: groups.map(({ key }) => key),
  };
}

/** The report without ranks that another agent holds. */
function ofRanks(report: SharesReport, isOwn: (rank: Rank) => boolean): SharesReport {
  const { ranks } = report;
  const kept = [...ranks.keys()].filter((place) => isOwn(ranks[place]!));
  const slots = report.inside.length / Math.max(1, ranks.length);
  const of = (column: Uint16Array): Uint16Array => {
    const own = new Uint16Array(slots * kept.length);
    for (let slot = 0; slot < slots; slot++)
      for (const [k, place] of kept.entries())
        own[slot * kept.length + k] = column[slot * ranks.length + place]!;
    return own;
  };
  return {
    ...report,
    ranks: kept.map((place) => ranks[place]!),
    inside: of(report.inside),
    late: of(report.late),
    gpu: of(report.gpu),
    onWire: of(report.onWire),
    issued: of(report.issued),
    ended: of(report.ended),
  };
}
