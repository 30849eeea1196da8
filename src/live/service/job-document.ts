/** What must survive kill -9 of the service, a document a job; read back from a store that others may have written. */
import type { Incident } from "../../model/incident.ts";

export interface SavedJobState {
  readonly run: string;
  readonly startedMs: number;
  readonly worldSize: number;
  readonly baselineMs: number | null;
  readonly slow: Incident | null;
  readonly still: Incident | null;
  readonly recent: Incident | null;
  /** Those resolved before it: alerts about them may still be due. */
  readonly earlier: readonly Incident[];
  /** GPU-milliseconds lost in this run by resolved incidents; absent in documents of older services. */
  readonly wastedGpuMs?: number;
  readonly lastIteration: number;
  /** When an agent last reported the job, and whether all agents have reported its end. */
  readonly seenMs: number;
  readonly hasEnded: boolean;
}

export interface JobDocument extends SavedJobState {
  readonly schema: 1;
  readonly job: string;
  readonly savedMs: number;
  /** Revisions that the history has not confirmed yet. */
  readonly unsaved: readonly Incident[];
  /** Which alerts were sent (alerts/ledger.ts). */
  readonly alerts: unknown;
}

/** null where it is none of ours: written by another version, or damaged. */
export function documentOf(value: unknown): JobDocument | null {
  if (typeof value !== "object" || value === null) return null;
  const document = value as Partial<JobDocument>;
  const isOurs =
    document.schema === 1 &&
    typeof document.job === "string" &&
    typeof document.run === "string" &&
    Array.isArray(document.unsaved) &&
    [document.slow, document.still, document.recent].every(
      (one) => one === null || typeof one?.id === "string",
    );
  return isOurs ? (document as JobDocument) : null;
}
