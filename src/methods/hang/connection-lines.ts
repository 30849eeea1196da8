/**
 * The two ends of every connection, side by side. What a sender's proxy knows and what the receiver's proxy knows of the
 * same line are in two rings; only together do they say on which side the data stands still.
 */
import { largest } from "../../base/numbers.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group, Job } from "../../model/job.ts";
import type { ProbeProcess } from "../../model/probe.ts";

/** What one proxy knows of the line. */
export interface End {
  readonly process: ProbeProcess;
  /** Steps. */
  readonly begun: number;
  readonly finished: number;
  /** What the oldest unfinished step waits for; 0 where none is on its way. */
  readonly state: number;
}

/** One direction between two members in one channel. Members are ranks of the communicator. */
export interface Line {
  readonly channel: number;
  readonly from: number;
  readonly to: number;
  sender: End | null;
  receiver: End | null;
}

export interface Wiring {
  readonly id: string;
  /** For people. */
  readonly label: string;
  readonly size: number;
  /** Rank of the communicator → its process, of those that left a ring. */
  readonly members: ReadonlyMap<number, ProbeProcess>;
  readonly lines: readonly Line[];
  /** Rank of the communicator → of the job; null where nothing tells. */
  readonly rankOf: (member: number) => Rank | null;
  /** Which machine a member is on; members without a ring stand for themselves. */
  readonly machineOf: (member: number) => string;
  /** Milliseconds since any live proxy of it moved. */
  readonly idleMs: number;
}

/** Every communicator of which a ring shows a step on its way. */
export function wirings(job: Job): Wiring[] {
  const byId = new Map<string, { process: ProbeProcess; index: number }[]>();
  for (const process of job.probes ?? []) {
    for (const [index, { id, isDestroyed }] of process.communicators.entries()) {
      if (isDestroyed) continue;
      const list = byId.get(id);
      if (list) list.push({ process, index });
      else byId.set(id, [{ process, index }]);
    }
  }
  const nowMs = largest((job.probes ?? []).map(takenMs), -Infinity);
  const groups = new Map(job.groups.map((group) => [group.name, group]));
  return [...byId].flatMap(([id, list]) => {
    const wiring = wire(groups.get(id), id, list, nowMs);
    const isOpen = wiring.lines.some(
      ({ sender, receiver }) => isWaiting(sender) || isWaiting(receiver),
    );
    return isOpen ? [wiring] : [];
  });
}

export function isWaiting(end: End | null): boolean {
  return end !== null && end.state > 0;
}

function wire(
  group: Group | undefined,
  id: string,
  list: readonly { readonly process: ProbeProcess; readonly index: number }[],
  nowMs: number,
): Wiring {
  const members = new Map<number, ProbeProcess>();
  const lines = new Map<number, Line>();
  let idleMs = Infinity;
  const first = list[0]!.process.communicators[list[0]!.index]!;
  for (const { process, index } of list) {
    const { rank } = process.communicators[index]!;
    members.set(rank, process);
    const { connections } = process;
    let changedNs = -Infinity;
    for (let i = 0; i < connections.count; i++) {
      if (connections.communicator[i] !== index) continue;
      const isSend = connections.isSend[i] === 1;
      const peer = connections.peer[i]!;
      const [from, to] = isSend ? [rank, peer] : [peer, rank];
      const channel = connections.channel[i]!;
      // Up to 2^53: 256 channels, members up to 2^20.
      const key = (from * 1_048_576 + to) * 256 + channel;
      let line = lines.get(key);
      if (!line) {
        line = { channel, from, to, sender: null, receiver: null };
        lines.set(key, line);
      }
      const end: End = {
        process,
        begun: connections.begun[i]!,
        finished: connections.finished[i]!,
        state: connections.state[i]!,
      };
      if (isSend) line.sender = end;
      else line.receiver = end;
      if (connections.changedNs[i]! > changedNs) changedNs = connections.changedNs[i]!;
    }
    // A process that is stopped moves nothing, and its heartbeat stands still with it.
    if (!/[TtXZ]/.test(process.state) && changedNs > -Infinity)
      idleMs = Math.min(idleMs, idleSince(process, changedNs, nowMs));
  }
  const ranks = group && group.unknownMembers === undefined ? group.ranks : null;
  return {
    id,
    label: group?.desc || first.name || `communicator ${id}`,
    size: first.size,
    members,
    lines: [...lines.values()],
    idleMs,
    rankOf: (member) => members.get(member)?.rank ?? ranks?.[member] ?? null,
    machineOf: (member) => members.get(member)?.host || `#${member}`,
  };
}

/** Milliseconds since 1970 at which the ring was looked at. */
function takenMs({ epochNs, copiedNs, heartbeatNs, startedNs }: ProbeProcess): number {
  const beat = Number.isFinite(heartbeatNs) ? heartbeatNs : startedNs;
  const takenNs = Number.isFinite(copiedNs) ? copiedNs : beat;
  return Number(epochNs / 1_000_000n) + takenNs / 1e6;
}

/** By the ring's own clock where its copy is dated; else by the newest sign of life of the job. */
function idleSince({ epochNs, copiedNs }: ProbeProcess, changedNs: number, nowMs: number): number {
  return Number.isFinite(copiedNs)
    ? (copiedNs - changedNs) / 1e6
    : nowMs - Number(epochNs / 1_000_000n) - changedNs / 1e6;
}
