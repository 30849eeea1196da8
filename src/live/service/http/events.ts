/**
 * What happens, to whoever listens: server-sent events. A reader gets a snapshot first and then every change; one that
 * comes back says what it saw last and gets what it missed, as far as that is still kept, else a new snapshot. A reader
 * that does not read is dropped: it comes back, and a snapshot is cheaper than a queue without end.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "../access/grants.ts";
import { type Audience, audienceOf, eventFor, isAmong } from "../access/limited-view.ts";
import { type LiveEvent, Refusal, type ServiceView } from "../view.ts";
import { jsonText } from "./json.ts";
import type { HttpLimits } from "./limits.ts";

export interface EventStreams {
  /** Takes the answer over. Rejects with Refusal before anything was written. */
  open(request: IncomingMessage, response: ServerResponse, listener: Listener): Promise<void>;
  /** Ends those of readers who may no longer read, or other jobs than before. */
  recheck(): void;
  readonly count: number;
  readonly dropped: number;
  close(): void;
}

/** Who reads, and the service as they see it. */
export interface Listener {
  readonly caller: Caller;
  readonly view: ServiceView;
  /** Whether they may still do so, as before. */
  mayStay(this: void): boolean;
}

interface Kept {
  readonly number: number;
  readonly audience: Audience;
  /** Where it is not the same for everybody. */
  readonly event: LiveEvent | null;
  readonly text: string;
  readonly bytes: number;
}

interface Reader extends Listener {
  readonly response: ServerResponse;
  /** Number of the last event that was written. */
  at: number;
  /** Bytes that had left the socket at the last heartbeat. */
  gone: number;
  /** Bytes that it gets at the beginning, and may take its time for; 0 once it has them. */
  first: number;
}

/** Incidents that a snapshot holds. */
const MOST_INCIDENTS = 200;
const RETRY_MS = 2000;
export const EVENT_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

/**
 * `boot`: differs from start to start of the service, for numbers begin again then. `isDemo`: whether the job can be
 * broken on purpose; said in the snapshot, so that pages elsewhere need not ask.
 */
export function openEventStreams(
  view: ServiceView,
  limits: HttpLimits,
  boot: string,
  isDemo: boolean,
): EventStreams {
  const kept: Kept[] = [];
  let keptBytes = 0;
  let last = 0;
  let dropped = 0;
  let opening = 0;
  const readers = new Set<Reader>();

  const end = (reader: Reader): void => {
    readers.delete(reader);
    reader.response.destroy();
  };
  const drop = (reader: Reader): void => {
    dropped++;
    end(reader);
  };
  const write = (reader: Reader, text: string): void => {
    if (reader.response.writableLength > limits.unreadBytes + reader.first) drop(reader);
    else reader.response.write(text);
  };

  const textOf = (number: number, event: LiveEvent): string =>
    `id: ${boot}-${number}\nevent: ${event.type}\ndata: ${jsonText(event)}\n\n`;

  const keep = (event: LiveEvent): void => {
    const number = ++last;
    const text = textOf(number, event);
    const bytes = Buffer.byteLength(text);
    const isSame = event.type !== "handling" && event.type !== "mutes";
    kept.push({ number, audience: audienceOf(event), event: isSame ? null : event, text, bytes });
    keptBytes += bytes;
    while (
      kept.length > limits.keptEvents ||
      (keptBytes > limits.keptEventBytes && kept.length > 1)
    )
      keptBytes -= kept.shift()!.bytes;
    for (const reader of readers) catchUp(reader);
  };

  /** All that is kept behind the reader's last. */
  const catchUp = (reader: Reader): void => {
    const first = kept[0]?.number ?? last + 1;
    for (let i = Math.max(0, reader.at + 1 - first); i < kept.length; i++) {
      if (!readers.has(reader)) return;
      const { number, audience, event, text } = kept[i]!;
      const { jobs } = reader.caller;
      const seen = event === null ? event : eventFor(event, jobs);
      if (isAmong(reader.caller, audience))
        write(reader, seen === event ? text : textOf(number, seen!));
      reader.at = number;
    }
  };

  const snapshot = async (at: number, seen: ServiceView): Promise<string> => {
    const incidents = await seen.incidents({ open: true, most: MOST_INCIDENTS });
    const actions = seen.actionsSwitch();
    const touched = seen.handlings();
    const handlings = incidents.flatMap(({ id }) => touched.get(id) ?? []);
    const mutes = seen.mutes();
    const data = jsonText({
      type: "snapshot",
      jobs: seen.jobs(),
      incidents,
      isDemo,
      actions,
      handlings,
      mutes,
    });
    return `id: ${boot}-${at}\nevent: snapshot\ndata: ${data}\n\n`;
  };

  /** The number that a reader saw last, where all behind it is still kept. */
  const resumed = (header: string | string[] | undefined): number | null => {
    const [, said, digits] = /^(.+)-(\d{1,15})$/.exec(String(header ?? "")) ?? [];
    const number = Number(digits);
    if (said !== boot || number > last) return null;
    return number + 1 >= (kept[0]?.number ?? last + 1) ? number : null;
  };

  const stopListening = view.listen(keep);
  const heart = setInterval(() => {
    for (const reader of readers) {
      const { response } = reader;
      const written = response.socket?.bytesWritten ?? 0;
      const isStuck = response.writableLength > 0 && written === reader.gone;
      reader.gone = written;
      if (!reader.mayStay()) end(reader);
      else if (isStuck) drop(reader);
      else write(reader, ": still here\n\n");
    }
  }, limits.heartbeatMs);
  heart.unref();

  return {
    get count() {
      return readers.size;
    },
    get dropped() {
      return dropped;
    },
    recheck() {
      for (const reader of readers) if (!reader.mayStay()) end(reader);
    },
    async open(request, response, listener) {
      if (readers.size + opening >= limits.eventStreams)
        throw new Refusal(503, `there are ${limits.eventStreams} readers of events already`);
      const from = resumed(request.headers["last-event-id"]);
      const at = from ?? last;
      // What happens while the snapshot is made comes behind it, though it may be in it, too: nothing is missed.
      opening++;
      let text: string;
      try {
        text = from === null ? await snapshot(at, listener.view) : "";
      } finally {
        opening--;
      }
      if (response.destroyed || response.headersSent) return;
      const first = Buffer.byteLength(text) + keptBytes;
      const reader: Reader = { ...listener, response, at, gone: 0, first };
      response.on("drain", () => (reader.first = 0));
      response.on("close", () => readers.delete(reader));
      response.on("error", () => readers.delete(reader));
      // Nothing comes for minutes where nothing happens: only the heartbeat tells whether somebody is there.
      response.socket?.setTimeout(0);
      response.writeHead(200, EVENT_HEADERS);
      readers.add(reader);
      response.write(`retry: ${RETRY_MS}\n\n${text}`);
      // Events that fell out of the buffer while a slow history made the snapshot: the reader must begin anew.
      if (at + 1 < (kept[0]?.number ?? last + 1)) drop(reader);
      else catchUp(reader);
    },
    close() {
      clearInterval(heart);
      stopListening();
      for (const reader of readers) end(reader);
    },
  };
}
