/** What lines say beyond their template: whom they name, and values that differ on one node alone. */
import { getOrInsert } from "../../base/group-by.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";
import type { NodeEvidence } from "./spatial-evidence.ts";
import type { LogTemplates } from "./spatial-matrix.ts";

const NAMED_STRENGTH = 0.75;
const VARIANT_STRENGTH = 0.65;
/** Who accuses others is alive. */
const ACCUSER = 0.3;
/** Everybody talks to the store's host, and loses it when anybody leaves: naming it accuses nobody. */
const STORE = /tcpstore|rendezvous|rdzv|\bstore\b|master_addr|:29[45]\d\d\b|init_method/i;
const WORD = /[a-z][\w-]*\d[\w-]*/gi;
const PEER_RANK =
  /\b(?:from|to|peer|remote|by|with|on) (?:global |peer |remote )?rank[ _:]?(\d+)/gi;

/** Nodes that other nodes' failure lines name: a peer that is gone leaves no line of its own. */
export function namedNodes(
  { kept, streams }: LogDigest,
  nodes: LogNodes,
  /** 0 for lines that accuse nobody. */
  weightOf: (shape: number) => number,
): NodeEvidence[] {
  const namedIn = namer(streams, nodes);
  const accusers = nodes.names.map(() => new Map<number, number>());
  for (const { shape, stream, text } of kept) {
    const weight = STORE.test(text) ? 0 : weightOf(shape);
    if (weight === 0) continue;
    const own = nodes.of[stream]!;
    // Lines of nobody's (the scheduler's) count once for every stream.
    const accuser = own < 0 ? -1 - stream : own;
    for (const node of namedIn(text, own)) {
      const known = accusers[node]!.get(accuser) ?? 0;
      if (weight > known) accusers[node]!.set(accuser, weight);
    }
  }
  const alive = new Set(accusers.flatMap((map) => [...map.keys()]));
  let all = 0;
  const sums = accusers.map((map, node) => {
    let sum = 0;
    for (const weight of map.values()) sum += weight * (alive.has(node) ? ACCUSER : 1);
    all += sum;
    return sum;
  });
  return sums.flatMap((sum, node) => {
    if (sum === 0) return [];
    let most = 0;
    for (const weight of accusers[node]!.values()) if (weight > most) most = weight;
    const score = ((NAMED_STRENGTH * sum) / all) * (0.5 + 0.5 * most);
    return [{ node, template: -1, kind: "named" as const, score }];
  });
}

/** By template: 1 where most of its lines name other nodes. */
export function accusingEvents(
  { kept, streams }: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
): Uint8Array {
  const namedIn = namer(streams, nodes);
  const balance = new Int32Array(templates.texts.length);
  for (const { shape, stream, text } of kept)
    balance[templates.of[shape]!]! += namedIn(text, nodes.of[stream]!).length > 0 ? 1 : -1;
  return Uint8Array.from(balance, (value) => Number(value > 0));
}

/** Nodes other than its writer's that a text names. */
function namer(
  streams: LogDigest["streams"],
  nodes: LogNodes,
): (text: string, own: number) => number[] {
  const byName = new Map(nodes.names.map((name, node) => [name.toLowerCase(), node]));
  const byRank = ranksOf(streams, nodes);
  return (text, own) => {
    const found: number[] = [];
    const add = (node: number | undefined): void => {
      if (node !== undefined && node !== own) found.push(node);
    };
    for (const [word] of text.matchAll(WORD)) add(byName.get(word.toLowerCase()));
    for (const [, rank] of text.matchAll(PEER_RANK)) add(byRank.get(Number(rank)));
    return found;
  };
}

function ranksOf(streams: LogDigest["streams"], nodes: LogNodes): Map<number, number> {
  const byRank = new Map<number, number>();
  streams.forEach(({ rank }, stream) => {
    const node = nodes.of[stream]!;
    if (rank !== null && node >= 0) byRank.set(rank, node);
  });
  return byRank;
}

/** Most nodes must say the very same, digits and all: then another value is a difference ("version 2.18" among 2.19). */
const SAME_SHARE = 0.8;
const LEAST_NODES = 3;

export function variants(
  { kept }: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
): NodeEvidence[] {
  const least = Math.max(LEAST_NODES, 0.5 * nodes.names.length);
  const texts = new Map<number, Map<string, Set<number>>>();
  for (const { shape, stream, text } of kept) {
    const node = nodes.of[stream]!;
    if (node < 0) continue;
    const template = templates.of[shape]!;
    const ofTemplate = getOrInsert(texts, template, () => new Map<string, Set<number>>());
    getOrInsert(ofTemplate, text, () => new Set()).add(node);
  }
  const found: NodeEvidence[] = [];
  for (const [template, byText] of texts) {
    if (byText.size < 2) continue;
    let usual = new Set<number>();
    const all = new Set<number>();
    for (const set of byText.values()) {
      if (set.size > usual.size) usual = set;
      for (const node of set) all.add(node);
    }
    if (all.size < least || usual.size < SAME_SHARE * all.size) continue;
    const odd = [...all].filter((node) => !usual.has(node));
    if (odd.length === 0) continue;
    const rare = Math.log(all.size / odd.length) / Math.log(all.size);
    for (const node of odd)
      found.push({ node, template, kind: "variant", score: VARIANT_STRENGTH * rare });
  }
  return found;
}

const MOST_COMPARED = 50;
const ALIKE = 0.4;

/** A node that lacks a line which all others have, and has one like it that nobody else has: the same with other words. */
export function substitutes(
  pieces: readonly NodeEvidence[],
  texts: readonly string[],
): NodeEvidence[] {
  const only = new Map<number, NodeEvidence[]>();
  for (const piece of pieces) {
    if (piece.kind !== "only") continue;
    const list = only.get(piece.node) ?? [];
    only.set(piece.node, list);
    if (list.length < MOST_COMPARED) list.push(piece);
  }
  const asked = new Map<number, number>();
  const found: NodeEvidence[] = [];
  for (const { kind, node, template } of pieces) {
    if (kind !== "lacks") continue;
    const times = (asked.get(node) ?? 0) + 1;
    asked.set(node, times);
    if (times > MOST_COMPARED) continue;
    for (const other of only.get(node) ?? [])
      if (alike(texts[template]!, texts[other.template]!) >= ALIKE)
        found.push({ node, template: other.template, kind: "variant", score: VARIANT_STRENGTH });
  }
  return found;
}

/** Words in common, of all words of both; lines that begin differently are different lines. */
function alike(a: string, b: string): number {
  const left = a.split(/[\s,;:=]+/);
  const right = b.split(/[\s,;:=]+/);
  if (left[0] !== right[0]) return 0;
  const words = new Set(left);
  const common = new Set(right.filter((word) => words.has(word))).size;
  return common / new Set([...left, ...right]).size;
}
