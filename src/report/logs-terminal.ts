/** The answer about logs for a tired person: the cause, what to do, the lines that say so, then where else to look. */
import { count, cutText, harmless, ranges, thousands } from "../base/text.ts";
import type { IndicatingLine, LogReport } from "../model/log-report.ts";
import { wrap, type Colours } from "./terminal.ts";
import { ownerWords } from "./owner-words.ts";

const MOST_LINES = 12;
const MOST_NODES = 8;
const MOST_LESS = 4;
const MOST_MISSING = 8;

export function renderLogsTerminal(report: LogReport, colours: Colours, width: number): string {
  const { bold, red, green, yellow, dim, cyan } = colours;
  const { cause, indicating, nodes, iterations } = report;
  const out: string[] = [];
  const wrapped = (text: string, indent: string, paint = (t: string): string => t): void => {
    for (const part of wrap(harmless(text), width - indent.length)) out.push(paint(indent + part));
  };
  if (cause) {
    const percent = Math.round(100 * cause.confidence);
    out.push(
      `${bold(red(harmless(cause.title)))}  ${dim(`${cause.category} · confidence ${percent} % · stage ${report.stage}`)}`,
    );
    wrapped(cause.meaning, "");
    if (cause.nodes.length > 0 || cause.ranks.length > 0) {
      const who = [
        cause.nodes.slice(0, MOST_LESS).join(", ") +
          (cause.nodes.length > MOST_LESS ? ` and ${cause.nodes.length - MOST_LESS} more` : ""),
        // Where nothing but ranks is known they are the nodes' names.
        cause.ranks.length > 0 && !cause.nodes[0]?.startsWith("rank ")
          ? `rank ${ranges(cause.ranks, 8)}`
          : "",
      ].filter((part) => part !== "");
      out.push(`${dim("said by ")} ${harmless(who.join(", "))}`);
    }
    if (cause.at) out.push(`${dim("at      ")} ${harmless(`${cause.at.file}:${cause.at.line}`)}`);
    out.push("", `${dim("to do")}    ${dim(`(${ownerWords(cause.owner)})`)}`);
    wrapped(cause.action, "  ", cyan);
    for (const friend of cause.falseFriends.slice(0, 2)) wrapped(`but: ${friend}`, "  ", dim);
  } else if (indicating.length > 0) {
    out.push(
      `${bold(yellow("no known cause"))}  ${dim(`stage ${report.stage}; the lines below stand out`)}`,
    );
  } else {
    out.push(green("these logs show no failure"));
  }
  if (indicating.length > 0) {
    out.push("", dim(`evidence (${count(indicating.length, "place")}, strongest first)`));
    for (const { line, times } of byTemplate(indicating).slice(0, MOST_LINES)) {
      const place = `${line.file}:${line.line}`;
      const more = times > 1 ? `  ×${thousands(times)}` : "";
      const role = line.role === "cascade" ? "consequence" : line.why.join("+");
      out.push(`  ${cutLeft(harmless(place), 60)}${more}  ${dim(role)}`);
      out.push(`    ${cutText(harmless(line.text.trim()), width - 4)}`);
    }
  }
  if (nodes.length > 0) {
    out.push("", dim("nodes that stand out"));
    for (const { node, score, why } of nodes.slice(0, MOST_NODES)) {
      out.push(`  ${bold(harmless(node))}  ${dim(score.toFixed(2))}`);
      if (why[0] !== undefined) out.push(`    ${cutText(harmless(why[0]), width - 4)}`);
    }
  }
  if (iterations.length > 0) {
    const list = iterations
      .slice(0, MOST_LESS)
      .map(({ iteration, why }) => `${iteration} (${why})`);
    out.push("", cutText(harmless(`iterations: ${list.join("; ")}`), 2 * width));
  }
  for (const { title, confidence, category } of report.alternatives.slice(0, MOST_LESS)) {
    const percent = Math.round(100 * confidence);
    out.push(dim(cutText(harmless(`or: ${title} (${category}, ${percent} %)`), width)));
  }
  out.push("");
  // That there is none to compare with is said among what is missing.
  const against =
    report.healthyJobs > 0 ? `; compared with ${count(report.healthyJobs, "healthy job")}` : "";
  out.push(
    dim(
      cutText(
        `${count(report.lines, "line")} in ${count(report.files, "file")}, ${count(report.events, "event")}, ${count(report.nodesSeen, "node")}${against}`,
        width,
      ),
    ),
  );
  const { missing } = report;
  for (const text of missing.slice(0, MOST_MISSING)) wrapped(`missing or odd: ${text}`, "", dim);
  if (missing.length > MOST_MISSING)
    out.push(dim(`missing or odd: ${missing.length - MOST_MISSING} more (--json has them all)`));
  return out.join("\n");
}

/** Of a path the end tells, not the beginning. */
function cutLeft(text: string, most: number): string {
  return text.length <= most ? text : `…${text.slice(text.length - most + 1)}`;
}

/** Lines of one template count as one, shown by the most telling. */
function byTemplate(lines: readonly IndicatingLine[]): { line: IndicatingLine; times: number }[] {
  const groups = new Map<string, { line: IndicatingLine; times: number }>();
  for (const line of lines) {
    const group = groups.get(line.template);
    if (group) group.times += line.count;
    else groups.set(line.template, { line, times: line.count });
  }
  return [...groups.values()];
}
