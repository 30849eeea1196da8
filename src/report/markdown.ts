/** An incident for a ticket: what a person needs to take over, in Markdown, small enough for any tracker. */
import { cutText, ranges, rankWords, thousands, percent, capital } from "../base/text.ts";
import type { Place } from "../model/ids.ts";
import type { Incident } from "../model/incident.ts";
import type { IncidentPicture, LogExcerpt, StoryHop } from "../model/picture.ts";
import type { Action, Suspect, Verdict } from "../model/verdict.ts";
import { gainOf, gainWords } from "./action-gain.ts";
import { splitCommands } from "./html/commands.ts";
import { markdownCode, markdownFence, markdownText } from "./markdown-escape.ts";
import { stepHead, stepHow, stepWhen, time } from "./mitigation-words.ts";
import {
  confidenceWords,
  decidingFindings,
  inOrderOfWeight,
  MOST_CHANGES,
  MOST_CONFLICTS,
  MOST_DECIDING,
  sentence,
  timesWords,
  unsaid,
} from "./reasoning-words.ts";
import { causeWords } from "./parts/cause-words.ts";
import { utcWords } from "./parts/moment.tsx";
import { suspectName } from "./parts/suspects.tsx";
import { changeWords } from "./parts/what-if.tsx";

/** Trackers refuse more: GitHub 65,536 characters, others 64 KB. */
export const MOST_BYTES = 60_000;
const MOST_SENTENCE = 600;
const MOST_LINE = 300;

interface IncidentExport {
  /** What the job is called, where there is no incident that says so. */
  readonly job?: string | null;
  readonly incident?: Incident | null;
  readonly verdict: Verdict;
  readonly picture?: IncidentPicture | null;
  /** Of the incident's page; ours, written as it is. */
  readonly link?: string | null;
}

export function incidentMarkdown({
  incident,
  job,
  verdict,
  picture,
  link,
}: IncidentExport): string {
  const blocks = [
    ...headBlocks(incident ?? null, incident?.job ?? job ?? "", verdict, link ?? null),
    ...suspectBlocks(verdict),
    ...reasoningBlocks(verdict),
    ...storyBlocks(picture ?? null),
    ...whatIfBlocks(picture ?? null),
    ...actionBlocks(incident ?? null, verdict),
    ...listBlock("Evidence", inOrderOfWeight(verdict).map(evidenceWords(verdict)), 40),
    ...logBlocks(picture?.logs ?? []),
    ...listBlock("What is missing", [...verdict.missing, ...(picture?.lacks ?? [])].map(said), 30),
    ...listBlock("What would help", verdict.wouldHelp.map(said), 10),
  ];
  return within(blocks);
}

function headBlocks(
  incident: Incident | null,
  name: string,
  verdict: Verdict,
  link: string | null,
): string[] {
  const { kind, when, owner } = verdict;
  const job = name === "" ? "" : `, ${markdownText(name, 120)}`;
  const since = when.from ?? (incident ? new Date(incident.onsetMs).toISOString() : null);
  // What a verdict calls the end is that of the records it looked at; an incident that is open has none.
  const resolved = incident?.resolvedMs ?? null;
  const until = incident ? (resolved === null ? null : new Date(resolved).toISOString()) : when.to;
  const facts = [
    `Confidence: ${percent(verdict.confidence)}, ${confidenceWords(verdict.confidence)}`,
    since === null ? "" : `Since: ${momentWords(since)}`,
    until === null ? "" : `Until: ${momentWords(until)}`,
    when.iteration === null ? "" : `Iteration: ${when.iteration}`,
    owner === null ? "" : `Owner: ${markdownText(owner, 40)}`,
    incident ? `State: ${incident.state}` : "",
    incident && incident.wastedGpuMs > 0
      ? `Lost so far: ${Number((incident.wastedGpuMs / 3_600_000).toPrecision(3))} GPU-hours`
      : "",
    // Ours, but addresses with a bracket or a space would end the link.
    link !== null && /^https?:\/\/[^\s<>]+$/.test(link) ? `Page: <${link}>` : "",
  ].filter((fact) => fact !== "");
  return [
    `# ${capital(markdownText(kind, 40))}${job}`,
    `**${said(verdict.summary)}**`,
    facts.map((fact) => `- ${fact}`).join("\n"),
  ];
}

function suspectBlocks(verdict: Verdict): string[] {
  const { suspects, victims } = verdict;
  const decided = decidingFindings(verdict).map(({ finding }) => finding.says);
  const waiting = victims.length > 0 ? [`Only waiting, not at fault: ${rankWords(victims)}.`] : [];
  return [
    ...listBlock(
      suspects.length === 1 ? "Suspect" : "Suspects",
      suspects.length === 0
        ? ["Nobody."]
        : suspects.map((one, i) =>
            suspectWords(i === 0 ? { ...one, why: unsaid(one.why, decided) } : one),
          ),
      12,
    ),
    ...waiting,
  ];
}

function suspectWords(suspect: Suspect): string {
  const { ranks, machine, link, cause, score, why, evidence } = suspect;
  const where = [
    machine !== null && ranks.length > 0 ? ` on ${markdownText(machine, 120)}` : "",
    link ? ` between ${markdownText(link[0], 120)} and ${markdownText(link[1], 120)}` : "",
  ].join("");
  const grounds = evidence.slice(0, 12).map((id) => markdownCode(id, 40));
  return (
    `**${markdownText(suspectName(suspect), 200)}**${where}: ${lower(causeWords(cause))} (${markdownCode(cause, 40)}), ` +
    `score ${percent(score)}${why === "" ? "." : `; ${sentence(said(why))}`}${grounds.length > 0 ? ` Evidence: ${grounds.join(", ")}.` : ""}`
  );
}

/** Why, who disagrees, what would change it; nothing of a verdict that does not say. */
function reasoningBlocks(verdict: Verdict): string[] {
  const { conflicts = [], wouldChange = [] } = verdict.reasoning ?? {};
  const decided = decidingFindings(verdict).map(({ finding: { id, says, at }, times }) => {
    const facts = [
      markdownCode(id, 40),
      timesWords(times),
      ...at.slice(0, 2).map(placeCode),
    ].filter((fact) => fact !== "");
    return `${said(says)} (${facts.join(", ")})`;
  });
  const accused = conflicts.map(({ who, cause, probability, findings, why }) => {
    const ids = findings.slice(0, 8).map((id) => markdownCode(id, 40));
    return (
      `**${markdownText(who, 120)}**: ${lower(causeWords(cause))} (${markdownCode(cause, 40)}), ${percent(probability)}` +
      `${ids.length > 0 ? `, by ${ids.join(", ")}` : ""}. Less likely: ${sentence(said(why))}`
    );
  });
  return [
    ...listBlock("Why", decided, MOST_DECIDING),
    ...listBlock("Other suspects", accused, MOST_CONFLICTS),
    ...listBlock("What would change this", wouldChange.map(advice), MOST_CHANGES),
  ];
}

function evidenceWords(verdict: Verdict): (finding: Verdict["findings"][number]) => string {
  const decided = new Set(decidingFindings(verdict).map(({ finding }) => finding.id));
  return ({ id, method, says, weight, at }) => {
    const head = `${markdownCode(id, 40)} ${markdownCode(method, 80)}, weight ${percent(weight)}`;
    if (decided.has(id)) return `${head}: see above`;
    const places = at.slice(0, 3).map(placeCode);
    return `${head}: ${said(says)}${places.length > 0 ? ` (${places.join(", ")})` : ""}`;
  };
}

function placeCode({ file, line }: Place): string {
  return markdownCode(line ? `${file}:${line}` : file, 200);
}

function storyBlocks(picture: IncidentPicture | null): string[] {
  const story = picture?.story;
  if (!story) return [];
  const iteration =
    story.iteration === null
      ? ""
      : `Iteration ${story.iteration}, from a waiting rank to the one that all wait for:`;
  const hops = story.hops.map(
    (hop, i) =>
      `${i + 1}. **${markdownText(hop.title, 200)}.** ${said(hop.says)}${hopFigures(hop)}`,
  );
  return ["## How it spread", iteration, hops.join("\n"), said(story.ends)].filter(
    (one) => one !== "",
  );
}

/** Who came last or never, and how long the others were there before. */
function hopFigures({ kind, bars }: StoryHop): string {
  const absent = bars.filter(({ role }) => role === "absent").map(({ rank }) => rank);
  const others = bars.flatMap(({ ms, role }) => (ms !== null && role === "waits" ? [ms] : []));
  const late = bars.filter(({ ms, role }) => ms !== null && role === "late");
  const middle = others.toSorted((a, b) => a - b)[others.length >> 1];
  const parts = [
    absent.length > 0
      ? `never arrived: ${absent.length === 1 ? "rank" : "ranks"} ${ranges(absent)}`
      : "",
    ...late
      .slice(0, 3)
      .map(({ rank, ms, beforeMs }) =>
        kind === "own"
          ? `rank ${rank}: ${time(ms!)}${beforeMs === null ? "" : `, before ${time(beforeMs)}`}`
          : `rank ${rank} arrived ${time(ms!)} before the end`,
      ),
    middle === undefined || others.length === 0 ? "" : `the others: ${time(middle)}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}

function whatIfBlocks(picture: IncidentPicture | null): string[] {
  const whatIf = picture?.whatIf;
  if (!whatIf) return [];
  const nowMs = whatIf.bars.find(({ kind }) => kind === "now")?.ms;
  const rows = whatIf.bars.slice(0, 12).map(({ label, ms, kind }) => {
    const change = kind === "now" ? "" : changeWords(ms, nowMs);
    return `- ${markdownText(label, 160)}: ${time(ms)}${change === "" ? "" : ` (${change})`}`;
  });
  return ["## What if", said(whatIf.says), rows.join("\n")];
}

function actionBlocks(incident: Incident | null, verdict: Verdict): string[] {
  const plan = verdict.mitigation ?? null;
  const planned = new Set(plan?.steps.map((step) => step.do));
  const words = ({ do: what, target, why }: Action): string => {
    const gain = gainOf({ do: what, target }, plan);
    return `**${markdownText(what, 80)}** ${markdownText(target, 200)}: ${sentence(advice(why))}${gain ? ` Expected: ${gainWords(gain)}.` : ""}`;
  };
  const steps = (plan?.steps ?? []).map((step) =>
    [stepHead(step, plan!), stepWhen(step, plan!), ...stepHow(step)]
      .map((one) => markdownText(one, MOST_SENTENCE))
      .join(". "),
  );
  const proposals = (incident?.actions ?? []).map((action) => {
    const outcome = action.outcome === "" ? "" : ` ${markdownCode(action.outcome, 400)}`;
    return `${words(action)} State: ${action.state}.${outcome}`;
  });
  return [
    ...listBlock(
      "What to do",
      verdict.actions.filter((one) => !planned.has(one.do)).map(words),
      12,
    ),
    ...listBlock("Until it is fixed", steps, 6),
    ...listBlock("Proposed actions", proposals, 20),
  ];
}

function logBlocks(logs: readonly LogExcerpt[]): string[] {
  if (logs.length === 0) return [];
  return [
    "## Log lines",
    ...logs.slice(0, 6).flatMap(({ file, rank, node, lines }) => {
      const who = [
        rank === null ? "" : `rank ${rank}`,
        node === null ? "" : markdownText(node, 120),
      ].filter((one) => one !== "");
      const rows = lines.slice(0, 30).map(({ line, text, isKey, timeMs, count }) => {
        const clock = timeMs === null ? "" : `${utcWords(timeMs)} `;
        const times = count > 1 ? ` (${thousands(count)} times)` : "";
        return `${isKey ? "> " : "  "}${line ?? ""} ${clock}${cutText(text, MOST_LINE)}${times}`;
      });
      return [
        // No line begins with backticks but fences do: not all readers look further.
        `In ${markdownCode(file, 200)}${who.length > 0 ? ` (${who.join(", ")})` : ""}; key lines start with &gt;`,
        markdownFence(rows),
      ];
    }),
  ];
}

function listBlock(title: string, items: readonly string[], most: number): string[] {
  if (items.length === 0) return [];
  const rest = items.length - most;
  const rows = items.slice(0, most).map((item) => `- ${item}`);
  if (rest > 0) rows.push(`- … ${rest} more`);
  return [`## ${title}`, rows.join("\n")];
}

/** Whole blocks only: a cut through a fence would turn the rest of a ticket into code. */
function within(blocks: readonly string[]): string {
  const encoder = new TextEncoder();
  const end = "… The rest is left out: the verdict's JSON has all of it.";
  let left = MOST_BYTES - 200;
  const kept: string[] = [];
  for (const block of blocks) {
    left -= encoder.encode(block).length + 2;
    if (left < 0) {
      kept.push(end);
      break;
    }
    kept.push(block);
  }
  return `${kept.join("\n\n")}\n`;
}

function said(text: string): string {
  return markdownText(text, MOST_SENTENCE);
}

/** Advice with its commands as code. */
function advice(text: string): string {
  const pieces = splitCommands(text.slice(0, MOST_SENTENCE)).map(({ text: piece, isCommand }) =>
    isCommand ? markdownCode(piece, MOST_LINE) : markdownText(piece, MOST_SENTENCE),
  );
  return pieces
    .join(" ")
    .replace(/ ([,.;:)])/g, "$1")
    .trim();
}

function momentWords(text: string): string {
  const ms = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? markdownText(text, 80) : utcWords(ms);
}

function lower(words: string): string {
  return /^[A-Z][a-z]/.test(words) && !words.startsWith("Python")
    ? `${words[0]!.toLowerCase()}${words.slice(1)}`
    : words;
}
