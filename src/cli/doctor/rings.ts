/** Are rings written into the folder, can they be read, and are they fresh? */
import { readdirSync, statSync } from "node:fs";
import { count } from "../../base/text.ts";
import { discover, type FoundRing, isAlive } from "../../live/agent/rings/discover.ts";
import { isForeign, type Machine } from "../../live/agent/process-state.ts";
import { ringsOf } from "../../live/agent/select-run.ts";
import { type Line, linesOf, some } from "./line.ts";

interface RingsSeen {
  readonly folder: string;
  /** Why the folder cannot be listed; "missing" where it is not there; null where it can. */
  readonly trouble: "missing" | "denied" | "not a folder" | null;
  /** Others than its owner may write there: probes refuse it. */
  readonly isOpenToOthers: boolean;
  /** "name: why" of rings that cannot be read. */
  readonly unreadable: readonly string[];
  readonly rings: readonly {
    readonly rank: number;
    readonly pid: number;
    readonly isLive: boolean;
    /** Since its last sign of life; null where it gives none. */
    readonly silentMs: number | null;
  }[];
}

/** Heartbeats come every second; a machine may be busy. */
const SILENT_MS = 60_000;
const { ok, warning, broken, none } = linesOf("rings");

export function judgeRings(seen: RingsSeen): Line {
  const { folder, trouble, rings, unreadable } = seen;
  if (trouble === "missing")
    return none(
      `there is no ${folder}: no job has written rings here, or it has another FAULTLINE_DIR`,
    );
  if (trouble === "denied")
    return broken(
      `${folder} may not be read by this user`,
      "sudo faultline doctor    # or as the job's user; agents run as one of them, too",
    );
  if (trouble === "not a folder")
    return broken(`${folder} is not a folder`, `rm '${folder}'    # probes make it themselves`);
  if (seen.isOpenToOthers)
    return broken(
      `others may write to ${folder}, so probes refuse it and jobs run without them`,
      `chmod 700 '${folder}'`,
    );
  if (unreadable.length > 0)
    return broken(
      `${count(unreadable.length, "ring")} cannot be read: ${some(unreadable)}`,
      "faultline --version    # on this machine and in the job: use the same version of probe and agent",
    );
  const live = rings.filter(({ isLive }) => isLive);
  const silent = live.filter(({ silentMs }) => silentMs !== null && silentMs > SILENT_MS);
  const [first] = silent;
  if (first)
    return warning(
      `${count(silent.length, "ring")} of live processes stand${silent.length === 1 ? "s" : ""} still: rank ${first.rank} (process ${first.pid}) for ${Math.round(first.silentMs! / 1000)} s`,
      "faultline agent rings    # what each did last; a stopped or hung process gives no sign of life",
    );
  if (live.length === 0)
    return none(`${folder} holds ${count(rings.length, "ring")}, none of a process that lives`);
  return ok(`${count(live.length, "ring")} in ${folder}, all fresh`);
}

interface FolderOfRings {
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
