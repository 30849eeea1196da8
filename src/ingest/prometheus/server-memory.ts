/**
 * What one call learns about a server, for the next ones: metrics are pulled a few names at a time, and what is slow or
 * broken there must not be found out with every few.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { MetricType } from "../../model/metrics.ts";
import type { FailureKind } from "./failure.ts";
import type { Target } from "./http.ts";

/** So many troubles with remote read, and the rest comes another way. */
const MOST_TROUBLES = 2;
/** Long enough for all names of one call; after that a server that is watched for days gets another chance. */
const TROUBLE_LASTS_MS = 600_000;
/** After so many metrics in a row without an answer the rest is not asked for: forty timeouts are an hour. */
const MOST_SILENCES = 2;
const SILENCE_LASTS_MS = 60_000;
const IMPATIENCE = 4;
/** Each is of one time span: those of before are not asked for again. */
const MOST_LISTS = 4;

class ServerMemory {
  /** By matchers and time. */
  readonly names = new Map<string, Promise<ReadonlySet<string> | null>>();
  readonly types = new Map<string, Promise<ReadonlyMap<string, MetricType>>>();
  /** Lists that did not come in time will not be waited for again. */
  hasSlowNames = false;
  hasSlowTypes = false;
  #troubles = 0;
  #troubleMs = -Infinity;
  #silences = 0;
  #silenceMs = -Infinity;

  noteTrouble(kind: FailureKind): void {
    this.#troubleMs = Date.now();
    // A silence has cost as much time as may be lost.
    this.#troubles += kind === "timeout" ? MOST_TROUBLES : 1;
  }

  get hasTrouble(): boolean {
    if (Date.now() - this.#troubleMs > TROUBLE_LASTS_MS) this.#troubles = 0;
    return this.#troubles >= MOST_TROUBLES;
  }

  noteSilence(): void {
    this.#silenceMs = Date.now();
    this.#silences++;
  }

  noteAnswer(): void {
    this.#silences = 0;
  }

  get isSilent(): boolean {
    return this.#recentSilences() >= MOST_SILENCES;
  }

  /** Less patience for what is asked after a silence: what answers nobody for a minute will not in the next. */
  patient(target: Target): Target {
    if (this.#recentSilences() === 0) return target;
    return { ...target, timeoutMs: target.timeoutMs / IMPATIENCE };
  }

  #recentSilences(): number {
    if (Date.now() - this.#silenceMs > SILENCE_LASTS_MS) this.#silences = 0;
    return this.#silences;
  }
}

const MEMORIES = new WeakMap<Target, ServerMemory>();

export function memoryOf({ target }: { readonly target: Target }): ServerMemory {
  return getOrInsert(MEMORIES, target, () => new ServerMemory());
}

/** Asks once for each key, also while the answer is under way; a question that failed is asked again. */
export function once<T>(
  known: Map<string, Promise<T>>,
  key: string,
  ask: () => Promise<T>,
): Promise<T> {
  const before = known.get(key);
  if (before) return before;
  const asked = ask();
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  for (const oldest of known.keys()) {
    if (known.size <= MOST_LISTS) break;
    known.delete(oldest);
  }
  return asked;
}
