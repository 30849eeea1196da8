/** One name for one operator, whichever of its ranks speaks of it. */
import type { Rank } from "../../model/ids.ts";
import type { Head } from "./frontier.ts";

export function opKey(rank: Rank, head: Head): string {
  if (!head.isP2p) return `${head.group}#${head.seq}`;
  const [from, to] = head.isSend ? [rank, head.peer] : [head.peer, rank];
  return `${head.group}:${from}>${to}`;
}

/** Sender and receiver of a P2P operator. */
export function p2pRanks(key: string): Rank[] {
  return key
    .slice(key.indexOf(":") + 1)
    .split(">")
    .map(Number);
}
