/** Are rings written into the folder, can they be read, and are they fresh? */
import { count } from "../../base/text.ts";
import { type Line, linesOf, some } from "./line.ts";

export interface RingsSeen {
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
