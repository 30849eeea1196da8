/**
 * The process groups of a job. A group is its name and its members together: names are reused after
 * split_group, and local ids differ from rank to rank, so neither alone identifies a group.
 */
import { getOrInsert } from "../base/group-by.ts";
import { largest } from "../base/numbers.ts";
import type { Rank } from "../model/ids.ts";
import type { Group } from "../model/job.ts";
import type { LogGroup } from "../model/log.ts";
import type { FlightDump, OperatorLog, OperatorTable } from "../model/operators.ts";

export class GroupTable {
  readonly groups: Group[] = [];
  readonly #byKey = new Map<string, number>();
  /** Groups whose members no dump spells out (Gloo): name → members that mention it so far. */
  readonly #mentioned = new Map<string, number>();

  readonly #idOfText = new Map<string, number>();
  readonly #idOfList = new WeakMap<readonly Rank[], number>();
  #members = 0;

  /** Dump group index → job group id. */
  map(rank: Rank, dump: FlightDump): Int32Array {
    const ids = new Int32Array(dump.groups.length);
    for (const [index, group] of dump.groups.entries()) {
      ids[index] = group.ranks
        ? this.#withMembers(group.name, group.desc, group.ranks, group.own !== undefined)
        : this.#mention(group.name, group.desc, rank);
    }
    return ids;
  }

  /** The same for operators of another source; -1 where the members are unknown. */
  mapKnown({ groups }: OperatorLog): Int32Array {
    return Int32Array.from(groups, ({ name, desc, ranks }) =>
      ranks ? this.#withMembers(name, desc, ranks) : -1,
    );
  }

  /** Groups that only logs mention; their members are the ranks that named themselves, in group order. */
  addFromLogs(logGroups: readonly LogGroup[]): void {
    const byName = new Map<string, LogGroup[]>();
    for (const group of logGroups) {
      getOrInsert(byName, group.name, () => []).push(group);
    }
    for (const [name, list] of byName) {
      if (this.groups.some((group) => group.name === name)) continue;
      const members = new Map(list.map((group) => [group.rank, group.groupRank]));
      const ranks = [...members.keys()].sort((a, b) => members.get(a)! - members.get(b)! || a - b);
      const desc = list.find((group) => group.desc !== "")?.desc ?? "";
      // A group with members that nobody introduced is of no use: we would not know whom it waits for.
      const size = largest(
        list.map((group) => group.size),
        0,
      );
      if (size > 0 && ranks.length !== size) continue;
      this.#withMembers(name, desc, ranks);
    }
  }

  /** Groups with members that nobody knows: name → how many. */
  markUnknown(unknown: ReadonlyMap<string, number>): void {
    for (const [id, group] of this.groups.entries()) {
      const unknownMembers = unknown.get(group.name);
      if (unknownMembers !== undefined) this.groups[id] = { ...group, unknownMembers };
    }
  }

  /** Marks the groups that carry P2P, and those of the same role: a record may show it in just one. */
  markP2p(records: Iterable<{ readonly ops: OperatorTable; readonly groupIds: Int32Array }>): void {
    const roles = new Set<string>();
    for (const { ops, groupIds } of records) {
      const carries = new Uint8Array(groupIds.length);
      for (let i = 0; i < ops.count; i++) if (ops.isP2p[i] === 1) carries[ops.group[i]!] = 1;
      for (const [index, id] of groupIds.entries())
        if (carries[index] === 1 && id >= 0) roles.add(this.groups[id]!.role);
    }
    for (const [id, group] of this.groups.entries()) {
      const carriesP2p = roles.has(group.role) || /PIPELINE/i.test(group.desc);
      if (carriesP2p) this.groups[id] = { ...group, carriesP2p };
    }
  }

  #withMembers(name: string, desc: string, ranks: readonly Rank[], isCommunicator = false): number {
    const key = `${name}|${this.#membersId(ranks)}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      // A rank that has not used its group yet may not know what it is called.
      if (desc !== "" && this.groups[known]!.desc === "")
        this.groups[known] = { ...this.groups[known]!, desc, role: roleOf(desc, ranks.length) };
      return known;
    }
    this.#members += ranks.length;
    // More members over all groups than any job has: somebody's joke. Such a group waits for nobody.
    const members = this.#members > MAX_MEMBERS ? [] : ranks;
    return this.#add(key, name, desc, members, isCommunicator ? apart(members) : "");
  }

  /** A number for a list of ranks; lists that a reader shares between groups are joined only once. */
  #membersId(ranks: readonly Rank[]): number {
    const seen = this.#idOfList.get(ranks);
    if (seen !== undefined) return seen;
    const text = ranks.join();
    const id = this.#idOfText.get(text) ?? this.#idOfText.size;
    this.#idOfText.set(text, id);
    this.#idOfList.set(ranks, id);
    return id;
  }

  #mention(name: string, desc: string, rank: Rank): number {
    const known = this.#mentioned.get(name);
    if (known === undefined) {
      const id = this.#add(`${name}|?`, name, desc, [rank]);
      this.#mentioned.set(name, id);
      return id;
    }
    const group = this.groups[known]!;
    this.groups[known] = { ...group, ranks: [...group.ranks, rank] };
    return known;
  }

  #add(key: string, name: string, desc: string, ranks: readonly Rank[], apart = ""): number {
    const id = this.groups.length;
    this.#byKey.set(key, id);
    this.groups.push({
      id,
      name,
      desc,
      ranks,
      role: roleOf(desc, ranks.length) + (desc === "" ? apart : ""),
      carriesP2p: false,
    });
    return id;
  }
}

const MAX_MEMBERS = 5_000_000;

/** Communicators have no description: how far apart their ranks are tells the dimensions of parallelism from each other. */
function apart(ranks: readonly Rank[]): string {
  const step = (ranks[1] ?? 0) - (ranks[0] ?? 0);
  const isEven = ranks.every((rank, i) => i === 0 || step === rank - ranks[i - 1]!);
  return ranks.length > 1 && isEven && step > 1 ? `, ${step} apart` : "";
}

/** "TENSOR_PARALLEL_3" → "TENSOR_PARALLEL"; groups without a description are distinguished by size. */
function roleOf(desc: string, size: number): string {
  const role = desc.replace(/[-_:]?\d+/g, "").trim();
  return role === "" || role === "undefined" ? `group of ${size}` : role;
}
