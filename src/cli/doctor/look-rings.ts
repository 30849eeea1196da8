/** A folder of rings, and the rings in it. */
import { readdirSync, statSync } from "node:fs";
import { discover, type FoundRing, isAlive } from "../../live/agent/discover.ts";
import { isForeign, type Machine } from "../../live/agent/process-state.ts";
import { ringsOf } from "../../live/agent/select-run.ts";
import type { RingsSeen } from "./rings.ts";

export interface FolderOfRings {
  readonly seen: RingsSeen;
  readonly rings: readonly FoundRing[];
}

export function lookAtRings(folder: string, machine: Machine): FolderOfRings {
  const trouble = troubleOf(folder);
  if (trouble !== null)
    return {
      seen: { folder, trouble, isOpenToOthers: false, unreadable: [], rings: [] },
      rings: [],
    };
  const { runs, troubles } = discover(folder, machine);
  const rings = ringsOf(runs);
  return {
    seen: {
      folder,
      trouble,
      isOpenToOthers: (statSync(folder).mode & 0o022) !== 0,
      unreadable: troubles,
      rings: rings.map((ring) => ({
        rank: ring.header.rank,
        pid: ring.header.pid,
        isLive: isAlive(ring) && !isForeign(ring, machine),
        silentMs: silentMs(ring, machine),
      })),
    },
    rings,
  };
}

function silentMs({ progress }: FoundRing, machine: Machine): number | null {
  if (progress.heartbeatNs === 0n) return null;
  return Math.max(0, Number(machine.monotonicNs() - progress.heartbeatNs) / 1e6);
}

function troubleOf(folder: string): RingsSeen["trouble"] {
  try {
    if (!statSync(folder).isDirectory()) return "not a folder";
    readdirSync(folder);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "EACCES" || code === "EPERM" ? "denied" : "missing";
  }
}
