/**
 * Alertmanager's API v2. It forgets alerts that are not repeated and keeps none over its own restart, so every open
 * incident is said again and again, with an end some way ahead; a resolution is the same alert with its end in the past.
 */
import type { Incident } from "../../../model/incident.ts";
import { backoffMs, channelKey, type Channel, type ChannelMeans } from "./channel.ts";
import type { LedgerEntry } from "./ledger.ts";
import { originOf, post } from "./post.ts";
import { makeSilences } from "./silences.ts";
import { annotationsOf, bounded, pageOf } from "./alert-text.ts";

const MOST_IN_REQUEST = 64;
const DEFAULT_REPEAT_SECONDS = 60;
/** An alert outlives so many repetitions that did not come, and at least this long. */
const REPEATS_AHEAD = 4;
const LEAST_AHEAD_MS = 120_000;

interface Standing {
  readonly entry: LedgerEntry;
  incident: Incident;
  dueMs: number;
  failures: number;
}

export function makeAlertmanagerChannel(url: string, means: ChannelMeans): Channel {
  const { config, env, timings, ledger, counters } = means;
  const key = channelKey("alertmanager", url);
  const where = `Alertmanager ${originOf(url)}`;
  const base = url.replace(/\/+$/, "");
  const address = `${base}/api/v2/alerts`;
  const silences = makeSilences(base, where, means);
  const repeatMs = Math.max(1, config.repeatSeconds ?? DEFAULT_REPEAT_SECONDS) * 1000;
  const aheadMs = Math.max(REPEATS_AHEAD * repeatMs, LEAST_AHEAD_MS);
  const standing = new Map<string, Standing>();
  let isClosed = false;
  let isDown = false;
  let isWorking = false;
  let working: Promise<void> = Promise.resolve();
  let cancelTimer: (() => void) | null = null;

  function tell(entry: LedgerEntry, incident: Incident): void {
    if (isClosed) return;
    const mark = entry.channels[key];
    if (!entry.isOpen && (!mark || mark.upTo >= entry.order)) return;
    entry.channels[key] ??= { upTo: -1, sending: null };
    const known = standing.get(entry.id);
    const isNew = !known || (mark?.upTo ?? -1) < entry.order;
    if (known) known.incident = incident;
    if (!isNew) return;
    standing.set(entry.id, { entry, incident, dueMs: env.nowMs(), failures: 0 });
    schedule();
  }

  function schedule(): void {
    cancelTimer?.();
    cancelTimer = null;
    if (isClosed || isWorking || ledger.isLost || standing.size === 0) return;
    let dueMs = Infinity;
    for (const one of standing.values()) dueMs = Math.min(dueMs, one.dueMs);
    // A clock that jumps may make this long: the repetition is the longest that anything has to wait.
    const afterMs = Math.min(Math.max(0, dueMs - env.nowMs()), Math.max(repeatMs, 1000));
    cancelTimer = env.setTimer(afterMs, () => {
      cancelTimer = null;
      if (!isWorking && !isClosed) working = work();
    });
  }

  async function work(): Promise<void> {
    isWorking = true;
    try {
      await sendDue();
    } finally {
      isWorking = false;
      schedule();
    }
  }

  async function sendDue(): Promise<void> {
    const nowMs = env.nowMs();
    const due = [...standing.values()]
      .filter(({ dueMs }) => dueMs <= nowMs || dueMs - nowMs > repeatMs + timings.mostRetryMs)
      .slice(0, MOST_IN_REQUEST);
    if (due.length === 0) return;
    const isFirst = due.some(({ entry }) => (entry.channels[key]?.upTo ?? -1) < entry.order);
    // The labels have to be safe first: other labels would be another alert. And who has lost the job without knowing
    // learns it here, before saying again what the other service has ended.
    if ((await ledger.save()) === "lost") return;
    if (isClosed) return;
    // What Alertmanager is told of may change while the request is on its way.
    const orders = due.map(({ entry }) => entry.order);
    const body = JSON.stringify(due.map((one) => alertOf(one, env.nowMs())));
    const result = await post(env.fetch, address, body, {}, timings.requestMs, means.closing);
    if (means.closing.aborted && !result.ok) return;
    if (result.ok) {
      if (isDown) env.log(`${where} takes alerts again`);
      isDown = false;
      due.forEach((one, i) => taken(one, orders[i]!));
      if (isFirst) await ledger.save();
      for (const one of due) await silence(one);
      return;
    }
    counters.failures++;
    if (!isDown) env.log(`${where} ${result.why}; trying again`);
    isDown = true;
    for (const one of due) failed(one, result.pauseMs);
  }

  /** Until it is over: its end is told to people. */
  async function silence({ entry, incident }: Standing): Promise<void> {
    const hush = entry.isOpen ? (env.hush?.(incident) ?? null) : null;
    if (hush === null && !silences.has(entry.id)) return;
    await silences.keep(entry, hush, aheadMs);
  }

  function taken(one: Standing, order: number): void {
    const { entry } = one;
    const mark = (entry.channels[key] ??= { upTo: -1, sending: null });
    if (mark.upTo < order) counters.sent++;
    mark.upTo = Math.max(mark.upTo, order);
    one.failures = 0;
    // What has changed meanwhile is in the table anew, and due.
    if (standing.get(entry.id) !== one) return;
    if (order % 2 === 1) standing.delete(entry.id);
    else one.dueMs = env.nowMs() + repeatMs;
  }

  function failed(one: Standing, pauseMs: number): void {
    one.failures++;
    const { entry } = one;
    // An alert that nobody repeats ends by itself; an open one is tried for as long as it is open.
    if (!entry.isOpen && one.failures >= timings.tries && standing.get(entry.id) === one) {
      standing.delete(entry.id);
      entry.channels[key]!.upTo = entry.order;
      env.log(`${where}: the resolution of ${entry.id} is given up`);
      return;
    }
    const waitMs = Math.min(backoffMs(timings, one.failures), repeatMs);
    one.dueMs = env.nowMs() + Math.max(pauseMs, waitMs);
  }

  function alertOf({ entry, incident }: Standing, nowMs: number): unknown {
    const endedMs = Math.min(incident.resolvedMs ?? nowMs, nowMs);
    const endsMs = entry.isOpen ? nowMs + aheadMs : Math.max(endedMs, entry.startsMs + 1);
    const page = pageOf(incident, config);
    return {
      labels: entry.labels,
      annotations: annotationsOf(incident, config),
      startsAt: new Date(bounded(entry.startsMs)).toISOString(),
      endsAt: new Date(bounded(endsMs)).toISOString(),
      ...(page === null ? {} : { generatorURL: page }),
    };
  }

  return {
    key,
    get pending() {
      let count = 0;
      for (const { entry } of standing.values())
        if ((entry.channels[key]?.upTo ?? -1) < entry.order) count++;
      return count;
    },
    tell,
    keep(entry, incident) {
      if ((entry.channels[key]?.upTo ?? -1) >= entry.order) tell(entry, incident);
    },
    hushed({ id }) {
      const one = standing.get(id);
      if (!one || isClosed) return;
      one.dueMs = env.nowMs();
      schedule();
    },
    async close() {
      isClosed = true;
      cancelTimer?.();
      await working;
    },
  };
}
