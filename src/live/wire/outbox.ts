/**
 * Reports that nobody has taken yet, encoded, within a bound. When it is full the oldest points and shares go first, then the
 * oldest of the rest; both are counted. Of beats only the newest is worth anything: it replaces the one before, uncounted.
 */
import { encodeReport, reportDefect } from "./codec.ts";
import { LIMITS, type AgentHello, type Report } from "./messages.ts";

export interface OutboxEntry {
  readonly sequence: number;
  readonly job: string;
  /** Rows of points; 0 for other reports. */
  readonly points: number;
  /** Of a stream: points and shares, of which others come. */
  readonly isStream: boolean;
  /** null when it has been taken, replaced or dropped. */
  bytes: Uint8Array | null;
}

export interface Outbox {
  readonly bytes: number;
  readonly isEmpty: boolean;
  readonly dropped: { reports: number; points: number };
  /** Says why where the report can never be sent: it is counted as dropped. `job` is "" where the carrier needs none. */
  push(report: Report, job: string): string | null;
  /** The oldest that was not handed out since the last rewind. */
  next(): OutboxEntry | null;
  rewind(): void;
  taken(entry: OutboxEntry): void;
  takenThrough(sequence: number): void;
  /** The service will never take the oldest. */
  dropFirst(): void;
  /** Waits until all has been taken, or the time is over. */
  emptied(withinMs: number): Promise<void>;
  /** Nobody waits any longer. */
  close(): void;
}

/** What an entry costs beside its frame. */
const ENTRY_BYTES = 128;

/** `from` goes into every report where no connection stands for the agent. */
export function createOutbox(bufferBytes: number, from: AgentHello | null): Outbox {
  let entries: OutboxEntry[] = [];
  /** Places in `entries`: the first that may be alive, the next to hand out, the first that may be of a stream. */
  let first = 0;
  let next = 0;
  let firstStream = 0;
  let bytes = 0;
  let sequence = 0;
  const dropped = { reports: 0, points: 0 };
  const beats = new Map<string, OutboxEntry>();
  const waiting = new Set<() => void>();

  const remove = (entry: OutboxEntry): void => {
    if (entry.bytes === null) return;
    bytes -= entry.bytes.length + ENTRY_BYTES;
    entry.bytes = null;
    if (bytes === 0) for (const done of waiting) done();
    if (beats.get(entry.job) === entry) beats.delete(entry.job);
    while (first < entries.length && entries[first]!.bytes === null) first++;
    if (first > 1024 && first > entries.length / 2) {
      entries = entries.slice(first);
      next = Math.max(0, next - first);
      firstStream = Math.max(0, firstStream - first);
      first = 0;
    }
  };
  const drop = (entry: OutboxEntry): void => {
    dropped.reports++;
    dropped.points += entry.points;
    remove(entry);
  };
  const oldestOfStream = (): OutboxEntry | null => {
    for (firstStream = Math.max(firstStream, first); firstStream < entries.length; firstStream++) {
      const entry = entries[firstStream]!;
      if (entry.isStream && entry.bytes !== null) return entry;
    }
    return null;
  };

  return {
    get bytes() {
      return bytes;
    },
    get isEmpty() {
      return bytes === 0;
    },
    dropped,
    push(report, job) {
      const points = report.kind === "points" ? report.rank.length : 0;
      // The service would close the connection on a wrong report, again and again: it never gets into the buffer.
      let why = reportDefect(report);
      const frame = encodeReport(++sequence, report, from);
      if (frame.length > LIMITS.reportBytes) why ??= `more than ${LIMITS.reportBytes} bytes`;
      if (why !== null) {
        dropped.reports++;
        dropped.points += points;
        return why;
      }
      const isStream = points > 0 || report.kind === "shares";
      const entry: OutboxEntry = { sequence, job, points, isStream, bytes: frame };
      if (report.kind === "beat") {
        const before = beats.get(job);
        if (before !== undefined) remove(before);
        beats.set(job, entry);
      }
      entries.push(entry);
      bytes += frame.length + ENTRY_BYTES;
      while (bytes > bufferBytes) drop(oldestOfStream() ?? entries[first]!);
      return null;
    },
    next() {
      for (next = Math.max(next, first); next < entries.length; next++) {
        const entry = entries[next]!;
        if (entry.bytes === null) continue;
        next++;
        return entry;
      }
      return null;
    },
    rewind() {
      next = first;
    },
    taken: remove,
    takenThrough(through) {
      while (first < entries.length && entries[first]!.sequence <= through) remove(entries[first]!);
    },
    dropFirst() {
      if (first < entries.length) drop(entries[first]!);
    },
    async emptied(withinMs) {
      if (bytes === 0) return;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, withinMs);
        waiting.add(done);
      });
    },
    close() {
      for (const done of waiting) done();
    },
  };
}
