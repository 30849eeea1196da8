/** Everybody who is asked about a planted job, on one footing: templates are the generator's own events for all. */
import { shippedMatchers } from "../../src/library/shipped.ts";
import { normalEvents, type NormalPool } from "../../src/methods/logs/cross-job.ts";
import { poolOf } from "./text-pool.ts";
import { l4 } from "./l4/l4.ts";
import { nodesOf } from "../../src/methods/logs/nodes.ts";
import { silencesOf } from "../../src/methods/logs/silence.ts";
import { eventWeights } from "../../src/methods/logs/spatial-weights.ts";
import { compareNodes } from "../../src/methods/logs/spatial.ts";
import { compareIterations } from "../../src/methods/logs/temporal.ts";
import { identityTemplates } from "../../test/support/methods/log-digest.ts";
import type { LogDigest } from "../../src/model/log-digest.ts";
import { errorCount, errorTime, isKeyword } from "./baselines.ts";

export interface Answer {
  /** Events, as `testShape` writes them. */
  readonly events: ReadonlySet<string>;
  /** Names, most suspicious first. */
  readonly nodes: readonly string[];
  /** Most suspicious first; not everybody says. */
  readonly iterations?: readonly number[];
  readonly stage?: string;
}

export type Method = (digest: LogDigest, pool: NormalPool | null) => Answer;

export function poolOfDigests(digests: readonly LogDigest[]): NormalPool {
  return poolOf(digests.map((digest) => identityTemplates(digest).texts));
}

export const METHODS: Readonly<Record<string, Method>> = {
  "comparisons only": (digest, pool) => comparisons(digest, pool, false),
  "comparisons + library": (digest, pool) => comparisons(digest, pool, true),
  "L4 as published": (digest, pool) => {
    const templates = identityTemplates(digest);
    const nodes = nodesOf(digest);
    const { indicating, nodes: ranked, iterations } = l4(digest, templates, nodes, pool);
    return {
      events: new Set([...indicating].map((t) => templates.texts[t]!)),
      nodes: ranked.map(({ node }) => nodes.names[node]!),
      iterations,
    };
  },
  Error_time: (digest) => byErrors(digest, errorTime),
  Error_count: (digest) => byErrors(digest, errorCount),
};

/** Their nodes; their lines are those that a keyword marks. */
function byErrors(digest: LogDigest, rank: typeof errorTime): Answer {
  const nodes = nodesOf(digest);
  const { texts } = identityTemplates(digest);
  return {
    events: new Set(texts.filter((_, shape) => isKeyword(digest.shapes[shape]!))),
    nodes: rank(digest, nodes).map((node) => nodes.names[node]!),
  };
}

/** Below this an event may be anything. */
const TELLING = 0.22;
const ODD = 0.2;

function comparisons(digest: LogDigest, pool: NormalPool | null, hasLibrary: boolean): Answer {
  const templates = identityTemplates(digest);
  const nodes = nodesOf(digest);
  const matchers = hasLibrary ? shippedMatchers() : null;
  const weights = eventWeights(digest, templates, matchers && ((text) => matchers.match(text)));
  const isNormal = normalEvents(templates.texts, pool);
  const { evidence } = silencesOf(digest, nodes);
  const spatial = compareNodes(digest, templates, nodes, {
    weightOf: (template) => weights[template]!,
    isNormal,
    also: evidence,
  });
  const temporal = compareIterations(digest, templates);
  const isTelling = (template: number): boolean =>
    (isNormal[template] === 0 || weights[template] === 1) &&
    weights[template]! >= TELLING &&
    !isTeardown(texts(template));
  const texts = (template: number): string => templates.texts[template]!;
  // Launchers and schedulers that clean up say nothing of the cause.
  const isTeardown = (text: string): boolean => {
    const record = matchers?.match(text)[0]?.record;
    return record?.role === "cascade" && /launcher|scheduler/.test(record.layer);
  };
  const indicating = new Set<number>();
  for (const { template } of temporal.events) if (isTelling(template)) indicating.add(template);
  for (const { template, score, kind } of spatial.events) {
    if (kind === "variant" && score >= ODD) indicating.add(template);
    if (kind === "only" && score >= ODD && isNormal[template] === 0) indicating.add(template);
  }
  return {
    events: new Set([...indicating].map((template) => templates.texts[template]!)),
    nodes: spatial.nodes.map(({ name }) => name),
    iterations: temporal.iterations.map(({ iteration }) => iteration),
  };
}
