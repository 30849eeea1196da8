/** An incident for a ticket: what a person needs to take over, in Markdown, small enough for any tracker. */
import { cutText, ranges, thousands, capital } from "../base/text.ts";
import type { Place } from "../model/ids.ts";
import type { Incident } from "../model/incident.ts";
import {
  type IncidentPicture,
  type LogExcerpt,
  type StackExcerpt,
  type StoryHop,
} from "../model/picture.ts";
import type { Action, Suspect, Verdict } from "../model/verdict.ts";
import { gainOf, gainWords } from "./action-gain.ts";
import { splitCommands } from "./html/commands.ts";
import { markdownCode, markdownFence, markdownText } from "./markdown-escape.ts";
import { stepHead, stepHow, stepWhen, time } from "./mitigation-words.ts";
import { MOST_CHANGES, MOST_CONFLICTS, sentence, validationWords } from "./reasoning-words.ts";
import { actionTitle } from "./action-words.ts";
import { answerWords, stepsOf, sureWords } from "./answer-words.ts";
import { type EvidenceGroup, evidenceGroups } from "./evidence-groups.ts";
import { outcomeWords } from "./outcome-words.ts";
import { causeWords } from "./parts/cause-words.ts";
import { utcWords } from "./parts/moment.tsx";
import { barName } from "./parts/story-bars.tsx";
import { storyTitle } from "./parts/story.tsx";
import { suspectName } from "./parts/suspects.tsx";
import { ownerWords } from "./owner-words.ts";

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
  const shown = picture ?? null;
  const blocks = [
    ...headBlocks(incident ?? null, incident?.job ?? job ?? verdict.job ?? "", verdict, link),
    ...actionBlocks(incident ?? null, verdict),
    ...suspectBlocks(verdict),
    ...stackBlocks(shown?.stacks ?? []),
    ...logBlocks(shown?.logs ?? []),
    ...reasoningBlocks(verdict),
    ...storyBlocks(shown),
    ...listBlock("Evidence", evidenceGroups(verdict).map(evidenceWords), 40),
    ...listBlock("What is missing", [...verdict.missing, ...(shown?.lacks ?? [])].map(said), 30),
    ...listBlock("What would help", verdict.wouldHelp.map(advice), 10),
  ];
  return within(blocks);
}

function headBlocks(
  incident: Incident | null,
  name: string,
  verdict: Verdict,
  link: string | null | undefined,
): string[] {
  const { kind, when, owner } = verdict;
  const { headline, effect, where, waiting } = answerWords(verdict);
  const job = name === "" ? "" : `, ${markdownText(name, 120)}`;
  const since = when.from ?? (incident ? new Date(incident.onsetMs).toISOString() : null);
  // What a verdict calls the end is that of the records it looked at; an incident that is open has none.
  const resolved = incident?.resolvedMs ?? null;
  const until = incident ? (resolved === null ? null : new Date(resolved).toISOString()) : when.to;
  const facts = [
    `Confidence: ${sureWords(verdict.confidence)}`,
    since === null ? "" : `Since: ${momentWords(since)}`,
    until === null ? "" : `Until: ${momentWords(until)}`,
    when.iteration === null ? "" : `Iteration: ${when.iteration}`,
    owner === null ? "" : `Owner: ${markdownText(ownerWords(owner), 80)}`,
    where.length === 0 ? "" : `Where: ${markdownText(where.join(" · "), 300)}`,
    waiting === "" ? "" : `Only waiting, not at fault: ${markdownText(waiting, 300)}`,
    incident ? `State: ${incident.state}` : "",
    incident?.validation ? `Tests: ${said(validationWords(incident.validation))}` : "",
    incident && incident.wastedGpuMs > 0
      ? `Lost so far: ${Number((incident.wastedGpuMs / 3_600_000).toPrecision(3))} GPU-hours`
      : "",
    // Ours, but addresses with a bracket or a space would end the link.
    link !== null && link !== undefined && /^https?:\/\/[^\s<>]+$/.test(link)
      ? `Page: <${link}>`
      : "",
  ].filter((fact) => fact !== "");
  return [
    `# ${capital(markdownText(kind, 40))}${job}`,
    `**${said(headline)}**`,
    ...(effect === "" ? [] : [said(effect)]),
    facts.map((fact) => `- ${fact}`).join("\n"),
  ];
}

function suspectBlocks({ suspects }: Verdict): string[] {
  return listBlock(
    suspects.length === 1 ? "Suspect" : "Suspects",
    suspects.length === 0 ? ["Nobody."] : suspects.map(suspectWords),
    12,
  );
}

function suspectWords(suspect: Suspect): string {
  const { ranks, machine, link, cause, why } = suspect;
  const where = [
    machine !== null && ranks.length > 0 ? ` on ${markdownText(machine, 120)}` : "",
    link ? ` between ${markdownText(link[0], 120)} and ${markdownText(link[1], 120)}` : "",
  ].join("");
  return (
    `**${markdownText(suspectName(suspect), 200)}**${where}: ${lower(causeWords(cause))} (${markdownCode(cause, 40)})` +
    (why === "" ? "." : `; ${sentence(said(why))}`)
  );
}

/** The culprit's main thread, innermost first. */
function stackBlocks(stacks: readonly StackExcerpt[]): string[] {
  if (stacks.length === 0) return [];
  return [
    "## Where the culprit stands",
    ...stacks
      .slice(0, 4)
      .flatMap(({ rank, file, frames, leftOut }) => [
        `Rank ${rank}, by ${markdownCode(file, 200)}`,
        markdownFence([
          ...frames.slice(0, 64).map((frame) => cutText(frame, MOST_LINE)),
          ...(leftOut > 0 ? [`… ${leftOut} more`] : []),
        ]),
      ]),
  ];
}

/** Who disagrees and what would change it; nothing of a verdict that does not say. */
function reasoningBlocks(verdict: Verdict): string[] {
  const { conflicts = [], wouldChange = [] } = verdict.reasoning ?? {};
  const accused = conflicts.map(
    ({ who, cause, why }) =>
      `**${markdownText(who, 120)}**: ${lower(causeWords(cause))}. Less likely: ${sentence(said(why))}`,
  );
  return [
    ...listBlock("Other suspects", accused, MOST_CONFLICTS),
    ...listBlock("What would change this", wouldChange.map(advice), MOST_CHANGES),
  ];
}

function evidenceWords({ first: { says, at }, alike }: EvidenceGroup): string {
  const places = at.slice(0, 2).map(placeCode);
  const rest = at.length - places.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  const count = alike.length > 0 ? `; ${alike.length} more alike` : "";
  return `${said(says)}${count}${places.length > 0 ? ` (${places.join(", ")}${more})` : ""}`;
}

function placeCode({ file, line }: Place): string {
  return markdownCode(line ? `${file}:${line}` : file, 200);
}

function storyBlocks(picture: IncidentPicture | null): string[] {
  const story = picture?.story;
  if (!story) return [];
  const hops = story.hops.map(
    (hop, i) =>
      `${i + 1}. **${markdownText(hop.title, 200)}.** ${said(hop.says)}${hopFigures(hop)}`,
  );
  return [`## ${storyTitle(story)}`, hops.join("\n"), said(story.ends)].filter((one) => one !== "");
}

/** Who never came, and how long the others have waited; who is slow, and its peers. */
function hopFigures({ bars }: StoryHop): string {
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
      .map(
        (bar) =>
          `${markdownText(barName(bar), 120)}: ${time(bar.ms!)}${bar.beforeMs === null ? "" : `, before ${time(bar.beforeMs)}`}`,
      ),
    middle === undefined || others.length === 0 ? "" : `the others: ${time(middle)}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}

function actionBlocks(incident: Incident | null, verdict: Verdict): string[] {
  const plan = verdict.mitigation ?? null;
  const words = (action: Action): string => {
    const { target, why, command } = action;
    const gain = gainOf(action, verdict);
    const run = command === undefined ? "" : ` ${markdownCode(command, MOST_LINE)}`;
    return `**${markdownText(actionTitle(action), 80)}** ${markdownText(target, 200)}: ${sentence(advice(why))}${run}${gain ? ` Expected: ${gainWords(gain)}.` : ""}`;
  };
  const { first, next } = stepsOf(verdict);
  const steps = (plan?.steps ?? []).map((step) =>
    [stepHead(step, plan!), stepWhen(step, plan!), ...stepHow(step)]
      .map((one) => markdownText(one, MOST_SENTENCE))
      .join(". "),
  );
  const proposals = (incident?.actions ?? []).map((action) => {
    const outcome = outcomeWords(action);
    return `${words(action)} State: ${action.state}.${outcome === "" ? "" : ` ${said(outcome)}`}`;
  });
  return [
    ...listBlock("Do first", first ? [words(first)] : [], 1),
    ...listBlock("Then", next.map(words), 12),
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

/** Advice with its commands as code; markdownText trims, so the spaces around a piece are put back. */
function advice(text: string): string {
  return splitCommands(text.slice(0, MOST_SENTENCE))
    .map(({ text: piece, isCommand }) => {
      if (isCommand) return markdownCode(piece, MOST_LINE);
      const [before, after] = [/^\s/.test(piece) ? " " : "", /\s$/.test(piece) ? " " : ""];
      return `${before}${markdownText(piece, MOST_SENTENCE)}${after}`;
    })
    .join("")
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
