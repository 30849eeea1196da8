/**
 * From stuck operators to the nodes of a picture. Ranks that wait in the same operators and that the
 * same operators miss are one node. Where that is still too much to read, nodes that are alike fold
 * further: operators of one role that miss alike ranks, ranks that wait in alike operators (the
 * coarsest bisimulation: every path that leads from a rank to a culprit stays a path).
 */
import type { Rank } from "../../model/ids.ts";
import type { Absence, WaitOp } from "../../model/wait-ops.ts";

export type RankStatus = "culprit" | "waiting" | "silent" | "other";

export interface RankNode {
  readonly kind: "ranks";
  readonly ranks: readonly Rank[];
  readonly status: RankStatus;
  /** Whether the ranks left no dump; a culprit may be silent too. */
  readonly isSilent: boolean;
}

export interface OpNode {
  readonly kind: "op";
  /** More than one where alike operators were folded. */
  readonly ops: readonly WaitOp[];
}

export type GraphNode = RankNode | OpNode;

/** From a waiting rank to its operator (`why` is null), or from an operator to who is absent. */
export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly why: Absence | null;
}

export interface Graph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** Up to so many culprits are drawn one by one. */
const MAX_SINGLE_CULPRITS = 8;
/** Refinement settles after as many rounds as the longest chain; longer chains are cut by the cap anyway. */
const MAX_ROUNDS = 64;

export function buildGraph(
  ops: readonly WaitOp[],
  culprits: ReadonlySet<Rank>,
  mostNodes: number,
): Graph {
  const facts = gather(ops, culprits);
  const exact = quotient(facts, exactClasses(facts));
  return exact.nodes.length <= mostNodes ? exact : quotient(facts, alikeClasses(facts));
}

interface Facts {
  readonly ops: readonly WaitOp[];
  /** Ascending. */
  readonly ranks: readonly Rank[];
  /** Per rank, in the order of `ranks`: operators that it is in, and that miss it. */
  readonly waitsIn: readonly (readonly number[])[];
  readonly missingFrom: readonly (readonly { readonly op: number; readonly why: Absence }[])[];
  readonly status: readonly RankStatus[];
  readonly isSilent: readonly boolean[];
  /** Keeps culprits apart; "" for all others. */
  readonly own: readonly string[];
}

function gather(ops: readonly WaitOp[], culprits: ReadonlySet<Rank>): Facts {
  const all = ops.flatMap((op) => [...op.arrived, ...op.absent.map(({ rank }) => rank)]);
  const ranks = [...new Set(all)].sort((a, b) => a - b);
  const at = new Map(ranks.map((rank, i) => [rank, i]));
  const waitsIn: number[][] = ranks.map(() => []);
  const missingFrom: { op: number; why: Absence }[][] = ranks.map(() => []);
  for (const [index, op] of ops.entries()) {
    for (const rank of op.arrived) waitsIn[at.get(rank)!]!.push(index);
    for (const { rank, why } of op.absent) missingFrom[at.get(rank)!]!.push({ op: index, why });
  }
  const isSilent = missingFrom.map((list) => list.some(({ why }) => why === "silent"));
  const status = ranks.map((rank, i): RankStatus => {
    if (culprits.has(rank)) return "culprit";
    if (isSilent[i]) return "silent";
    return waitsIn[i]!.length > 0 ? "waiting" : "other";
  });
  const single = status.filter((word) => word === "culprit").length <= MAX_SINGLE_CULPRITS;
  const own = ranks.map((rank, i) => (single && status[i] === "culprit" ? String(rank) : ""));
  return { ops, ranks, waitsIn, missingFrom, status, isSilent, own };
}

interface Classes {
  readonly ofRank: readonly number[];
  readonly ofOp: readonly number[];
}

function exactClasses(facts: Facts): Classes {
  const keys = facts.ranks.map((_, i) => {
    const missing = facts.missingFrom[i]!.map(({ op, why }) => `${op}${why}`);
    return `${facts.status[i]}|${facts.own[i]}|${facts.waitsIn[i]!.join()}|${missing.join()}`;
  });
  return { ofRank: numbered(keys), ofOp: facts.ops.map((_, i) => i) };
}

function alikeClasses(facts: Facts): Classes {
  let ofRank = numbered(
    facts.ranks.map((_, i) => `${facts.status[i]}|${facts.own[i]}|${facts.isSilent[i]}`),
  );
  let ofOp = numbered(facts.ops.map((op) => `${op.role}|${op.isP2p}|${callName(op)}`));
  const at = new Map(facts.ranks.map((rank, i) => [rank, i]));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const before = countOf(ofRank) + countOf(ofOp);
    const nextOp = facts.ops.map((op, i) => {
      const absent = new Set(op.absent.map(({ rank, why }) => `${ofRank[at.get(rank)!]}${why}`));
      return `${ofOp[i]}|${[...absent].sort().join()}`;
    });
    const nextRank = facts.waitsIn.map((list, i) => {
      const classes = [...new Set(list.map((op) => ofOp[op]!))].sort((a, b) => a - b);
      return `${ofRank[i]}|${classes.join()}`;
    });
    ofOp = numbered(nextOp);
    ofRank = numbered(nextRank);
    if (countOf(ofRank) + countOf(ofOp) === before) break;
  }
  return { ofRank, ofOp };
}

/** Equal keys get equal numbers, in the order of their first appearance. */
function numbered(keys: readonly string[]): number[] {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    numbers.set(key, numbers.size);
    return numbers.size - 1;
  });
}

function countOf(classes: readonly number[]): number {
  return classes.reduce((most, id) => Math.max(most, id), -1) + 1;
}

function quotient(facts: Facts, { ofRank, ofOp }: Classes): Graph {
  const rankNodes = countOf(ofRank);
  const members: Rank[][] = Array.from({ length: rankNodes }, () => []);
  const first: number[] = [];
  for (const [i, id] of ofRank.entries()) {
    members[id]!.push(facts.ranks[i]!);
    first[id] ??= i;
  }
  const folded: WaitOp[][] = Array.from({ length: countOf(ofOp) }, () => []);
  for (const [i, id] of ofOp.entries()) folded[id]!.push(facts.ops[i]!);
  const nodes: GraphNode[] = members.map((ranks, id) => ({
    kind: "ranks",
    ranks,
    status: facts.status[first[id]!]!,
    isSilent: facts.isSilent[first[id]!]!,
  }));
  for (const ops of folded) nodes.push({ kind: "op", ops });
  const edges = new Map<string, GraphEdge>();
  for (const [i, id] of ofRank.entries()) {
    for (const op of facts.waitsIn[i]!) {
      add(edges, { from: id, to: rankNodes + ofOp[op]!, why: null });
    }
    for (const { op, why } of facts.missingFrom[i]!) {
      add(edges, { from: rankNodes + ofOp[op]!, to: id, why });
    }
  }
  return { nodes, edges: [...edges.values()] };
}

function add(edges: Map<string, GraphEdge>, edge: GraphEdge): void {
  const key = `${edge.from}>${edge.to}`;
  if (!edges.has(key)) edges.set(key, edge);
}

/** "all_reduce" of "all_reduce #241 of DATA_PARALLEL_1". */
export function callName(op: WaitOp): string {
  return op.isP2p ? "transfer" : (/^[^\s#]+/.exec(op.what)?.[0] ?? "operator");
}
