/** The lines that findings cite, and what is kept around them: a digest holds few lines, whatever a log is long. */
import { cutText, harmless } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { LogExcerpt } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { isStop } from "../case.ts";

const MOST_EXCERPTS = 12;
const MOST_LINES = 20;
const MOST_CHARACTERS = 2000;
/** Lines before and after that belong to what a line tells. */
const AROUND = 10;
/** Lines of a traceback. */
const MOST_WHOLE = 150;
const MOST_OWN_LOGS = 4;

type ExcerptLine = LogExcerpt["lines"][number];

interface KnownLine {
  readonly line: number;
  readonly text: string;
  readonly timeMs?: number | null;
  /** How many lines it stands for; one where nothing is said. */
  readonly count?: number;
  readonly stream?: number;
}

interface CitedLine {
  readonly file: string;
  readonly line: number;
  /** It stands alone for so many that say the same of the suspects. */
  readonly standsFor?: number;
}

/** The suspects' own lines come first and whole; of what others say of them, one line stands for all. */
export function logExcerpts(job: Job, verdict: Verdict): LogExcerpt[] {
  const evidence = new Set(verdict.suspects.flatMap((suspect) => suspect.evidence));
  const isOwn = ({ id }: Findings[number]): boolean => evidence.size === 0 || evidence.has(id);
  const own = [...verdict.findings.filter(isOwn).flatMap(citedLines), ...lastLines(job, verdict)];
  const once = verdict.findings.flatMap((finding) => {
    const lines = isOwn(finding) ? [] : citedLines(finding);
    return lines.slice(0, 1).map((first): CitedLine => ({ ...first, standsFor: lines.length }));
  });
  const cited = [...own, ...once];
  const known = knownLines(job, new Set(cited.map(({ file }) => file)));
  const excerpts: LogExcerpt[] = [];
  const taken = new Set<string>();
  for (const { file, line, standsFor } of cited) {
    if (excerpts.length >= MOST_EXCERPTS) break;
    const lines = known.get(file);
    if (!lines?.has(line) || taken.has(`${line} ${file}`)) continue;
    const span: Span = standsFor === undefined ? spanOf(job, file, line) : [line, line];
    const inSpan = own.filter((one) => one.file === file && isIn(one.line, span));
    const keys = new Set([line, ...inSpan.map((one) => one.line)]);
    const fresh = new Map([...lines].filter(([number]) => !taken.has(`${number} ${file}`)));
    if (standsFor !== undefined) fresh.set(line, { ...lines.get(line)!, count: standsFor });
    const excerpt = excerptOf(job, file, line, span, keys, fresh);
    for (const one of [...keys, ...excerpt.lines.map(({ line: number }) => number)])
      taken.add(`${one} ${file}`);
    excerpts.push(excerpt);
  }
  return excerpts;
}

type Findings = Verdict["findings"];
type Span = readonly [from: number, to: number];

function citedLines({ at }: Findings[number]): CitedLine[] {
  return at.flatMap(({ file, line = 0 }) => (line > 0 ? [{ file, line }] : []));
}

/**
 * Where the suspects' own logs end: what they did last, of a job that stopped. Of a slow one that is its regular end; and
 * what most others did last, too, tells nothing of the suspects.
 */
function lastLines({ logs }: Job, verdict: Verdict): CitedLine[] {
  if (!isStop(verdict)) return [];
  const ranks = verdict.suspects.flatMap((suspect) => suspect.ranks).slice(0, MOST_OWN_LOGS);
  return ranks.flatMap((rank) => {
    const log = logs.get(rank);
    if (!log || log.lastLine === 0) return [];
    const others = [...logs.values()].filter((one) => one.rank !== null && one.rank !== rank);
    const alike = others.filter(({ lastText }) => formOf(lastText) === formOf(log.lastText));
    return 2 * alike.length > others.length ? [] : [{ file: log.file, line: log.lastLine }];
  });
}

/** Ranks, times and iterations differ in what all say alike. */
function formOf(text: string): string {
  return text.replace(/\d+/g, "0");
}

/** The whole traceback that the line is part of; else what stands around it. */
function spanOf({ logDigest }: Job, file: string, line: number): Span {
  const block = logDigest?.blocks.find(
    (one) =>
      line >= one.firstLine &&
      line <= one.lastLine &&
      logDigest.files[logDigest.streams[one.stream]?.file ?? -1]?.name === file,
  );
  return block
    ? [block.firstLine, Math.min(block.lastLine, block.firstLine + MOST_WHOLE)]
    : [line - AROUND, line + AROUND];
}

function isIn(line: number, [from, to]: Span): boolean {
  return line >= from && line <= to;
}

/** All lines of these files whose text is at hand. */
function knownLines(
  { logDigest, failures, logs }: Job,
  files: ReadonlySet<string>,
): Map<string, Map<number, KnownLine>> {
  const known = new Map<string, Map<number, KnownLine>>();
  const add = (file: string | undefined, one: KnownLine): void => {
    if (file === undefined || !files.has(file) || one.line < 1) return;
    const lines = known.get(file) ?? new Map<number, KnownLine>();
    known.set(file, lines);
    if (!lines.has(one.line)) lines.set(one.line, one);
  };
  if (logDigest) {
    const { files: all, streams } = logDigest;
    const nameOf = (stream: number): string | undefined => all[streams[stream]?.file ?? -1]?.name;
    const stands = standsFor(logDigest);
    for (const { file, line, stream, shape, timeMs, text } of logDigest.kept)
      add(all[file]?.name, { line, text, timeMs, count: stands(stream, shape), stream });
    for (const { stream, line, text, timeMs, rows = [] } of logDigest.blocks) {
      add(nameOf(stream), { line, text, timeMs, stream });
      for (const row of rows) add(nameOf(stream), { ...row, stream });
    }
    for (const { file, line, text } of logDigest.shapes) add(all[file]?.name, { line, text });
  }
  for (const { file, line, text, timeMs } of failures) add(file, { line, text, timeMs });
  for (const { file, lastLine, lastText, lastTimeMs } of logs.values())
    add(file, { line: lastLine, text: lastText, timeMs: lastTimeMs });
  return known;
}

/** Of one shape in one stream the first and the last line are kept; the first stands for those between. */
function standsFor({ cells, kept }: NonNullable<Job["logDigest"]>) {
  const keptOf = new Map<string, number>();
  for (const { stream, shape } of kept) {
    const key = `${stream} ${shape}`;
    keptOf.set(key, (keptOf.get(key) ?? 0) + 1);
  }
  const lines = new Map<string, number>();
  for (let k = 0; k < cells.count; k++) {
    const key = `${cells.stream[k]} ${cells.shape[k]}`;
    if (keptOf.has(key)) lines.set(key, cells.lines[k]!);
  }
  const seen = new Set<string>();
  return (stream: number, shape: number): number => {
    const key = `${stream} ${shape}`;
    if (seen.has(key)) return 1;
    seen.add(key);
    return Math.max(1, (lines.get(key) ?? 1) - keptOf.get(key)! + 1);
  };
}

function excerptOf(
  job: Job,
  file: string,
  line: number,
  span: Span,
  keys: ReadonlySet<number>,
  lines: ReadonlyMap<number, KnownLine>,
): LogExcerpt {
  const around = [...lines.values()]
    .filter((one) => keys.has(one.line) || isIn(one.line, span))
    .sort(
      (a, b) =>
        Number(keys.has(b.line)) - Number(keys.has(a.line)) ||
        Math.abs(a.line - line) - Math.abs(b.line - line),
    )
    .slice(0, Math.max(MOST_LINES, span[1] - span[0] > 2 * AROUND ? MOST_WHOLE : 0))
    .sort((a, b) => a.line - b.line);
  const stream = job.logDigest?.streams[lines.get(line)!.stream ?? -1];
  const failure = job.failures.find((one) => one.file === file && one.line === line);
  const rank = stream?.rank ?? failure?.rank ?? rankOf(job, file);
  const node = stream?.host ?? (rank === null ? null : (job.ranks.get(rank)?.machine ?? null));
  return {
    file: harmless(cutText(file, MOST_CHARACTERS)),
    rank,
    node: node === null ? null : harmless(cutText(node, 200)),
    lines: around.map((one): ExcerptLine => ({
      line: one.line,
      text: harmless(cutText(one.text.replaceAll("\t", "  "), MOST_CHARACTERS)),
      isKey: keys.has(one.line),
      timeMs: Number.isFinite(one.timeMs) ? one.timeMs! : null,
      count: one.count ?? 1,
    })),
  };
}

function rankOf({ logs }: Job, file: string): number | null {
  const ranks = [...logs].filter(([, log]) => log.file === file).map(([rank]) => rank);
  return ranks.length === 1 ? ranks[0]! : null;
}
