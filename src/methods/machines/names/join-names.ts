/**
 * One machine, several names. dcgm-exporter says Hostname="node777" or the name of its pod, node_exporter says
 * instance="10.40.21.32:9100": without joining them half of a machine's metrics belong to somebody else. Evidence is
 * taken in the order of its weight: the user's table, labels of one and the same series, what info metrics say, the same
 * GPU, DNS suffixes. What names two machines at once names neither.
 */
import { getOrInsert } from "../../../base/group-by.ts";
import {
  isAddress,
  isProperName,
  shortName,
  type JoinedName,
  type NameClaim,
  type NameLink,
} from "../../../model/machine-names.ts";
import type { MetricSet } from "../../../model/metrics.ts";
import { NameSets } from "./name-sets.ts";
import { cameAndWentTogether } from "./together.ts";

export interface JoinHints {
  /** Pairs that something else than names joins (together.ts). */
  readonly alike?: readonly (readonly [string, string])[];
  /** Machine → its other names, as the user knows them. */
  readonly table?: ReadonlyMap<string, readonly string[]>;
  /** What the job calls its machines: preferred for the joined ones. */
  readonly jobNames?: ReadonlySet<string>;
}

export interface JoinedNames {
  /** As a set calls a machine → the name of the machine. */
  nameOf(this: void, name: string): string;
  /** Those that go by more than one name, and exporters' pods. */
  readonly joined: readonly JoinedName[];
  /** Names that stand for several machines, and so for none. */
  readonly disputed: readonly string[];
}

interface Edge {
  readonly a: string;
  readonly b: string;
  readonly by: string;
}

type Named = Pick<MetricSet, "machines" | "claims" | "links">;

const TABLE = "the job's file";
const DNS = "DNS suffix";
const CLOUD = "address in the name";
const TOGETHER = "came and went together";
const INTERFACE = "name of an interface";

/** With the samples at hand, who came and went together is asked last. */
export function joinSets(sets: readonly MetricSet[], hints: JoinHints = {}): JoinedNames {
  const names = joinNames(sets, hints);
  const alike = cameAndWentTogether(sets, names.nameOf);
  return alike.length === 0 ? names : joinNames(sets, { ...hints, alike });
}

export function joinNames(sets: readonly Named[], hints: JoinHints = {}): JoinedNames {
  const keys = new Set(sets.flatMap(({ machines }) => machines));
  const edges = [
    ...sets.flatMap((set) => claimEdges(set)),
    ...linkEdges(sets.flatMap(({ links = [] }) => links)),
  ];
  const disputed = disputedNames(edges);
  const names = new NameSets();
  const told: Edge[] = [];
  const join = (edge: Edge): void => {
    names.join(edge.a, edge.b);
    told.push(edge);
  };
  for (const key of keys) names.add(key);
  for (const [machine, others] of hints.table ?? [])
    for (const other of others) join({ a: machine, b: other, by: TABLE });
  for (const edge of edges) if (!disputed.has(edge.a) && !disputed.has(edge.b)) join(edge);
  for (const edge of spelledAlike(names, disputed)) join(edge);
  for (const [a, b] of hints.alike ?? []) join({ a, b, by: TOGETHER });
  return describe(keys, names, told, hints, disputed);
}

function claimEdges({ machines, claims = [] }: Named): Edge[] {
  return claims.flatMap((own, m) =>
    own.map(({ label, value }: NameClaim) => ({
      a: machines[m]!,
      b: tagged(label, value),
      by: label,
    })),
  );
}

const TAGGED = /^(?:pod|uuid):/;

/** A pod, or a GPU, is no machine's name, and must not be taken for one that is spelled alike. */
function tagged(label: string, value: string): string {
  return label === "pod" || label.toLowerCase() === "uuid"
    ? `${label.toLowerCase()}:${value}`
    : value;
}

/** Of images that all have the same host name, node_uname_info says so of many addresses at once. */
function linkEdges(links: readonly NameLink[]): Edge[] {
  const addresses = new Map<string, Set<string>>();
  for (const { names, from } of links) {
    if (from !== "node_uname_info") continue;
    const known = getOrInsert(addresses, names[0]!, () => new Set());
    for (const name of names.slice(1)) if (isAddress(name)) known.add(name);
  }
  return links.flatMap(({ names: [first, ...others], pod, from }) => {
    if (from === "node_uname_info" && addresses.get(first!)!.size > 1) return [];
    const all = pod === null ? others : [...others, tagged("pod", pod)];
    return all.map((other) => ({ a: first!, b: other, by: from }));
  });
}

/**
 * Names that several machines claim: the address of an exporter that speaks for many, an address that two machines had
 * one after the other, a label that names the cluster. A machine that merely has two spellings claims nothing twice.
 */
function disputedNames(edges: readonly Edge[]): Set<string> {
  const owners = new Map<string, Set<string>>();
  const own = (name: string, owner: string): void => {
    if (!isProperName(owner) || owner.includes(":") || name === owner) return;
    getOrInsert(owners, name, () => new Set()).add(shortName(owner).toLowerCase());
  };
  for (const { a, b } of edges) own(b, a);
  return new Set([...owners].filter(([, who]) => who.size > 1).map(([name]) => name));
}

const OF_INTERFACE = /-(?:ib|eth|hsn|data|mgmt|oob)\d*$/i;

/** Names that differ in their domain, or hold the address, or name an interface of the machine. */
function* spelledAlike(names: NameSets, disputed: ReadonlySet<string>): Iterable<Edge> {
  const byShort = new Map<string, string[]>();
  const all = [...names.all()].filter((name) => isProperName(name) && !name.includes(":"));
  for (const name of all) {
    if (disputed.has(name)) continue;
    const short = shortName(name).toLowerCase();
    byShort.set(short, [...(byShort.get(short) ?? []), name]);
  }
  for (const [short, spelled] of byShort) {
    const domains = new Set(
      spelled.map((name) => name.toLowerCase()).filter((name) => name !== short),
    );
    // node1.east and node1.west are two machines, and node1 is neither for sure.
    if (domains.size <= 1)
      for (const name of spelled.slice(1)) yield { a: spelled[0]!, b: name, by: DNS };
    const [, ...parts] = /^ip-(\d+)-(\d+)-(\d+)-(\d+)$/.exec(short) ?? [];
    const address = parts.join(".");
    if (parts.length > 0 && names.has(address) && !disputed.has(address))
      yield { a: spelled[0]!, b: address, by: CLOUD };
    const plain = byShort.get(short.replace(OF_INTERFACE, ""));
    if (OF_INTERFACE.test(short) && plain) yield { a: plain[0]!, b: spelled[0]!, by: INTERFACE };
  }
}

function describe(
  keys: ReadonlySet<string>,
  names: NameSets,
  told: readonly Edge[],
  { table, jobNames = new Set() }: JoinHints,
  disputed: ReadonlySet<string>,
): JoinedNames {
  const by = new Map<string, Set<string>>();
  const owners = new Map<string, Set<string>>();
  for (const { a, b } of told) getOrInsert(owners, b, () => new Set()).add(a);
  for (const { a, b, by: what } of told) {
    // A pod or a GPU that one name alone has joins nothing.
    if (TAGGED.test(b) && owners.get(b)!.size < 2) continue;
    getOrInsert(by, names.rootOf(a), () => new Set()).add(what);
  }
  const nameOf = new Map<string, string>();
  const joined: JoinedName[] = [];
  for (const [root, members] of names.groups()) {
    const own = members.filter((name) => keys.has(name));
    if (own.length === 0) continue;
    const plain = members.filter((name) => !TAGGED.test(name));
    const machine = best(plain, keys, table, jobNames);
    for (const name of own) nameOf.set(name, machine);
    const pods = members.flatMap((name) => (name.startsWith("pod:") ? [name.slice(4)] : []));
    const isPod = !plain.some(isProperName) && (pods.length > 0 || !plain.some(isAddress));
    if (plain.length > 1 || isPod)
      joined.push({
        machine,
        names: [...plain.filter((name) => name !== machine), ...pods].sort(),
        by: [...(by.get(root) ?? [])].sort(),
        isPod,
      });
  }
  joined.sort((a, b) => (a.machine < b.machine ? -1 : 1));
  return {
    nameOf: (name) => nameOf.get(name) ?? name,
    joined,
    disputed: [...disputed].sort(),
  };
}

/** What the user or the job calls it; then what its series are filed under; the shortest of the spellings. */
function best(
  names: readonly string[],
  keys: ReadonlySet<string>,
  table: JoinHints["table"],
  jobNames: ReadonlySet<string>,
): string {
  const rank = (name: string): number => {
    if (table?.has(name)) return 0;
    if (jobNames.has(name)) return 1;
    if (!isProperName(name)) return isAddress(name) ? 4 : 5;
    return keys.has(name) ? 2 : 3;
  };
  return names.reduce((a, b) => {
    const order = rank(a) - rank(b) || a.length - b.length || (a < b ? -1 : 1);
    return order <= 0 ? a : b;
  });
}
