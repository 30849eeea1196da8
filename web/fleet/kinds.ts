/** Kinds and states of incidents in words, with the tone in which they are shown. */
import { NO_ONE_JOB } from "../../src/model/incident.ts";
import type { Incident } from "../live/api.ts";

export const KIND: Readonly<
  Record<Incident["kind"], { readonly says: string; readonly tone: string }>
> = {
  hang: { says: "hangs", tone: "bad" },
  crash: { says: "crashed", tone: "bad" },
  "fail-slow": { says: "slow", tone: "warn" },
  regression: { says: "slower code", tone: "warn" },
  "faulty-machine": { says: "bad machine", tone: "warn" },
  undetermined: { says: "off", tone: "open" },
};

export const STATE: Readonly<
  Record<Incident["state"], { readonly says: string; readonly tone: string }>
> = {
  suspected: { says: "searching for the cause", tone: "wait" },
  confirmed: { says: "confirmed", tone: "bad" },
  relapsed: { says: "came back", tone: "bad" },
  resolved: { says: "resolved", tone: "good" },
};

/** The job that it is about; null for a machine of no one job. */
export function jobOf({ job }: Pick<Incident, "job">): string | null {
  return job === NO_ONE_JOB ? null : job;
}

/**
 * Who it was, also when it is over; how it ended stands among the steps. Without a verdict the record's own sentence,
 * less the service's "over: ".
 */
export function sayingOf({ summary: said, verdict, state }: Incident): string {
  const summary = state === "resolved" ? (verdict?.summary ?? said) : said;
  const words = summary.startsWith("over: ") ? summary.slice("over: ".length) : summary;
  return words.length > 500 ? `${words.slice(0, 500)}…` : words;
}
