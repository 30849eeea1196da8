/** An incident in the words of an alert. Whatever comes from logs and names may become text somewhere, never markup. */
import { capital, cutText, harmless, rankWords } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import { actionHead } from "../../../report/action-words.ts";
import type { AlertsConfig } from "./types.ts";

const MOST_LABEL = 200;
const MOST_TEXT = 1000;
const MOST_ACTIONS = 4;

export type Severity = "critical" | "warning";

export function severityOf({ kind }: Incident): Severity {
  return kind === "hang" || kind === "crash" ? "critical" : "warning";
}

/**
 * Text that stays text wherever it is pasted: Alertmanager's own receivers put annotations into Slack, mail and pages,
 * some without escaping.
 */
export function plain(text: string, most = MOST_TEXT): string {
  const words = harmless(text)
    .replaceAll("<", "‹")
    .replaceAll(">", "›")
    // A masked link of Markdown, and words that wake up a whole channel.
    .replaceAll("](", "] (")
    .replace(/@(?=channel|here|everyone|all\b)/giu, "@\u200b");
  // The cut may halve a pair of surrogates.
  return cutText(words, most).replace(/\p{Cs}/gu, "\ufffd");
}

/** They make the alert's identity: worked out once, when the incident is first told. */
export function labelsOf(incident: Incident): Record<string, string> {
  const { verdict } = incident;
  const first = verdict?.suspects[0];
  // Of a link between two machines, none of the two is the machine.
  const machine = first?.machines ? null : (first?.machine ?? incident.machines[0]);
  return {
    alertname: "FaultlineIncident",
    job: plain(incident.job, MOST_LABEL),
    kind: incident.kind,
    cause: first?.cause ?? "unknown",
    ...(machine === undefined || machine === null ? {} : { machine: plain(machine, MOST_LABEL) }),
    ...(verdict?.owner ? { owner: verdict.owner } : {}),
    severity: severityOf(incident),
    incident: plain(incident.id, MOST_LABEL),
  };
}

export function annotationsOf(incident: Incident, config: AlertsConfig): Record<string, string> {
  const runbook = runbookOf(incident, config);
  return {
    summary: plain(incident.summary),
    description: descriptionOf(incident),
    ...(runbook === null ? {} : { runbook_url: runbook }),
  };
}

/** The page of the service, which shows the incident. */
export function pageOf(incident: Incident, { externalUrl }: AlertsConfig): string | null {
  const base = baseOf(externalUrl);
  return base === null ? null : `${base}/#/incidents/${inUrl(incident.id)}`;
}

/** What it does to the job and who waits, since when, what to do first, how sure; a line each. */
export function descriptionOf(incident: Incident): string {
  const { verdict } = incident;
  const since = new Date(bounded(incident.onsetMs)).toISOString().replace(/\.\d+Z$/, "Z");
  const at = incident.fromIteration === null ? "" : `, iteration ${incident.fromIteration}`;
  const lines = [`Since ${since}${at}.`];
  const { answer, suspects: [first, ...others] = [] } = verdict ?? {};
  if (first) {
    const who =
      answer?.who ??
      [first.name ?? first.machine, first.ranks.length === 0 ? null : rankWords(first.ranks)]
        .filter((part) => part !== null)
        .join(", ");
    const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
    const where = answer && answer.where.length > 0 ? ` ${capital(answer.where.join(", "))}.` : "";
    lines.push(`Suspect: ${who}${more}, ${first.cause}. ${first.why}.${where}`);
  }
  for (const action of verdict?.actions.slice(0, MOST_ACTIONS) ?? []) {
    const command = action.command === undefined ? "" : `: ${action.command}`;
    lines.push(`To do: ${actionHead(action)}: ${action.why}${command}`);
  }
  if (verdict) lines.push(`Confidence ${Math.round(verdict.confidence * 100)} %.`);
  return lines.map((line) => plain(line)).join("\n");
}

export type Told = "confirmed" | "resolved" | "relapsed";

const MOST_WEBHOOK_LENGTH = 256 << 10;

/** The incident as the API has it; findings and inputs of a verdict are left out where they are a flood. */
export function webhookBody(incident: Incident, told: Told, config: AlertsConfig): string {
  const head = { event: told, severity: severityOf(incident), url: pageOf(incident, config) };
  const whole = JSON.stringify({ ...head, incident });
  if (whole.length <= MOST_WEBHOOK_LENGTH || !incident.verdict) return whole;
  const verdict = { ...incident.verdict, findings: [], inputs: [], victims: [] };
  return JSON.stringify({ ...head, isCut: true, incident: { ...incident, verdict } });
}

/** Without a runbook of their own, people get what the service says is to be done. */
function runbookOf(incident: Incident, config: AlertsConfig): string | null {
  const { runbookUrl } = config;
  if (runbookUrl === undefined || runbookUrl === null || runbookUrl === "") {
    const base = baseOf(config.externalUrl);
    return base === null ? null : `${base}/api/v1/incidents/${inUrl(incident.id)}`;
  }
  const cause = incident.verdict?.suspects[0]?.cause ?? "unknown";
  return runbookUrl
    .replaceAll("{cause}", inUrl(cause))
    .replaceAll("{kind}", inUrl(incident.kind))
    .replaceAll("{job}", inUrl(incident.job));
}

function baseOf(externalUrl: string | null | undefined): string | null {
  return externalUrl === undefined || externalUrl === null || externalUrl === ""
    ? null
    : externalUrl.replace(/\/+$/, "");
}

/** Halves of surrogate pairs, which encodeURIComponent throws at, are gone after `plain`. */
function inUrl(text: string): string {
  return encodeURIComponent(plain(text, MOST_LABEL));
}

/** A moment of RFC 3339, whatever a broken clock said. */
export function bounded(ms: number): number {
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), 253_402_300_799_000) : 0;
}
