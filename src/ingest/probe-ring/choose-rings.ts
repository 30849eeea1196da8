/**
 * Which of the rings in a folder belong together. A folder of shared memory keeps rings of earlier jobs and of earlier
 * starts of the same job; copies of one ring may lie beside each other. The newest job counts, of each process its
 * newest ring, and of a job that was started again nothing that ended before.
 */
import { getOrInsert, groupBy } from "../../base/group-by.ts";
import { largest } from "../../base/numbers.ts";
import { count, cutText, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import { ITERATION, type ProbeProcess } from "../../model/probe.ts";

interface ChosenRings {
  /** Rank of each ring that is used, by file. */
  readonly rankOf: ReadonlyMap<string, Rank | null>;
}

export function chooseRings(probes: readonly ProbeProcess[], missing: string[]): ChosenRings {
  const job = newestJob(probes, missing);
  const rankOf = ranksOf(job);
  const { kept: newest, restartedMs } = newestOfEach(job, rankOf, missing);
  const kept = withoutEarlierRuns(newest, restartedMs, rankOf, missing);
  const strays = kept.filter(({ file }) => rankOf.get(file) === null);
  if (strays.length > 0)
    missing.push(
      `${cutText(strays.map(({ file }) => file).join(", "), 200)}: the rank of ${strays.length === 1 ? "this ring" : "these rings"} is unknown; set RANK before the probe starts`,
    );
  return { rankOf: new Map(kept.map(({ file }) => [file, rankOf.get(file) ?? null])) };
}

/** Milliseconds since 1970: the last that is known of it. */
function lastSignMs({ epochNs, copiedNs, heartbeatNs, startedNs, ended }: ProbeProcess): number {
  const times = [copiedNs, heartbeatNs, startedNs, ended?.atNs ?? NaN].filter(Number.isFinite);
  return Number(epochNs / 1_000_000n) + largest(times, 0) / 1e6;
}

/** The same, of the process itself: a ring of a dead process can be copied long after. */
function lastLifeMs({ epochNs, heartbeatNs, startedNs, ended }: ProbeProcess): number {
  const times = [heartbeatNs, startedNs, ended?.atNs ?? NaN].filter(Number.isFinite);
  return Number(epochNs / 1_000_000n) + largest(times, 0) / 1e6;
}

function startMs({ epochNs, startedNs }: ProbeProcess): number {
  return Number(epochNs / 1_000_000n) + startedNs / 1e6;
}

function newestJob(probes: readonly ProbeProcess[], missing: string[]): readonly ProbeProcess[] {
  const jobs = [...groupBy(probes, jobKeys(probes)).entries()];
  if (jobs.length <= 1) return probes;
  const newestOf = (list: readonly ProbeProcess[]): number => largest(list.map(lastSignMs), 0);
  jobs.sort((a, b) => newestOf(b[1]) - newestOf(a[1]) || (a[0] < b[0] ? -1 : 1));
  const [used, ...others] = jobs as [[string, ProbeProcess[]], ...[string, ProbeProcess[]][]];
  const left = others.map(([key, list]) => `"${key}" (${count(list.length, "ring")})`);
  missing.push(
    `the folder holds rings of ${jobs.length} jobs: the newest, "${used[0]}", is used; left out: ${cutText(left.join(", "), 200)}`,
  );
  return used[1];
}

/**
 * A job is its name and where its ranks meet. A probe that started before the program set MASTER_ADDR does not know
 * the second: it goes with the ring of the same process, or with the only place that the name has.
 */
function jobKeys(probes: readonly ProbeProcess[]): (probe: ProbeProcess) => string {
  const ofProcess = new Map<string, string>();
  const ofName = new Map<string, Set<string>>();
  for (const { job, host, pid } of probes) {
    const [name = "", place] = job.split(" ");
    if (place === undefined) continue;
    ofProcess.set(`${host}:${pid}:${name}`, job);
    getOrInsert(ofName, name, () => new Set()).add(job);
  }
  return ({ job, host, pid }) => {
    const [name = "", place] = job.split(" ");
    if (place !== undefined) return job;
    const known = ofName.get(name);
    return (
      ofProcess.get(`${host}:${pid}:${name}`) ??
      (known?.size === 1 ? [...known][0]! : undefined) ??
      job
    );
  };
}

/** Without RANK in its environment a process is what it is in the communicator of all. */
function ranksOf(probes: readonly ProbeProcess[]): Map<string, Rank | null> {
  const world = largest(
    probes.map(({ worldSize }) => worldSize),
    0,
  );
  const widest = largest(
    probes.flatMap(({ communicators }) => communicators.map(({ size }) => size)),
    0,
  );
  const whole = Math.max(world, widest);
  const rankOf = new Map<string, Rank | null>();
  const ofProcess = new Map<string, Rank>();
  for (const { file, rank, communicators, host, pid } of probes) {
    const found = rank ?? communicators.find(({ size }) => size === whole)?.rank ?? null;
    rankOf.set(file, found);
    if (found !== null) ofProcess.set(`${host}:${pid}`, found);
  }
  for (const { file, host, pid } of probes)
    if (rankOf.get(file) === null) rankOf.set(file, ofProcess.get(`${host}:${pid}`) ?? null);
  return rankOf;
}

/** Which ring of each rank and writer is used, and when the job was last started again (−∞: never). */
function newestOfEach(
  probes: readonly ProbeProcess[],
  rankOf: ReadonlyMap<string, Rank | null>,
  missing: string[],
): { readonly kept: readonly ProbeProcess[]; readonly restartedMs: number } {
  const byPlace = groupBy(probes, ({ file, writer, host, pid }) => {
    const rank = rankOf.get(file);
    return `${writer} ${rank ?? `${host}:${pid}`}`;
  });
  const kept: ProbeProcess[] = [];
  const twice = new Set<Rank>();
  let restartedMs = -Infinity;
  for (const list of byPlace.values()) {
    const [first, ...later] = list.toSorted(
      (a, b) =>
        startMs(a) - startMs(b) || lastSignMs(a) - lastSignMs(b) || (a.file < b.file ? -1 : 1),
    ) as [ProbeProcess, ...ProbeProcess[]];
    let best = first;
    for (const next of later) {
      const how = successor(best, next);
      if (how !== "child") best = next;
      if (how === "restart") restartedMs = Math.max(restartedMs, startMs(next));
    }
    kept.push(best);
    const rank = rankOf.get(best.file) ?? null;
    if (later.length > 0 && rank !== null) twice.add(rank);
  }
  if (twice.size > 0) {
    const verb = twice.size === 1 ? "has" : "have";
    missing.push(
      `${rankWords([...twice].sort((a, b) => a - b))} ${verb} more than one ring; the newest was used`,
    );
  }
  return { kept, restartedMs };
}

/**
 * What a later ring of the same rank is: a later copy, the same rank started again, or a program that the rank started
 * and that inherited its environment (a compiler, a tokenizer): that one lives beside it, and trains nothing.
 */
function successor(before: ProbeProcess, next: ProbeProcess): "copy" | "restart" | "child" {
  const isSame = before.host === next.host && before.pid === next.pid;
  if (isSame && startMs(next) - startMs(before) < SAME_START_MS) return "copy";
  if (lastLifeMs(before) < startMs(next)) return "restart";
  return trains(next) && !trains(before) ? "copy" : "child";
}

function trains({ communicators, calls }: ProbeProcess): boolean {
  return communicators.length > 0 || calls.kind.includes(ITERATION);
}

/** A rank that was started again shows that the job was: who had ended by then is of the run before. */
function withoutEarlierRuns(
  kept: readonly ProbeProcess[],
  restartedMs: number,
  rankOf: ReadonlyMap<string, Rank | null>,
  missing: string[],
): readonly ProbeProcess[] {
  const isEarlier = (probe: ProbeProcess): boolean =>
    lastLifeMs(probe) < restartedMs - SAME_START_MS;
  const earlier = kept.filter(isEarlier);
  if (earlier.length === 0) return kept;
  const ranks = [...new Set(earlier.map(({ file }) => rankOf.get(file) ?? -1))];
  missing.push(
    `the rings of ${rankWords(ranks.sort((a, b) => a - b))} ended before the job was started again: left out`,
  );
  return kept.filter((probe) => !isEarlier(probe));
}

/** Copies of one ring know the same start to the anchor's drift; two starts are seconds apart. */
const SAME_START_MS = 1000;
