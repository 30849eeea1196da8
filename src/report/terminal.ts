/**
 * The verdict for a tired person: at most one screen. The answer first, then why, then where to look,
 * then what to do. Colour is handed in, so that the same text serves terminals and files.
 */
import { count, cutText, harmless, ranges, percent } from "../base/text.ts";
import { planLines } from "./mitigation-words.ts";
import { decidingFindings, inOrderOfWeight } from "./reasoning-words.ts";
import type { Reasoning } from "../model/reasoning.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";

export interface Colours {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const MAX_SUSPECTS = 4;
const MAX_EVIDENCE = 5;
/** What makes room for the lines that say who disagrees and what would change it: one screen all the same. */
const MAX_GIVEN_UP = 2;
const MAX_MISSING = 4;

export function renderTerminal(given: Verdict, colours: Colours, width: number): string {
  const verdict = cleaned(given);
  const { bold, dim, red, green, yellow, cyan } = colours;
  const kind = verdict.kind.toUpperCase();
  const paint = verdict.kind === "healthy" ? green : verdict.suspects.length > 0 ? red : yellow;
  const lines: string[] = [];
  lines.push(
    `${bold(paint(kind))}  ${dim(`confidence ${percent(verdict.confidence)}`)}${whenText(verdict, dim)}`,
  );
  lines.push(...wrap(verdict.summary, width).map((line) => bold(line)), "");

  if (verdict.suspects.length > 0) {
    lines.push(dim("suspects"));
    for (const suspect of verdict.suspects.slice(0, MAX_SUSPECTS)) {
      const who =
        suspect.ranks.length > 0
          ? `${suspect.ranks.length === 1 ? "rank" : "ranks"} ${ranges(suspect.ranks, 6)}`
          : suspect.type;
      const joint = who === "machine" ? " " : " on ";
      const machine = suspect.machine ? `${joint}${suspect.machine}` : "";
      lines.push(
        `  ${bold(who + machine)}  ${yellow(suspect.cause)}  ${dim(`${percent(suspect.score)} · ${suspect.evidence.join(", ")}`)}`,
      );
      lines.push(...whyLines(suspect, width).map((line) => `    ${line}`));
    }
    more(lines, verdict.suspects.length - MAX_SUSPECTS, "more suspect", dim);
    lines.push("");
  }
  if (verdict.victims.length > 0) {
    lines.push(
      `${dim("waiting")}   ${cutText(`${verdict.victims.length === 1 ? "rank" : "ranks"} ${ranges(verdict.victims, 10)}`, width - 10)}`,
      "",
    );
  }
  const doubts = doubtLines(verdict.reasoning, width - 4);
  const most = MAX_EVIDENCE - Math.min(MAX_GIVEN_UP, doubts.length);
  const evidence = inOrderOfWeight(verdict).slice(0, most);
  if (evidence.length > 0) {
    const above = verdict.suspects
      .slice(0, MAX_SUSPECTS)
      .map((suspect) => whyLines(suspect, width).join(" "));
    const decided = decidingFindings(verdict).map(({ finding }) => finding.id);
    lines.push(dim(decided.length > 0 ? `evidence, decided by ${decided.join(", ")}` : "evidence"));
    for (const finding of evidence) {
      const isAbove = above.some((why) => why.includes(finding.says));
      const [first = "", ...rest] = wrap(isAbove ? "see above" : finding.says, width - 6);
      lines.push(
        `  ${dim(finding.id.padEnd(3))} ${first}`,
        ...rest.slice(0, 1).map((line) => `      ${line}`),
      );
      const places = finding.at
        .slice(0, 2)
        .map(({ file, line }) => (line ? `${file}:${line}` : file));
      if (places.length > 0) lines.push(`      ${cyan(cutText(places.join("  "), width - 6))}`);
    }
    more(lines, verdict.findings.length - evidence.length, "more finding", dim);
    lines.push(...doubts, "");
  }
  if (verdict.actions.length > 0) {
    lines.push(dim(`what to do${verdict.owner ? ` (${verdict.owner})` : ""}`));
    // What the plan below says in full is not said twice.
    const planned = new Set(verdict.mitigation?.steps.map((step) => step.do));
    for (const action of verdict.actions.filter((one) => !planned.has(one.do))) {
      const [first = "", ...rest] = wrap(`${action.do} ${action.target}: ${action.why}`, width - 4);
      lines.push(`  ${first}`, ...rest.map((line) => `    ${line}`));
    }
    lines.push("");
  }
  if (verdict.mitigation && verdict.mitigation.steps.length > 0) {
    lines.push(dim("until it is fixed"));
    for (const text of planLines(verdict.mitigation))
      lines.push(...wrap(text.trimStart(), width - 4).map((line) => `${indentOf(text)}${line}`));
    const { assumes } = verdict.mitigation;
    if (assumes.length > 0)
      lines.push(
        ...wrap(`assuming ${assumes.join("; ")}`, width - 4).map((line) => dim(`  ${line}`)),
      );
    lines.push("");
  }
  if (verdict.missing.length > 0) {
    lines.push(dim("missing or odd"));
    for (const text of verdict.missing.slice(0, MAX_MISSING))
      lines.push(`  ${cutText(text, width - 2)}`);
    more(lines, verdict.missing.length - MAX_MISSING, "more in verdict.json", dim);
    lines.push("");
  }
  if (verdict.wouldHelp.length > 0) {
    lines.push(dim("would help"));
    for (const text of verdict.wouldHelp)
      lines.push(...wrap(text, width - 2).map((line) => `  ${line}`));
    lines.push("");
  }
  return lines.join("\n");
}

function whyLines({ why }: Suspect, width: number): string[] {
  return wrap(why, width - 4).slice(0, 5);
}

/** Who else is accused, and what would change the verdict: the first of each, three lines at most. */
function doubtLines(reasoning: Reasoning | undefined, width: number): string[] {
  const [conflict] = reasoning?.conflicts ?? [];
  const [change] = reasoning?.wouldChange ?? [];
  const ids = conflict && conflict.findings.length > 0 ? ` (${conflict.findings.join(", ")})` : "";
  const more = (reasoning?.conflicts.length ?? 0) - 1;
  const others = more > 0 ? `; ${count(more, "more conflict")} in verdict.json` : "";
  return [
    ...(conflict
      ? indented(
          `${conflict.who} is accused too${ids}, but less likely: ${conflict.why}${others}`,
          width,
        )
      : []),
    ...(change === undefined
      ? []
      : indented(`would change it: ${change}`, width, conflict ? 1 : 2)),
  ];
}

function indented(text: string, width: number, most = 2): string[] {
  if (most === 1) return [`  ${cutText(text, width)}`];
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

function more(lines: string[], rest: number, what: string, dim: (text: string) => string): void {
  if (rest > 0)
    lines.push(dim(`  … ${rest} ${what}${what.endsWith("json") || rest === 1 ? "" : "s"}`));
}

function whenText(verdict: Verdict, dim: (text: string) => string): string {
  const { iteration, from } = verdict.when;
  const parts = [iteration === null ? "" : `iteration ${iteration}`, from ?? ""].filter(
    (part) => part !== "",
  );
  return parts.length > 0 ? dim(` · ${parts.join(" · ")}`) : "";
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
