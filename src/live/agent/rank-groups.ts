/** The process groups of a rank, from the communicators of its ring; a group keeps its index as others come. */
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  COMPLETE,
  HEADER,
} from "../../ingest/probe-ring/layout.ts";
import { LIMITS, type GroupReport } from "../wire/messages.ts";
import type { RingFollower } from "./rings/follow-ring.ts";
import { textAt } from "../../ingest/probe-ring/ring-bytes.ts";

export class RankGroups {
  readonly #groups: GroupReport[] = [];
  /** Index in the ring → index in the list. */
  readonly #indexOf = new Map<number, number>();
  #looked = 0;

  get list(): readonly GroupReport[] {
    return this.#groups;
  }

  /** Whether there are new ones. Entries are written once, so that only new ones are read. */
  look(follower: RingFollower): boolean {
    const { header } = follower;
    const claimed = Math.min(
      header.readUInt32LE(HEADER.commCount),
      header.readUInt32LE(HEADER.commCapacity),
      LIMITS.groupsPerRank,
    );
    if (claimed <= this.#looked) return false;
    const offset = header.readUInt32LE(HEADER.commsOffset);
    const before = this.#groups.length;
    const bytes = Buffer.alloc(COMMUNICATOR_BYTES);
    let isComplete = true;
    for (let index = this.#looked; index < claimed; index++) {
      if (this.#indexOf.has(index)) continue;
      const entry = follower.readAt(bytes, offset + index * COMMUNICATOR_BYTES) ? bytes : null;
      const group = entry === null ? null : groupOf(entry);
      if (group === "incomplete") isComplete = false;
      else if (group !== null && entry !== null) {
        this.#indexOf.set(index, this.#groups.push(group) - 1);
      }
    }
    if (isComplete) this.#looked = claimed;
    return this.#groups.length > before;
  }

  /** Of a communicator of the ring; -1 where it is not known. */
  indexOf(communicator: number): number {
    return this.#indexOf.get(communicator) ?? -1;
  }

  sizeOf(communicator: number): number {
    return this.#groups[this.indexOf(communicator)]?.size ?? 0;
  }

  /** Whether NCCL does nothing for it, which nobody times: alone in a communicator, or with oneself. */
  isAlone(communicator: number, peer: number | null): boolean {
    const group = this.#groups[this.indexOf(communicator)];
    return group !== undefined && (group.size === 1 || peer === group.groupRank);
  }

  /** Id of the first communicator that all ranks are in. */
  worldId(worldSize: number): string | null {
    if (worldSize < 1) return null;
    return this.#groups.find(({ size }) => size === worldSize)?.key ?? null;
  }
}

/** Null for one that says what cannot be. */
function groupOf(entry: Buffer): GroupReport | "incomplete" | null {
  const rank = entry.readInt32LE(COMMUNICATOR.rank);
  const size = entry.readInt32LE(COMMUNICATOR.size);
  if ((entry.readUInt32LE(COMMUNICATOR.flags) & COMPLETE) === 0) return "incomplete";
  if (size < 1 || size > LIMITS.worldSize || rank < 0 || rank >= size) return null;
  const id = entry.readBigUInt64LE(COMMUNICATOR.id).toString(16).padStart(16, "0");
  const name = textAt(entry, COMMUNICATOR.name, COMMUNICATOR.nameBytes);
  return { key: id, name: name === "" ? id : name, desc: name, groupRank: rank, size, ranks: null };
}
