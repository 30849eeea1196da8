/**
 * What was told to whom: one small document, so that a restart or another service does not tell it again. States of an
 * incident are numbered in their order (2 · relapses, and 1 more when resolved), so one number a channel is enough.
 */
import { fieldsOf } from "../../../base/json.ts";
import { LeaseLost } from "../../wire/transport.ts";
import type { Incident } from "../../../model/incident.ts";
import { bounded, labelsOf } from "./alert-text.ts";
import type { AlertsEnv } from "./types.ts";

const MOST_ENTRIES = 500;
const KEEP_RESOLVED_MS = 2 * 86_400_000;

export interface ChannelMark {
  /** The last state that was told, or given up; -1 before. */
  upTo: number;
  /** A state whose message is on its way: after a crash nobody knows whether it arrived. */
  sending: number | null;
}

export interface LedgerEntry {
  readonly id: string;
  /** Alertmanager's identity of the alert: never changed. */
  readonly labels: Readonly<Record<string, string>>;
  /** Of the record that was last looked at. */
  revision: number;
  isOpen: boolean;
  order: number;
  startsMs: number;
  changedMs: number;
  readonly channels: Record<string, ChannelMark>;
}

export type Saved = "kept" | "failed" | "lost";

export interface Ledger {
  get(id: string): LedgerEntry | undefined;
  add(incident: Incident, order: number, channels: readonly string[]): LedgerEntry;
  /** Resolves when all that was changed before the call is safe, or after a while where it cannot be. */
  save(): Promise<Saved>;
  /** Another service has taken over. */
  readonly isLost: boolean;
}

export function makeLedger(env: AlertsEnv, waitMs: number): Ledger {
  const entries = new Map(entriesOf(env.recalled).map((entry) => [entry.id, entry]));
  let isLost = false;
  let isFailing = false;
  let isWriting = false;
  let waiting: ((saved: Saved) => void)[] = [];

  async function write(): Promise<Saved> {
    prune(entries, env.nowMs());
    try {
      await env.remember({ version: 1, incidents: structuredClone([...entries.values()]) });
      isFailing = false;
      return "kept";
    } catch (error) {
      if (error instanceof LeaseLost) {
        isLost = true;
        return "lost";
      }
      if (!isFailing)
        env.log(
          "alerts: the record of sent alerts could not be stored; a restart may send them again",
        );
      isFailing = true;
      return "failed";
    }
  }

  /** One write after the other: an older document must not end up over a newer one. */
  async function pump(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      const saved = await write();
      for (const resolve of batch) resolve(saved);
    }
    isWriting = false;
  }

  return {
    get: (id) => entries.get(id),
    get isLost() {
      return isLost;
    },
    add(incident, order, channels) {
      const entry: LedgerEntry = {
        id: incident.id,
        labels: labelsOf(incident),
        revision: incident.revision,
        isOpen: true,
        order,
        startsMs: bounded(Math.min(incident.onsetMs, env.nowMs())),
        changedMs: env.nowMs(),
        channels: Object.fromEntries(channels.map((key) => [key, { upTo: -1, sending: null }])),
      };
      entries.set(entry.id, entry);
      return entry;
    },
    async save() {
      if (isLost) return "lost";
      return await new Promise<Saved>((resolve) => {
        const cancel = env.setTimer(waitMs, () => resolve("failed"));
        waiting.push((saved) => {
          cancel();
          resolve(saved);
        });
        if (!isWriting) void pump();
      });
    },
  };
}

/** Open ones stay; of the others the latest. */
function prune(entries: Map<string, LedgerEntry>, nowMs: number): void {
  for (const [id, { isOpen, changedMs }] of entries) {
    if (!isOpen && nowMs - changedMs > KEEP_RESOLVED_MS) entries.delete(id);
  }
  if (entries.size <= MOST_ENTRIES) return;
  const oldest = [...entries.values()].sort(
    (a, b) => Number(a.isOpen) - Number(b.isOpen) || a.changedMs - b.changedMs,
  );
  for (const { id } of oldest.slice(0, entries.size - MOST_ENTRIES)) entries.delete(id);
}

/** A document that is not ours, or half of one, counts as none. */
function entriesOf(document: unknown): LedgerEntry[] {
  const list = fieldsOf(document)?.["incidents"];
  if (!Array.isArray(list)) return [];
  return list.slice(-MOST_ENTRIES).flatMap((value: unknown) => {
    const entry = fieldsOf(value);
    const labels = fieldsOf(entry?.["labels"]);
    if (!entry || !labels || typeof entry["id"] !== "string") return [];
    const channels = Object.entries(fieldsOf(entry["channels"]) ?? {}).map(([key, mark]) => [
      key,
      markOf(mark),
    ]);
    return [
      {
        id: entry["id"],
        labels: Object.fromEntries(
          Object.entries(labels).filter(([, text]) => typeof text === "string"),
        ) as Record<string, string>,
        revision: numberOf(entry["revision"], 0),
        isOpen: entry["isOpen"] === true,
        order: numberOf(entry["order"], 0),
        startsMs: bounded(numberOf(entry["startsMs"], 0)),
        changedMs: numberOf(entry["changedMs"], 0),
        channels: Object.fromEntries(channels) as Record<string, ChannelMark>,
      },
    ];
  });
}

function markOf(value: unknown): ChannelMark {
  const mark = fieldsOf(value);
  const sending = mark?.["sending"];
  return {
    upTo: numberOf(mark?.["upTo"], -1),
    sending: typeof sending === "number" ? sending : null,
  };
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
