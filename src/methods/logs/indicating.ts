/** The lines that tell of the failure (L4 calls them failure-indicating), and which comparison says so. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { CausalRole, FaultRecord } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { IndicatingLine, Reason } from "../../model/log-report.ts";
import { saysContinues, saysOver } from "./recovery-words.ts";
import type { LogNodes } from "./nodes.ts";
import type { LogTemplates } from "./spatial-matrix.ts";

export interface Evidence {
  readonly digest: LogDigest;
  readonly templates: LogTemplates;
  readonly nodes: LogNodes;
  /** By kept line. */
  readonly known: readonly (FaultMatch | null)[];
  readonly isOutlived: Uint8Array;
  /** By template: 1 where healthy jobs write it. */
  readonly isNormal: Uint8Array;
  /** By kept line: the same, with what the library knows taken by its record. */
  readonly isNormalLine: Uint8Array;
  readonly hasHealthyJobs: boolean;
  /** By template, 0 to 1. */
  readonly spatial: Float64Array;
  readonly temporal: Float64Array;
  /** Cells of lines that sound harmless, in which a node differs from the others; a variant in its value alone. */
  readonly quiet: readonly {
    readonly cell: number;
    readonly score: number;
    readonly isVariant: boolean;
  }[];
}

const BY_ROLE: Readonly<Record<CausalRole, number>> = {
  root: 0.6,
  cascade: 0.45,
  confirmation: 0.45,
  benign: 0,
  advice: 0,
};
const OF_CERTAINTY = 0.35;
/** An exception that nobody knows ended something, all the same. */
const EXCEPTION = 0.5;
/** An error that healthy jobs do not write. */
const NOT_IN_HEALTHY = 0.45;
/** Comparisons alone need to be so sure. */
const LEAST_DIFFERENT = 0.5;
const LEAST = 0.4;
/** Of a line that follows from a failure and says nothing about it. */
const WEAK = 0.15;
const MOST_LINES = 5000;
/** Less than that says nothing. */
const WORDS = /[a-z]{3}.*[a-z]{3}/i;
export function indicatingLines(evidence: Evidence): IndicatingLine[] {
  const { digest, templates } = evidence;
  const exceptions = new Set(
    digest.blocks
      .filter(({ kind }) => kind === "traceback")
      .map(({ stream, line }) => `${stream} ${line}`),
  );
  const scored: { i: number; score: number; why: Reason[] }[] = [];
  const hasBetter = evidence.known.some(
    (match, i) => match !== null && isTelling(match.record) && evidence.isOutlived[i] === 0,
  );
  const isConfirming = confirming(evidence);
  digest.kept.forEach((kept, i) => {
    const isException = exceptions.has(`${kept.stream} ${kept.line}`);
    const record = evidence.known[i]?.record;
    // Exit codes, aborts and the like: beside what says more they only repeat that something failed.
    if (hasBetter && record && (!isTelling(record) || saysOver(kept.text))) return;
    if (record?.role === "confirmation" && !isConfirming(i)) return;
    const { score, why } = scoreOf(evidence, i, isException);
    if (score >= LEAST && why.length > 0) scored.push({ i, score, why });
  });
  scored.sort((a, b) => b.score - a.score || a.i - b.i);
  if (scored.length === 0 && evidence.quiet.length === 0) scored.push(...lastWords(evidence));
  const listed = scored.slice(0, MOST_LINES);
  const rest = restOf(
    digest,
    listed.map(({ i }) => i),
  );
  const known = listed.map(({ i, score, why }): IndicatingLine => {
    const { file, line, stream, shape, timeMs, text } = digest.kept[i]!;
    const match = evidence.known[i]!;
    const node = evidence.nodes.of[stream]!;
    return {
      file: digest.files[file]!.name,
      line,
      count: 1 + (rest.get(i) ?? 0),
      text,
      template: templates.texts[templates.of[shape]!]!,
      score,
      why,
      signature: match?.record.id ?? null,
      role: match?.record.role ?? null,
      node: node < 0 ? null : evidence.nodes.names[node]!,
      rank: digest.streams[stream]!.rank,
      timeMs: Number.isNaN(timeMs) ? null : timeMs,
    };
  });
  const places = new Set(known.map(({ file, line }) => `${file}:${line}`));
  const quiet = quietLines(evidence).filter(({ file, line }) => !places.has(`${file}:${line}`));
  return [...known, ...quiet].sort((a, b) => b.score - a.score);
}

/**
 * Whether what only confirms has something to confirm: a root on its own node, of its category or of its layer. Where
 * no root is known, others may still tell what came of the failure, and then a mere warning confirms nothing.
 */
function confirming({
  digest,
  nodes,
  known,
  isOutlived,
  isNormalLine,
}: Evidence): (kept: number) => boolean {
  const nodeOf = (i: number): number => nodes.of[digest.kept[i]!.stream]!;
  const rooted = new Set<string>();
  const anywhere = new Set<string>();
  let hasSequel = false;
  known.forEach((match, i) => {
    if (!match || isOutlived[i] === 1 || isNormalLine[i] === 1) return;
    const { role, category, layer } = match.record;
    if (isSequel(match.record)) hasSequel = true;
    if (role !== "root") return;
    for (const what of [category!, layer]) {
      rooted.add(`${nodeOf(i)} ${what}`);
      anywhere.add(what);
      // Whose line it is, nobody knows: it may be anybody's.
      if (nodeOf(i) < 0) rooted.add(what);
    }
  });
  return (i) => {
    const { category, layer, severity } = known[i]!.record;
    if (anywhere.size === 0) return !(severity === "warning" && hasSequel);
    return [category!, layer].some((what) =>
      nodeOf(i) < 0 ? anywhere.has(what) : rooted.has(what) || rooted.has(`${nodeOf(i)} ${what}`),
    );
  };
}

/** So near the end of its file. */
const LAST_LINES = 12;
const LAST_WORDS = 0.4;

/** Where nothing else tells: errors that nobody knows, and after which nothing came. */
function lastWords({ digest, known, isOutlived, isNormalLine }: Evidence): {
  i: number;
  score: number;
  why: Reason[];
}[] {
  return digest.kept.flatMap(({ file, line, shape }, i) => {
    const { level, text, isPart } = digest.shapes[shape]!;
    const isError = (level === "error" || level === "fatal") && !isPart && !saysContinues(text);
    const isLast = line > digest.files[file]!.lines - LAST_LINES;
    return isError && isLast && known[i] === null && isOutlived[i] === 0 && isNormalLine[i] === 0
      ? [{ i, score: LAST_WORDS, why: ["temporal"] as Reason[] }]
      : [];
  });
}

const MOST_QUIET = 50;
/** A line of a program, out of a traceback whose head is missing: "data = self.queue.get(timeout=1)". */
const CODE =
  /^\s*(?:[\w.[\]]+ = )?(?:return |raise |await |yield )?[\w.[\]]+\((?:.*(?:\)\s*:?|,))?\s*$/;
/** A frame as samplers of stacks write it: "step (pkg/engine.py:12)". */
const FRAME = /^\s*\S+ \(\S+:\d+\)\s*$/;

function isOfProgram(text: string): boolean {
  return CODE.test(text) || FRAME.test(text);
}

function quietLines({ digest, templates, nodes, quiet, isNormal }: Evidence): IndicatingLine[] {
  const { cells, shapes, streams, files } = digest;
  const texts = new Map(digest.kept.map(({ file, line, text }) => [`${file}:${line}`, text]));
  return quiet
    .filter(
      ({ cell, isVariant }) =>
        // Healthy jobs tell of their versions, too: what differs is the value, which templates do not have.
        (isVariant || isNormal[templates.of[cells.shape[cell]!]!] === 0) &&
        !isOfProgram(shapes[cells.shape[cell]!]!.text),
    )
    .slice(0, MOST_QUIET)
    .map(({ cell, score }): IndicatingLine => {
      const stream = streams[cells.stream[cell]!]!;
      const shape = cells.shape[cell]!;
      const node = nodes.of[cells.stream[cell]!]!;
      const timeMs = cells.firstMs[cell]!;
      return {
        file: files[stream.file]!.name,
        line: cells.firstLine[cell]!,
        count: cells.lines[cell]!,
        text: texts.get(`${stream.file}:${cells.firstLine[cell]!}`) ?? shapes[shape]!.text,
        template: templates.texts[templates.of[shape]!]!,
        score: 0.7 * score,
        why: ["spatial"],
        signature: null,
        role: null,
        node: node < 0 ? null : nodes.names[node]!,
        rank: stream.rank,
        timeMs: Number.isNaN(timeMs) ? null : timeMs,
      };
    });
}

function scoreOf(
  evidence: Evidence,
  i: number,
  isException: boolean,
): { score: number; why: Reason[] } {
  const { digest, templates, known, isOutlived, isNormalLine, hasHealthyJobs } = evidence;
  const { shape } = digest.kept[i]!;
  const template = templates.of[shape]!;
  const record = known[i]?.record ?? null;
  const nothing = { score: 0, why: [] };
  if (isOutlived[i] === 1 || isNormalLine[i] === 1) return nothing;
  if (record?.role === "benign" || record?.role === "advice") return nothing;
  const why: Reason[] = [];
  let score = 0;
  if (record) {
    why.push("library");
    score = BY_ROLE[record.role] + OF_CERTAINTY * record.certainty;
  } else if (isException) {
    why.push("library");
    score = EXCEPTION;
  }
  const { level, isPart, text } = digest.shapes[shape]!;
  const isKnown = record !== null || isException;
  // What nobody knows must not say itself that the program goes on.
  if (!isKnown && (isPart || !WORDS.test(text) || saysContinues(text))) return nothing;
  const isError = level === "error" || level === "fatal";
  if (hasHealthyJobs && (isKnown || isError)) {
    why.push("cross-job");
    score = Math.max(score, isKnown ? NOT_IN_HEALTHY : 0);
  }
  const spatial = evidence.spatial[template]!;
  const temporal = evidence.temporal[template]!;
  if (spatial >= LEAST_DIFFERENT) why.push("spatial");
  if (temporal >= LEAST_DIFFERENT) why.push("temporal");
  // Comparisons strengthen what is known; alone they must agree, or be sure.
  const different = Math.max(
    spatial >= LEAST_DIFFERENT ? spatial : 0,
    temporal >= LEAST_DIFFERENT ? temporal : 0,
  );
  if (different > 0) {
    if (isKnown) score += (1 - score) * 0.3 * different;
    else if (why.length > 1) score = 0.8 * different;
  }
  return { score: Math.min(1, score), why };
}

function isTelling({ role, certainty }: FaultRecord): boolean {
  return role === "root" || ((role === "cascade" || role === "confirmation") && certainty > WEAK);
}

/** What follows from a failure and says so: a cascade, or a confirmation that is more than a warning. */
export function isSequel({ role, certainty, severity }: FaultRecord): boolean {
  if (certainty <= WEAK) return false;
  return role === "cascade" || (role === "confirmation" && severity !== "warning");
}

/** Lines of the same shape and writer that are not listed go on the account of the last that is. */
function restOf(digest: LogDigest, listed: readonly number[]): Map<number, number> {
  const { cells, kept } = digest;
  const seen = new Map<string, { last: number; count: number }>();
  for (const i of listed) {
    const { stream, shape } = kept[i]!;
    const key = `${stream} ${shape}`;
    const known = seen.get(key);
    if (known) {
      known.count++;
      if (i > known.last) known.last = i;
    } else seen.set(key, { last: i, count: 1 });
  }
  const rest = new Map<number, number>();
  for (let c = 0; c < cells.count; c++) {
    const known = seen.get(`${cells.stream[c]!} ${cells.shape[c]!}`);
    if (known && cells.lines[c]! > known.count) rest.set(known.last, cells.lines[c]! - known.count);
  }
  return rest;
}
