/** "What do the logs say?": library, healthy jobs, nodes, iterations and silence, joined to one answer (L4 §5). */
import { type Difference, type NodeEvidence } from "./spatial-evidence.ts";
import { cutText } from "../../base/text.ts";
import type { FaultMatchers } from "../../library/matcher.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogCause, LogReport, SuspectIteration, SuspectNode } from "../../model/log-report.ts";
import { causesOf } from "./cause.ts";
import { contextCauses } from "./contexts.ts";
import { normalEvents, recordEvent, type NormalPool } from "./cross-job.ts";
import { endingCauses, endsStandStill, saysEnded } from "./endings.ts";
import { exceptionCauses } from "./exceptions.ts";
import { diedApart, finishOf, isBefore } from "./finished.ts";
import { indicatingLines, type Evidence } from "./indicating.ts";
import { aftermath, knownLines, outlived, wroteOn } from "./known-lines.ts";
import { nodesOf, type LogNodes } from "./nodes.ts";
import { resumed } from "./resumed.ts";
import { leaveOutSettled, lowerSettled, saidOver, settled } from "./settled.ts";
import { signatureGroups } from "./signature-groups.ts";
import { silencesOf } from "./silence.ts";
import { silentCauses } from "./silent-cause.ts";
import { compareNodes, type SpatialResult } from "./spatial.ts";
import type { LogTemplates } from "./spatial-matrix.ts";
import { eventWeights } from "./spatial-weights.ts";
import { lastPlace, stageAt } from "./stages.ts";
import { compareIterations } from "./temporal.ts";
import { templatesOf } from "./templates/templates.ts";
import { versionCauses } from "./versions.ts";

const LEAST_NODE = 0.15;
const MOST_NODES = 32;
const MOST_ITERATIONS = 20;
const LEAST_ITERATION = 0.3;

export function analyseLogs(
  digest: LogDigest,
  matchers: FaultMatchers,
  pool: NormalPool,
): LogReport {
  const templates = templatesOf(digest.shapes);
  const nodes = nodesOf(digest);
  const known = knownLines(digest, matchers);
  const isNormal = normalEvents(templates.texts, pool);
  const templateOf = (i: number): number => templates.of[digest.kept[i]!.shape]!;
  // Numbers that are the event are masked in templates: what the library knows is normal by its record alone.
  const isSettled = settled(digest, known);
  const isNormalLine = Uint8Array.from(known, (match, i) => {
    if (!match) return isNormal[templateOf(i)]!;
    if (isRootError(match.record, isSettled[i] === 1)) return 0;
    return pool.hasRecord(match.record.id, isSettled[i] === 1) ? 1 : 0;
  });
  known.forEach((match, i) => {
    if (match && isNormalLine[i] === 0) isNormal[templateOf(i)] = 0;
  });
  const isOutlived = outlived(digest, (i) => known[i]?.record.id ?? -1 - templateOf(i));
  const finish = finishOf(digest);
  if (finish) {
    const apart = diedApart(finish, digest);
    digest.kept.forEach(({ file, line, timeMs }, i) => {
      if (isBefore(finish, file, line, timeMs) && !apart.has(file)) isOutlived[i] = 1;
    });
  }
  for (const signs of [resumed(digest, known, isOutlived), wroteOn(digest, known)])
    signs.forEach((isOver, i) => {
      if (isOver === 1) isOutlived[i] = 1;
    });
  leaveOutSettled(digest, known, isSettled, isOutlived);
  const silence = silencesOf(digest, nodes);
  const weights = eventWeights(digest, templates, (text) => matchers.match(text));
  lowerSettled(weights, digest, templates, isOutlived);
  const spatial = compareNodes(digest, templates, nodes, {
    weightOf: (template) => weights[template]!,
    isNormal,
    also: silence.evidence,
  });
  const temporal = compareIterations(digest, templates);
  // Troubles that are said to be over again, or that healthy jobs have, do not say what broke.
  const isSaidOver = saidOver(digest);
  const hasRoot = known.some(
    (match, i) =>
      match?.record.role === "root" && (isOutlived[i]! | isSaidOver[i]! | isNormalLine[i]!) === 0,
  );
  // What the library knows, or the job outlived, was judged by that.
  const isSpoken = new Uint8Array(digest.shapes.length);
  digest.kept.forEach(({ shape }, i) => {
    if (known[i] !== null || isOutlived[i] === 1) isSpoken[shape] = 1;
  });
  const indicating = indicatingLines({
    digest,
    templates,
    nodes,
    known,
    isOutlived,
    isNormal,
    isNormalLine,
    hasHealthyJobs: pool.jobs > 0,
    spatial: byTemplate(templates, spatial.events),
    temporal: byTemplate(templates, temporal.events),
    quiet: quietDifferences(digest, templates, nodes, spatial, { hasRoot, isSpoken }),
  });
  const isAftermath = aftermath(digest, known);
  const isTidyingUp = endsStandStill(digest, known);
  const isLeftOut = (i: number): boolean =>
    (isOutlived[i]! | isAftermath[i]! | isNormalLine[i]! | isTidyingUp[i]!) === 1 ||
    // Processes that leave a job that is done complain of each other.
    (finish !== null && known[i] !== null && known[i]!.record.role !== "root");
  const exceptions = exceptionCauses(digest, known, isLeftOut, isSettled);
  const isTold = (i: number): boolean => isLeftOut(i) || exceptions.spokenFor.has(i);
  const groups = signatureGroups(digest, known, isTold, isSettled, nodes);
  const stage = stageOf(digest, templates, indicating);
  const isExplained =
    exceptions.causes.length > 0 || groups.some(({ record }) => record.role === "root");
  const contexts = [
    ...contextCauses(digest, groups, known, {
      stage,
      hosts: new Set(digest.streams.flatMap(({ host }) => host ?? [])).size,
      hasRoot: isExplained,
    }),
    ...exceptions.causes,
    ...(isExplained ? [] : endingCauses(digest, groups)),
    ...(hasRoot || finish ? [] : versionCauses(digest, nodes, spatial.nodes, templates.texts)),
    ...(finish || groups.some(({ record }) => record.role === "root")
      ? []
      : silentCauses(silence.silences, nodes, groups.length > 0)),
  ];
  const hasEnded = saysEnded(digest, known, isLeftOut, isSettled);
  const [cause = null, ...alternatives] = causesOf(digest, groups, contexts, nodes, hasEnded);
  return {
    files: digest.files.length,
    bytes: digest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    lines: digest.files.reduce((sum, { lines }) => sum + lines, 0),
    events: templates.texts.length,
    writers: digest.streams.length,
    nodesSeen: nodes.names.length,
    healthyJobs: pool.jobs,
    cause,
    alternatives,
    indicating,
    nodes:
      finish && !cause
        ? []
        : withCause(suspectNodes(spatial, templates, nodes), cause, digest, nodes),
    stage,
    iterations: suspectIterations(temporal.iterations),
    missing: [...missingOf(digest, nodes, pool), ...digest.missing],
  };
}

/**
 * What a healthy job says, for the pool of normal events: its templates, and the records that it met. What was settled
 * there (a port that came back, an exception that was only reported) is normal only where it is settled again.
 */
export function healthyEvents(digest: LogDigest, matchers: FaultMatchers): string[] {
  const known = knownLines(digest, matchers);
  const isSettled = settled(digest, known);
  const templates = templatesOf(digest.shapes);
  const records = new Set<string>();
  const roots = new Set<number>();
  known.forEach((match, i) => {
    if (!match) return;
    if (isRootError(match.record, isSettled[i] === 1))
      roots.add(templates.of[digest.kept[i]!.shape]!);
    else records.add(recordEvent(match.record.id, isSettled[i] === 1));
  });
  return [...templates.texts.filter((_, template) => !roots.has(template)), ...records];
}

/** Never normal, however many jobs were called healthy that had it: who finds it harmless disputes the record. */
function isRootError({ role }: FaultRecord, isSettledThere: boolean): boolean {
  return role === "root" && !isSettledThere;
}

/** Where nodes differ in lines that sound harmless: a version, a width, a mode. */
const LEAST_QUIET = 0.6;
const LEAST_ALONE = 0.25;
const LEAST_LEADING = 0.1;
const LEADING = 0.3;
const LEAD = 1.5;

function quietDifferences(
  { cells, shapes }: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
  { events, nodes: ranked }: SpatialResult,
  { hasRoot, isSpoken }: { readonly hasRoot: boolean; readonly isSpoken: Uint8Array },
): Evidence["quiet"] {
  // Where nothing says what broke, less has to do, of the node that stands out most; least where it leads by far.
  const [top, second] = ranked;
  const isLeading =
    top !== undefined && top.score >= LEADING && top.score >= LEAD * (second?.score ?? 0);
  const isEnough = ({ score, nodes: who }: (typeof events)[number]): boolean => {
    if (score >= LEAST_QUIET) return true;
    if (hasRoot || top === undefined || !who.includes(top.node)) return false;
    return score >= (isLeading && who.length === 1 ? LEAST_LEADING : LEAST_ALONE);
  };
  const wanted = new Map(
    events
      .filter((event) => isEnough(event) && event.kind !== "lacks" && event.kind !== "fewer")
      .map((event) => [event.template, event]),
  );
  const found: Evidence["quiet"][number][] = [];
  for (let cell = 0; cell < cells.count && wanted.size > 0; cell++) {
    const shape = cells.shape[cell]!;
    const event = wanted.get(templates.of[shape]!);
    if (
      event &&
      isSpoken[shape] === 0 &&
      !shapes[shape]!.isPart &&
      event.nodes.includes(nodes.of[cells.stream[cell]!]!)
    )
      found.push({ cell, score: event.score, isVariant: event.kind === "variant" });
  }
  return found;
}

function byTemplate(
  { texts }: LogTemplates,
  events: readonly { readonly template: number; readonly score: number }[],
): Float64Array {
  const scores = new Float64Array(texts.length);
  for (const { template, score } of events) if (score > scores[template]!) scores[template] = score;
  return scores;
}

/** Where the first of the most telling lines stands; where there is none, the end. */
function stageOf(
  digest: LogDigest,
  templates: LogTemplates,
  indicating: LogReport["indicating"],
): LogReport["stage"] {
  const best = indicating[0];
  const top = indicating.filter(({ score }) => best && score >= best.score - 0.2);
  const places = new Set(top.map(({ file, line }) => `${file}:${line}`));
  const first = digest.kept.find(({ file, line }) =>
    places.has(`${digest.files[file]!.name}:${line}`),
  );
  const place = first ?? lastPlace(digest);
  return place ? stageAt(digest, templates, place) : "launch";
}

function suspectNodes(
  { nodes: ranked }: SpatialResult,
  { texts }: LogTemplates,
  { names }: LogNodes,
): SuspectNode[] {
  // One node among one cannot stand out.
  if (names.length < 2) return [];
  return ranked
    .filter(({ score }) => score >= LEAST_NODE)
    .slice(0, MOST_NODES)
    .map(({ name, score, evidence }) => ({
      node: name,
      score: Math.round(1000 * score) / 1000,
      why: evidence.slice(0, 4).map((piece) => nodeWords(piece, texts)),
    }));
}

/** A node that wrote the root, if few did, stands out by that more than by any comparison. */
function withCause(
  suspects: readonly SuspectNode[],
  cause: LogCause | null,
  digest: LogDigest,
  nodes: LogNodes,
): SuspectNode[] {
  if (!cause || cause.role !== "root" || nodes.names.length < 2) return [...suspects];
  const few = Math.max(2, FEW_NODES * nodes.names.length);
  const said = new Set(cause.nodes);
  if (said.size === 0)
    digest.streams.forEach(({ rank }, s) => {
      if (rank !== null && cause.ranks.includes(rank) && nodes.of[s]! >= 0)
        said.add(nodes.names[nodes.of[s]!]!);
    });
  if (said.size === 0 || said.size > few || said.size === nodes.names.length) return [...suspects];
  const why = `it says: ${cause.title}`;
  const raised = [...said].map((node) => {
    const known = suspects.find((one) => one.node === node);
    // Among several that say it, the comparisons decide.
    const score = Math.max(known?.score ?? 0, cause.confidence * (0.8 + 0.2 * (known?.score ?? 0)));
    return { node, score: Math.round(1000 * score) / 1000, why: [why, ...(known?.why ?? [])] };
  });
  const others = suspects.filter(({ node }) => !said.has(node));
  return [...raised, ...others].sort((a, b) => b.score - a.score);
}

const FEW_NODES = 0.1;

function suspectIterations(
  odd: readonly { iteration: number; score: number; why: readonly string[]; times: number }[],
): SuspectIteration[] {
  return odd
    .filter(({ score }) => score >= LEAST_ITERATION)
    .slice(0, MOST_ITERATIONS)
    .map(({ iteration, score, why, times }) => ({
      iteration,
      score: Math.round(1000 * score) / 1000,
      why: [
        ...why.filter((one) => one !== "slow").map((one) => `${one} events`),
        ...(why.includes("slow") ? [`${times.toFixed(1)} times as long as usual`] : []),
      ].join(", "),
    }));
}

function missingOf(digest: LogDigest, { names }: LogNodes, pool: NormalPool): string[] {
  const missing: string[] = [];
  if (pool.jobs === 0)
    missing.push(
      "no healthy job to compare with: add --baseline, or --store with what faultline logs learn saved",
    );
  if (names.length < 2)
    missing.push("lines of one node only: nodes cannot be compared with each other");
  if (digest.streams.every(({ firstMs }) => Number.isNaN(firstMs)))
    missing.push("no line has a time: order is known within a file only");
  if (digest.iterations.length === 0)
    missing.push("no iteration reports: iterations cannot be compared with each other");
  for (const { name, defects } of digest.files)
    for (const defect of defects.slice(0, 2)) missing.push(`${name}: ${defect}`);
  return missing;
}

/** What sets a node apart, for people. */
const WORDS: Readonly<Record<Difference, string>> = {
  only: "no other node writes",
  lacks: "unlike the others, it does not write",
  more: "it writes far more often",
  fewer: "it writes far less often",
  first: "it is the first to write",
  variant: "its value differs in",
  named: "others name it in their errors",
  stopped: "it falls silent before the others",
};

function nodeWords({ kind, template }: NodeEvidence, texts: readonly string[]): string {
  return template < 0 ? WORDS[kind] : `${WORDS[kind]} "${cutText(texts[template]!.trim(), 160)}"`;
}
