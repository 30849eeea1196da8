/** The lines that tell of the failure (L4 calls them failure-indicating), and which comparison says so. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { CausalRole } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { IndicatingLine, Reason } from "../../model/log-report.ts";
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
  readonly hasHealthyJobs: boolean;
  /** By template, 0 to 1. */
  readonly spatial: Float64Array;
  readonly temporal: Float64Array;
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
const SURE_ROOT = 0.5;
const WEAK = 0.15;
const MOST_LINES = 5000;

export function indicatingLines(evidence: Evidence): IndicatingLine[] {
  const { digest, templates } = evidence;
  const exceptions = new Set(
    digest.blocks
      .filter(({ kind }) => kind === "traceback")
      .map(({ stream, line }) => `${stream} ${line}`),
  );
  const scored: { i: number; score: number; why: Reason[] }[] = [];
  const hasRoot = evidence.known.some(
    (match, i) =>
      match?.record.role === "root" &&
      match.record.certainty >= SURE_ROOT &&
      evidence.isOutlived[i] === 0,
  );
  digest.kept.forEach((kept, i) => {
    const isException = exceptions.has(`${kept.stream} ${kept.line}`);
    const record = evidence.known[i]?.record;
    // Beside a root, what means next to nothing by itself only repeats that something failed.
    if (hasRoot && record && record.role !== "root" && record.certainty <= WEAK) return;
    const { score, why } = scoreOf(evidence, i, isException);
    if (score >= LEAST && why.length > 0) scored.push({ i, score, why });
  });
  scored.sort((a, b) => b.score - a.score || a.i - b.i);
  const listed = scored.slice(0, MOST_LINES);
  const rest = restOf(
    digest,
    listed.map(({ i }) => i),
  );
  return listed.map(({ i, score, why }) => {
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
}

function scoreOf(
  evidence: Evidence,
  i: number,
  isException: boolean,
): { score: number; why: Reason[] } {
  const { digest, templates, known, isOutlived, isNormal, hasHealthyJobs } = evidence;
  const { shape } = digest.kept[i]!;
  const template = templates.of[shape]!;
  const record = known[i]?.record ?? null;
  const nothing = { score: 0, why: [] };
  if (isOutlived[i] === 1 || isNormal[template] === 1) return nothing;
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
  const { level, isPart } = digest.shapes[shape]!;
  const isError = level === "error" || level === "fatal";
  if (hasHealthyJobs && (record !== null || isException || isError) && !isPart) {
    why.push("cross-job");
    score = Math.max(score, NOT_IN_HEALTHY);
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
    score = score > 0 ? score + (1 - score) * 0.3 * different : isPart ? 0 : 0.8 * different;
  }
  return { score: Math.min(1, score), why };
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
