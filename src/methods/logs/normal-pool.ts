/** The pool of normal events (L4 §5.2) out of a store and of healthy jobs at hand. */
import type { LogStore } from "../../model/log-store.ts";
import { hasRecordEvent, type NormalPool } from "./cross-job.ts";
import { TemplateIndex } from "./templates/template-index.ts";

export function normalPool(store: LogStore, healthy: readonly (readonly string[])[]): NormalPool {
  const texts = [...Object.keys(store.normal), ...healthy.flat()];
  const jobs = store.jobs.length + healthy.length;
  if (texts.length === 0) return { jobs, has: () => false, hasRecord: () => false };
  const exact = new Set(texts);
  const index = new TemplateIndex(texts);
  // Releases differ in paths, line numbers and versions: a template that only grew more general is the same event.
  return {
    jobs,
    has: (text) => exact.has(text) || index.match(text) >= 0,
    hasRecord: (id, isSettled) => hasRecordEvent(exact, id, isSettled),
  };
}
