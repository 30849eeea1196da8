/** Kinds and states of incidents in words, with the tone in which they are shown. */
import { NO_ONE_JOB } from "../../src/model/incident.ts";
import { pastVerdict } from "../../src/model/past-verdict.ts";
import { actionTitle } from "../../src/report/action-words.ts";
import { answerWords } from "../../src/report/answer-words.ts";
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
 * Who it is and what is wrong with it; of one that is over, that it was so, and how it ended. Without a verdict the
 * record's own sentence.
 */
export function sayingOf(incident: Incident): string {
  const { summary, verdict, state } = incident;
  const isOver = state === "resolved" && verdict !== null;
  const told = isOver ? pastVerdict(verdict) : verdict;
  const headline = told ? answerWords(told).headline : withoutOver(summary);
  const was = told?.answer === undefined ? "It was: " : "";
  const words = isOver ? `Resolved. ${was}${headline}` : headline;
  return words.length > 500 ? `${words.slice(0, 500)}…` : words;
}

/** What it does to the job and who only waits; of one that is over, how it ended, and what it cost each iteration. */
export function effectOf(incident: Incident): string {
  const { summary, verdict, state, endingSays } = incident;
  if (state !== "resolved") return verdict ? answerWords(verdict).effect : "";
  if (endingSays !== undefined) {
    const slower = verdict?.answer?.slower ?? null;
    const done = incident.actions.filter(
      // Not what was done before it came back.
      (action) => action.state === "done" && action.changedMs >= (incident.namedMs ?? 0),
    );
    const after = done.map((action) => `“${actionTitle(action)}” (${action.target})`).join(", ");
    const took = slower === null ? "" : ` The job took ${slower}.`;
    return `It ended${after === "" ? "" : ` after ${after}`}: ${endingSays}.${took}`;
  }
  const how = withoutOver(summary);
  // A record that only repeats the verdict says nothing of the end.
  const ended = verdict !== null && how === verdict.summary ? "" : `It ended: ${how}`;
  return ended === "" || /[.!?]$/.test(ended) ? ended : `${ended}.`;
}

function withoutOver(summary: string): string {
  return summary.startsWith("over: ") ? summary.slice("over: ".length) : summary;
}

/** Changes when an incident begins, ends or comes back, not with each of its revisions, nor with what it loses. */
export function changesOf(known: ReadonlyMap<string, Incident>): string {
  return [...known.values()].map(({ id, state }) => `${id} ${state}`).join("\n");
}
