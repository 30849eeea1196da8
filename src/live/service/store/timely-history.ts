/** A history that is waited for so long and no longer: what people ask for must not hang on a store that is away. */
import { setTimeout as pause } from "node:timers/promises";
import type { AuditQuery, AuditRow, History } from "../../../history/history.ts";

const ANSWER_MS = 5000;

export type TimelyHistory = ReturnType<typeof timelyHistory>;

export function timelyHistory(history: History) {
  return {
    jobs: (most: number) => timely(history.jobs(most)),
    offenders: (sinceMs: number, most: number) => timely(history.offenders(sinceMs, most)),
    audit: (query: AuditQuery) => timely(history.audit(query)),
    putAudit: (row: AuditRow) => timely(history.putAudit(row)),
    document: (key: string) => timely(history.document(key)),
    putDocument: (key: string, document: unknown) => timely(history.putDocument(key, document)),
    documentKeys: (prefix: string) => timely(history.documentKeys(prefix)),
  };
}

/** Rejects where it is late. */
export async function timely<T>(promise: Promise<T>): Promise<T> {
  const late = pause(ANSWER_MS, null, { ref: false }).then((): never => {
    throw new Error("the history does not answer");
  });
  return await Promise.race([promise, late]);
}
