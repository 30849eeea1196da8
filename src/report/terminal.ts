/**
 * The verdict for a tired person: who, what is wrong with it, what it does to the job, and what to do first; then the
 * proof, the culprit's own words before what others say of it. Colour is handed in, so that the same text serves terminals and files.
 */
import { cutText, harmless, percent, rankWords } from "../base/text.ts";
import type { LogExcerpt, StackExcerpt } from "../model/picture.ts";
import type { Action, Suspect, Verdict } from "../model/verdict.ts";
import { actionHead } from "./action-words.ts";
import { answerWords, stepsOf } from "./answer-words.ts";
import { evidenceGroups } from "./evidence-groups.ts";
import { planLines } from "./mitigation-words.ts";
import { ownerWords } from "./owner-words.ts";

export interface Colours {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const MAX_PROOFS = 6;
const MAX_OTHERS = 3;
const MAX_MISSING = 4;
/** Of the culprit's stack and log; the report has all. */
const MAX_FRAMES = 8;
const MAX_LOG_LINES = 14;
/** What follows the key line is mostly the aftermath. */
const LINES_AFTER_KEY = 1;

/** What the culprit itself left (pipeline/picture.ts). */
export interface OwnWords {
  readonly stacks: readonly StackExcerpt[];
  readonly logs: readonly LogExcerpt[];
}

const NONE: OwnWords = { stacks: [], logs: [] };

export function renderTerminal(
  given: Verdict,
  colours: Colours,
  width: number,
  ownWords: OwnWords = NONE,
): string {
  const verdict = cleaned(given);
  const { bold, dim, red, green, yellow, cyan } = colours;
  const kind = verdict.kind.toUpperCase();
  const paint = verdict.kind === "healthy" ? green : verdict.suspects.length > 0 ? red : yellow;
  const words = answerWords(verdict);
  const [first, ...others] = verdict.suspects;
  const lines: string[] = [];
  const section = (title: string, body: readonly string[]): void => {
    if (body.length > 0) lines.push(dim(title), ...body, "");
  };
  lines.push(`${bold(paint(kind))}  ${dim(factsText(verdict))}`);
  lines.push(...wrap(words.headline, width).map((line) => bold(line)));
  lines.push(...wrap(words.effect, width));
  if (words.waiting !== "") lines.push(dim(cutText(`only waiting: ${words.waiting}`, width)));
  if (words.where.length > 0) lines.push(dim(cutText(words.where.join(" · "), width)));
  lines.push("");

  const steps = stepsOf(verdict);
  const stepLines = (action: Action): string[] => {
    const [head = "", ...rest] = wrap(`${actionHead(action)}: ${action.why}`, width - 4);
    const command = action.command === undefined ? [] : [`    ${cyan(`$ ${action.command}`)}`];
    return [`  ${head}`, ...rest.map((line) => `    ${line}`), ...command];
  };
  const owner = verdict.owner ? ` (${ownerWords(verdict.owner)})` : "";
  section(`do first${owner}`, steps.first ? stepLines(steps.first) : []);
  section("then", steps.next.flatMap(stepLines));

  if (verdict.mitigation && verdict.mitigation.steps.length > 0) {
    const { assumes } = verdict.mitigation;
    section("until it is fixed", [
      ...planLines(verdict.mitigation).flatMap((text) =>
        wrap(text.trimStart(), width - 4).map((line) => `${indentOf(text)}${line}`),
      ),
      ...(assumes.length === 0
        ? []
        : wrap(`assuming ${assumes.join("; ")}`, width - 4).map((line) => dim(`  ${line}`))),
    ]);
  }

  section("proof", [
    ...(first && first.why !== "" ? wrap(first.why, width - 2).map((line) => `  ${line}`) : []),
    ...ownWords.stacks.slice(0, 1).flatMap((stack) => stackLines(cleaned(stack), width, colours)),
    ...ownWords.logs.slice(0, 1).flatMap((log) => logLines(cleaned(log), width, colours)),
    ...proofLines(verdict, width, colours),
  ]);
  section("also possible, but less likely", othersLines(verdict, others, width));
  section("missing or odd", [
    ...verdict.missing.slice(0, MAX_MISSING).map((text) => `  ${cutText(text, width - 2)}`),
    ...more(verdict.missing.length - MAX_MISSING, "more in verdict.json", dim),
  ]);
  section(
    "would help",
    verdict.wouldHelp.flatMap((text) => wrap(text, width - 2).map((line) => `  ${line}`)),
  );
  return lines.join("\n");
}

/** The culprit's main thread, innermost first. */
function stackLines(
  { rank, file, frames, leftOut }: StackExcerpt,
  width: number,
  { cyan, dim }: Colours,
): string[] {
  const shown = frames.slice(0, MAX_FRAMES);
  const rest = frames.length - shown.length + leftOut;
  return [
    `  rank ${rank}'s Python stands at ${cyan(cutText(file, width - 30))}`,
    ...shown.map((frame) => cutText(`      ${frame}`, width)),
    ...more(rest, "outer frame", dim),
  ];
}

/** The end of the culprit's own log, with its key lines marked. */
function logLines(
  { rank, file, lines }: LogExcerpt,
  width: number,
  { cyan, dim }: Colours,
): string[] {
  const key = lines.findLastIndex(({ isKey }) => isKey);
  const end = key < 0 ? lines.length : key + 1 + LINES_AFTER_KEY;
  const at = Math.max(0, end - MAX_LOG_LINES);
  const shown = lines.slice(at, end);
  return [
    `  ${rank === null ? "the log" : `rank ${rank}'s log`} ${cyan(cutText(file, width - 20))}`,
    ...shown.map(({ line, text, isKey }) =>
      cutText(`    ${isKey ? ">" : " "} ${line ?? ""} ${text}`, width),
    ),
    ...more(at, "earlier line", dim),
  ];
}

/** What methods found: alike as one line, those that decided first. */
function proofLines(verdict: Verdict, width: number, { cyan, dim }: Colours): string[] {
  // The suspect's reason is made of these, and stands above: only their places are new.
  const said = new Set(verdict.suspects[0]?.evidence);
  const places = verdict.findings
    .filter(({ id }) => said.has(id))
    .flatMap(({ at }) => at.slice(0, 1))
    .map(({ file, line }) => (line ? `${file}:${line}` : file));
  const groups = evidenceGroups(verdict).filter(({ first }) => !said.has(first.id));
  const shown = groups.slice(0, MAX_PROOFS);
  return [
    ...[...new Set(places)].map((place) => `    ${cyan(cutText(place, width - 4))}`),
    ...shown.flatMap(({ first: { says, at }, alike }) => {
      const count = alike.length === 0 ? "" : ` (and ${alike.length} alike)`;
      const [head = "", ...rest] = wrap(`${says}${count}`, width - 4);
      const [place] = at;
      const files = new Set(at.map(({ file }) => file)).size;
      const others = files > 1 ? ` and ${files - 1} more` : "";
      const where = place ? `${place.file}${place.line ? `:${place.line}` : ""}${others}` : "";
      return [
        `  ${head}`,
        ...rest.slice(0, 2).map((line) => `    ${line}`),
        ...(where === "" ? [] : [`    ${cyan(cutText(where, width - 4))}`]),
      ];
    }),
    ...more(groups.length - shown.length, "more finding", dim),
  ];
}

/** Further suspects, then who was accused and not believed. */
function othersLines(verdict: Verdict, suspects: readonly Suspect[], width: number): string[] {
  const said = [
    ...suspects.map(
      ({ ranks, machine, name, cause, why }) =>
        `${ranks.length > 0 ? rankWords(ranks) : (name ?? machine ?? "the job")}, ${cause}: ${why}`,
    ),
    ...(verdict.reasoning?.conflicts ?? []).map(({ who, why }) => `${who}: ${why}`),
  ];
  const rest = said.length - MAX_OTHERS;
  return [
    ...said.slice(0, MAX_OTHERS).flatMap((text) => indented(text, width - 2)),
    ...(rest > 0 ? [`  … ${rest} more in verdict.json`] : []),
  ];
}

function indented(text: string, width: number): string[] {
  const [first = "", ...rest] = wrap(text, width);
  return [`  ${first}`, ...(rest.length > 0 ? [`    ${cutText(rest.join(" "), width - 2)}`] : [])];
}

/** Every text may quote a stranger's file; a finding's figures are not printed. */
function cleaned<Value>(value: Value): Value {
  const clean = (one: unknown): unknown => {
    if (typeof one === "string") return harmless(one);
    if (Array.isArray(one)) return one.map(clean);
    if (typeof one !== "object" || one === null) return one;
    return Object.fromEntries(
      Object.entries(one).map(([key, part]) => [key, key === "data" ? part : clean(part)]),
    );
  };
  return clean(value) as Value;
}

function more(rest: number, what: string, dim: (text: string) => string): string[] {
  return rest > 0
    ? [dim(`  … ${rest} ${what}${what.endsWith("json") || rest === 1 ? "" : "s"}`)]
    : [];
}

/** The one number, when, and which job. */
function factsText({ confidence, when, job = "" }: Verdict): string {
  const { iteration, from } = when;
  return [
    `confidence ${percent(confidence)}`,
    iteration === null ? "" : `iteration ${iteration}`,
    from ?? "",
    job === "" ? "" : `job ${cutText(job, 60)}`,
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  if (line !== "") lines.push(line);
  return lines;
}

/** Steps stand out from what belongs to them. */
function indentOf(text: string): string {
  return text.startsWith(" ") ? "    " : "  ";
}
