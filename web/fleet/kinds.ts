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
 * The record's own sentence: of what is over, who it was and how it ended. Where that only says how ("over: …"), who it
 * was, from the verdict.
 */
export function sayingOf({ summary: said, verdict, state }: Incident): string {
  const isBare = state === "resolved" && said.startsWith("over: ");
  const words = isBare ? (verdict?.summary ?? said.slice("over: ".length)) : said;
  return words.length > 500 ? `${words.slice(0, 500)}…` : words;
}
