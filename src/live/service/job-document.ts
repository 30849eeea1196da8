/** What must survive kill -9 of the service, a document a job; read back from a store that others may have written. */
import type { Incident } from "../../model/incident.ts";
import type { SavedJobState } from "./job-effects.ts";

export interface JobDocument extends SavedJobState {
  readonly schema: 1;
  readonly job: string;
  readonly savedMs: number;
  /** Revisions that the history has not confirmed yet. */
  readonly unsaved: readonly Incident[];
  /** What people were told (alerts/ledger.ts). */
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
