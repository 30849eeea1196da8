/** The rings that a command of `faultline agent` is about. */
import { UserError } from "../base/errors.ts";
import { defaultFolder, discover, isAlive, type FoundRing } from "../live/agent/rings/discover.ts";
import type { Machine } from "../live/agent/process-state.ts";
import { ringsOf, selectRuns, type Wanted } from "../live/agent/select-run.ts";
import type { Io } from "./io.ts";

export interface ChosenFlags extends Wanted {
  readonly dir?: string;
  readonly rank?: readonly number[];
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export function living(io: Io, flags: ChosenFlags, machine: Machine): FoundRing[] {
  const folder = flags.dir ?? defaultFolder(io.env);
  const { runs } = selectRuns(discover(folder, machine), folder, flags);
  const wanted = ringsOf(runs).filter(
    ({ header }) => flags.rank === undefined || flags.rank.includes(header.rank),
  );
  const alive = wanted.filter(isAlive);
  if (alive.length === 0)
    throw new UserError(
      `${folder}: no live process writes a ring of ${flags.rank === undefined ? runs[0]!.job : `rank ${flags.rank.join(", ")}`}`,
      "faultline agent rings lists the rings",
      3,
    );
  return alive;
}

/** Only the library holds calls; only the Python probe writes stacks, profiles and tests. */
export function ringsOfWriter(
  rings: readonly FoundRing[],
  writer: "native" | "python",
): FoundRing[] {
  const own = rings.filter(({ header }) => header.writer === writer);
  if (own.length > 0) return own;
  const [whose, how] =
    writer === "native"
      ? ["the native probe", "with NCCL_PROFILER_PLUGIN or LD_PRELOAD of libfaultline.so"]
      : ["the Python probe", "with python -m faultline_probe"];
  throw new UserError(
    `no ring of ${whose} on this machine, and only that probe can answer`,
    `start the job ${how} (docs/guides/agent.md)`,
    3,
  );
}
