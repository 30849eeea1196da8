/** What sets a node apart, and how pieces of it add up. */

/**
 * only: it writes what (nearly) nobody else does. lacks: it does not write what nearly all others do. more, fewer: other
 * counts. first: it has before all others what they have, too. variant: the same line with another value. named: others'
 * failure lines name it. stopped: it falls silent before the others.
 */
export type Difference =
  | "only"
  | "lacks"
  | "more"
  | "fewer"
  | "first"
  | "variant"
  | "named"
  | "stopped";

export interface NodeEvidence {
  readonly node: number;
  /** -1 where no event stands for it. */
  readonly template: number;
  readonly kind: Difference;
  /** 0 to 1. */
  readonly score: number;
}

export interface NodeSuspect {
  readonly node: number;
  readonly name: string;
  /** 0 to 1. */
  readonly score: number;
  /** Strongest first. */
  readonly evidence: readonly NodeEvidence[];
}

export interface EventSuspect {
  readonly template: number;
  readonly score: number;
  readonly kind: Difference;
  /** Nodes that it speaks against, strongest first; cut. */
  readonly nodes: readonly number[];
}

/** Further pieces of evidence of a node are rarely independent of the first. */
const DAMPING = 0.6;
const MOST_PIECES = 4;
const MOST_OF_KIND = 2;
/** What is lacking is all lacking for the same reason. */
const MOST_LACKING = 1;
const MOST_SHOWN = 8;

export function rankNodes(
  pieces: readonly NodeEvidence[],
  names: readonly string[],
): NodeSuspect[] {
  const ofNode: NodeEvidence[][] = names.map(() => []);
  for (const piece of pieces) ofNode[piece.node]!.push(piece);
  return ofNode
    .map((list, node) => {
      const evidence = list.sort((a, b) => b.score - a.score);
      return { node, name: names[node]!, score: together(evidence), evidence: shown(evidence) };
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.node - b.node);
}

function together(evidence: readonly NodeEvidence[]): number {
  const kinds = new Map<Difference, number>();
  const templates = new Set<number>();
  let doubt = 1;
  let taken = 0;
  for (const { kind, template, score } of evidence) {
    const ofKind = kinds.get(kind) ?? 0;
    if (taken === MOST_PIECES) break;
    const most = kind === "lacks" ? MOST_LACKING : MOST_OF_KIND;
    if (ofKind === most || (template >= 0 && templates.has(template))) continue;
    kinds.set(kind, ofKind + 1);
    templates.add(template);
    doubt *= 1 - Math.min(1, score) * DAMPING ** taken++;
  }
  return 1 - doubt;
}

function shown(evidence: readonly NodeEvidence[]): NodeEvidence[] {
  return evidence.slice(0, MOST_SHOWN);
}

export function rankEvents(pieces: readonly NodeEvidence[]): EventSuspect[] {
  const best = new Map<number, { score: number; kind: Difference; nodes: number[] }>();
  for (const { template, score, kind, node } of [...pieces].sort((a, b) => b.score - a.score)) {
    if (template < 0) continue;
    const known = best.get(template);
    if (!known) best.set(template, { score, kind, nodes: [node] });
    else if (known.nodes.length < MOST_SHOWN && !known.nodes.includes(node)) known.nodes.push(node);
  }
  return [...best].map(([template, event]) => ({ template, ...event }));
}
