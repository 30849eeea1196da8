/** Which rings a command is about. Two jobs in one dump would be diagnosed as one, so it is asked rather than guessed. */
import { UserError } from "../../base/errors.ts";
import { count } from "../../base/text.ts";
import type { Found, FoundRing, Run } from "./rings/discover.ts";

export interface Wanted {
  readonly job?: string;
  /** Any process of the run. */
  readonly pid?: number;
  readonly newest?: boolean;
  /** Earlier runs and other jobs too. */
  readonly all?: boolean;
}

export interface Selected {
  readonly runs: readonly Run[];
  readonly remarks: readonly string[];
}

const LISTED = 8;

export function selectRuns(found: Found, folder: string, wanted: Wanted): Selected {
  if (found.runs.length === 0) {
    const why = found.troubles.length > 0 ? `; ${found.troubles[0]}` : "";
    throw new UserError(
      `${folder}: no ring can be read there${why}`,
      "start the job with the probe (docs/guides/agent.md), or give --dir its FAULTLINE_DIR",
      3,
    );
  }
  const named = found.runs.filter(
    (run) =>
      (wanted.job === undefined || run.job === wanted.job) &&
      (wanted.pid === undefined || run.rings.some(({ header }) => header.pid === wanted.pid)),
  );
  if (named.length === 0) {
    const asked = wanted.job === undefined ? `process ${wanted.pid}` : `job ${wanted.job}`;
    throw new UserError(
      `${folder}: no ring of ${asked}`,
      `there are rings of ${listed(found.runs)}`,
      3,
    );
  }
  if (wanted.all) return { runs: named, remarks: [] };
  const living = named.filter((run) => run.isLive);
  // Runs come newest first: of those that are over, the last is what somebody asks about.
  const candidates = living.length > 0 ? living : named.slice(0, 1);
  if (candidates.length > 1 && !wanted.newest) {
    const sameName = new Set(candidates.map((run) => run.job)).size < candidates.length;
    throw new UserError(
      `${folder}: ${count(candidates.length, "job")} here: ${listed(candidates)}`,
      sameName
        ? "two have one name: choose by a process, --pid N, or take --newest"
        : "choose one with --job NAME or --pid N",
      2,
    );
  }
  const chosen = candidates[0]!;
  const earlier = named.filter((run) => run !== chosen && run.job === chosen.job);
  return {
    runs: [chosen],
    remarks:
      earlier.length > 0
        ? [`${count(earlier.length, "other run")} of ${chosen.job} left out (--all takes them)`]
        : [],
  };
}

export function ringsOf(runs: readonly Run[]): FoundRing[] {
  return runs.flatMap((run) => run.rings);
}

function listed(runs: readonly Run[]): string {
  const parts = runs.slice(0, LISTED).map((run) => {
    const pids = run.rings.map(({ header }) => header.pid);
    const when = new Date(run.startedMs).toISOString().slice(0, 19);
    return `${run.job} (${run.address === "" ? "" : `${run.address}, `}process ${pids[0]}, since ${when}Z)`;
  });
  return parts.join(", ") + (runs.length > LISTED ? ", …" : "");
}
