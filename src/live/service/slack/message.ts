/** An incident as a message for Slack: text for every receiver of that kind, buttons where Slack's app answers to us. */
import { acknowledgedNow, type Handling, type Mute } from "../../../model/handling.ts";
import type { Incident } from "../../../model/incident.ts";
import {
  bounded,
  descriptionOf,
  pageOf,
  plain,
  severityOf,
  type Told,
} from "../alerts/alert-text.ts";
import type { AlertsConfig } from "../alerts/types.ts";

/** Slack's own limit of a section. */
const MOST_SECTION = 3000;

export const BUTTONS = {
  "faultline-acknowledge": "Acknowledge",
  "faultline-mute": "Mute 1 h",
  "faultline-right": "Right",
  "faultline-wrong": "Wrong",
  "faultline-open": "Open",
} as const;
export type Button = keyof typeof BUTTONS;

/** What people have said of the incident; mutes that cover it. */
export interface Answered {
  readonly handling: Handling;
  readonly mute: Mute | null;
}

const TITLE: Readonly<Record<Told, string>> = {
  confirmed: "",
  resolved: "Resolved: ",
  relapsed: "Came back: ",
};

export function slackMessage(
  incident: Incident,
  told: Told,
  config: AlertsConfig,
  answered: Answered | null = null,
): Readonly<Record<string, unknown>> {
  const title = `${TITLE[told]}${severityOf(incident)}: ${incident.kind} in job ${incident.job}`;
  const lines = [plain(title), plain(incident.summary)];
  if (told === "resolved") lines.push(plain(durationOf(incident)));
  else lines.push(descriptionOf(incident));
  const page = pageOf(incident, config);
  const said = answered === null ? [] : saidOf(incident, answered);
  const text = [...lines, ...said, ...(page === null ? [] : [page])].join("\n");
  const message = { text: slackEscaped(text), mrkdwn: false };
  if (!config.slackApp) return message;
  const elements = buttonsOf(incident, answered, page).map((id) => ({
    type: "button",
    action_id: id,
    text: { type: "plain_text", text: BUTTONS[id] },
    value: incident.id,
    ...(id === "faultline-open" ? { url: page } : {}),
  }));
  return {
    ...message,
    blocks: [
      section(lines.join("\n")),
      ...(said.length === 0 ? [] : [section(said.join("\n"))]),
      ...(elements.length === 0 ? [] : [{ type: "actions", elements }]),
    ],
  };
}

/** As the incident is now. */
export function toldNow({ state, relapses }: Incident): Told {
  return state === "resolved" ? "resolved" : relapses > 0 ? "relapsed" : "confirmed";
}

/** The three characters of Slack's markup, by its own rule. */
export function slackEscaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Whether a mute can be about this incident alone: without a cause it would cover all that happens to the job. */
export function isMutable({ kind, verdict }: Incident): boolean {
  return kind === "faulty-machine" || (verdict?.suspects.length ?? 0) > 0;
}

/** Only what would still change something. */
function buttonsOf(incident: Incident, answered: Answered | null, page: string | null): Button[] {
  const { state, verdict } = incident;
  const isOpen = state !== "resolved";
  const judged = answered?.handling.judgement?.isRight;
  const isKnown = answered !== null && acknowledgedNow(answered.handling, incident) !== null;
  const offered: Readonly<Record<Button, boolean>> = {
    "faultline-acknowledge": isOpen && !isKnown,
    "faultline-mute": isOpen && !answered?.mute && isMutable(incident),
    "faultline-right": verdict !== null && judged !== true,
    "faultline-wrong": verdict !== null && judged !== false,
    "faultline-open": page !== null && page.length <= MOST_SECTION,
  };
  return (Object.keys(BUTTONS) as Button[]).filter((id) => offered[id]);
}

function saidOf(incident: Incident, { handling, mute }: Answered): string[] {
  const acknowledged = acknowledgedNow(handling, incident);
  const { judgement } = handling;
  const lines: string[] = [];
  if (acknowledged)
    lines.push(`Acknowledged by ${acknowledged.who}, ${minuteOf(acknowledged.atMs)}.`);
  if (mute) lines.push(`Muted until ${minuteOf(mute.untilMs)} by ${mute.who}.`);
  if (judgement)
    lines.push(
      judgement.isRight
        ? `${judgement.who} says that this is right.`
        : `${judgement.who} says that this is wrong. What it was instead can be said on the page.`,
    );
  return lines.map((line) => plain(line));
}

function section(text: string): Readonly<Record<string, unknown>> {
  return {
    type: "section",
    text: { type: "plain_text", text: plainLines(text), emoji: false },
  };
}

/** Cut to Slack's limit; lines stay lines. */
function plainLines(text: string): string {
  const lines = text.split("\n").map((line) => plain(line));
  let cut = lines.join("\n");
  while (cut.length > MOST_SECTION && lines.length > 1) {
    lines.pop();
    cut = `${lines.join("\n")}\n…`;
  }
  return cut;
}

function minuteOf(ms: number): string {
  return `${new Date(bounded(ms)).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function durationOf({ onsetMs, resolvedMs, changedMs }: Incident): string {
  const seconds = Math.max(0, Math.round(((resolvedMs ?? changedMs) - onsetMs) / 1000));
  return seconds < 120 ? `It lasted ${seconds} s.` : `It lasted ${Math.round(seconds / 60)} min.`;
}
