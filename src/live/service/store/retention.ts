/** What the history no longer has to keep, by age and by size. Evidence: data-folder.ts. */
import { errorText } from "../../../base/errors.ts";
import type { History } from "../../../history/history.ts";
import type { RetentionConfig } from "../config/config.ts";

export const DAY_MS = 24 * 3600_000;
export const GB = 1e9;

/** Each step by itself: one that fails is said, and tried again next time. */
export async function forgetHistory(
  history: History,
  { iterationDays, incidentDays, historyGB }: RetentionConfig,
  nowMs: number,
  trouble: (line: string) => void,
): Promise<void> {
  const attempt = async (what: string, work: Promise<unknown> | undefined): Promise<void> => {
    await work?.catch((error: unknown) => trouble(`${what}: ${errorText(error)}`));
  };
  await attempt("old iterations are not removed", history.prune?.(nowMs - iterationDays * DAY_MS));
  if (incidentDays !== null)
    await attempt(
      "old incidents are not removed",
      history.pruneIncidents?.(nowMs - incidentDays * DAY_MS),
    );
  if (historyGB === null) return;
  const most = historyGB * GB;
  const shrunk = history.shrink?.(most).then((bytes) => {
    if (bytes > most)
      trouble(
        `the history takes ${(bytes / GB).toFixed(3)} GB without iterations, more than historyGB: set incidentDays`,
      );
  });
  await attempt("the history is not shrunk", shrunk);
}
