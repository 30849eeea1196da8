/** What a configuration without `retention` says. */
import type { RetentionConfig } from "../../src/live/service/config/config.ts";

export const KEEP_ALL: RetentionConfig = {
  iterationDays: 90,
  incidentDays: null,
  historyGB: null,
  evidenceDays: null,
  evidenceGB: null,
};
