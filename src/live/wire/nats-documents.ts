/** Documents of jobs in a bucket: each carries the number of the lease that it was written under. */
import { errorText } from "../../base/errors.ts";
import { setTimeout as pause } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import type { KV } from "@nats-io/kv";
import { LeaseLost } from "./transport.ts";

export interface Documents {
  readonly kv: KV;
  /** Bytes that a value may have. */
  mostBytes(this: void): number;
}

export interface Stored {
  /** 0 where there is none. */
  readonly revision: number;
  readonly fence: number;
  /** Counts writes under one lease. */
  readonly write: number;
  readonly document: unknown;
}

const NONE: Stored = { revision: 0, fence: 0, write: 0, document: null };
const SQUEEZE_BYTES = 32 << 10;
const MOST_UNSQUEEZED = 256 << 20;
const GZIP_MARK = 0x1f;
const RETRY_MS = 100;

export async function readDocument({ kv }: Documents, job: string): Promise<Stored> {
  const entry = await kv.get(job);
  if (entry === null || entry.operation !== "PUT")
    return { ...NONE, revision: entry?.revision ?? 0 };
  const { value, revision } = entry;
  const bytes =
    value[0] === GZIP_MARK ? gunzipSync(value, { maxOutputLength: MOST_UNSQUEEZED }) : value;
  const { fence, write, document } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Stored;
  return { revision, fence, write, document };
}

/**
 * Writes a lease's number over the one before, the document left as it is: from here on nobody with a lower number can
 * write. Tries until `isHeld` is over. Rejects with LeaseLost.
 */
export async function fenceDocument(
  documents: Documents,
  job: string,
  fence: number,
  isHeld: () => boolean,
): Promise<number> {
  for (;;) {
    const mark = { fence, write: 0 };
    const revision = await store(documents, job, mark, isHeld, (before) => before.document);
    // A write of the holder before us may have been under way at the same moment: it counts, and ours goes over it.
    const now = await readDocument(documents, job).catch(() => null);
    if (now?.revision === revision) return revision;
  }
}

/** Compares and sets until it is there, also when an acknowledgement got lost; resolves with the entry's revision. */
export async function store(
  documents: Documents,
  job: string,
  { fence, write }: { readonly fence: number; readonly write: number },
  isHeld: () => boolean,
  documentFrom: (before: Stored) => unknown,
  known?: number,
): Promise<number> {
  let revision = known;
  let prepared: Uint8Array | null = null;
  for (;;) {
    if (!isHeld()) throw new LeaseLost(job);
    try {
      if (revision === undefined) {
        const before = await readDocument(documents, job);
        if (before.fence > fence) throw new LeaseLost(job);
        // Ours, and only its acknowledgement was lost.
        if (before.fence === fence && before.write === write) return before.revision;
        revision = before.revision;
        prepared = pack(documents, { fence, write, document: documentFrom(before) });
      }
      prepared ??= pack(documents, { fence, write, document: documentFrom(NONE) });
      const stored = await documents.kv.put(job, prepared, { previousSeq: revision });
      // Acknowledged while the lease was ours: whoever comes next reads it. Later, nobody knows.
      if (isHeld()) return stored;
    } catch (error) {
      if (error instanceof LeaseLost || error instanceof TooLarge) throw error;
      // Somebody wrote, or nobody knows whether we did: look before trying again.
      revision = undefined;
      if (!/wrong last sequence/.test(errorText(error))) await pause(RETRY_MS);
    }
  }
}

class TooLarge extends Error {}

function pack({ mostBytes }: Documents, value: Omit<Stored, "revision">): Uint8Array {
  const text = Buffer.from(JSON.stringify(value));
  const bytes = text.length > SQUEEZE_BYTES ? gzipSync(text, { level: 1 }) : text;
  if (bytes.length > mostBytes()) {
    throw new TooLarge(`a document of ${bytes.length} bytes is more than NATS takes`);
  }
  return bytes;
}
