/** Do the training processes of this machine run the probe, and does NCCL have its plug-in? */
import { count } from "../../base/text.ts";
import { type Line, linesOf, some } from "./line.ts";

export interface TrainingProcess {
  readonly pid: number;
  /** null where its environment does not say. */
  readonly rank: number | null;
  /** FAULTLINE_PROBE and FAULTLINE of its environment at its start. */
  readonly hasProbe: boolean;
  readonly isSwitchedOff: boolean;
  /** NCCL_PROFILER_PLUGIN; null where it is not set. */
  readonly plugin: string | null;
  /** Why NCCL cannot load that file; null where it can, or where it was not looked for. */
  readonly pluginDefect: string | null;
  /** Who writes rings of this process. */
  readonly writers: readonly ("native" | "python")[];
}

const probe = linesOf("probe");
const plugin = linesOf("plug-in");

export function judgeProbe(processes: readonly TrainingProcess[]): Line {
  if (processes.length === 0) return probe.none("no training process of this user runs here");
  const off = processes.filter(({ isSwitchedOff }) => isSwitchedOff);
  if (off.length > 0)
    return probe.warning(
      `FAULTLINE=0 switches the probe off in ${whose(off)}`,
      "unset FAULTLINE    # then start the job again",
    );
  const silent = processes.filter((one) => one.hasProbe && one.writers.length === 0);
  if (silent.length > 0)
    return probe.broken(
      `FAULTLINE_PROBE=1 is set in ${whose(silent)}, and no ring is written`,
      "python -m faultline_probe -c pass    # with the job's Python: it says why; ModuleNotFoundError: pip install faultline_probe-*.whl",
    );
  const without = processes.filter((one) => one.writers.length === 0);
  if (without.length > 0)
    return probe.warning(
      `${whose(without)} run${without.length === 1 ? "s" : ""} without the probe`,
      "export FAULTLINE_PROBE=1    # before the launcher (docs/guides/probe.md)",
    );
  return probe.ok(`${count(processes.length, "rank")} of this machine, all with the probe`);
}

export function judgePlugin(processes: readonly TrainingProcess[]): Line {
  const asked = processes.filter((one) => one.plugin !== null && one.plugin !== "none");
  if (asked.length === 0)
    return plugin.none(
      processes.length === 0
        ? "no training process of this user runs here"
        : "NCCL_PROFILER_PLUGIN is not set at the start; the Python probe sets it by itself",
    );
  const bad = asked.filter(({ pluginDefect }) => pluginDefect !== null);
  const [first] = bad;
  if (first)
    return plugin.broken(
      `NCCL cannot load NCCL_PROFILER_PLUGIN=${first.plugin} in ${whose(bad)}: ${first.pluginDefect}`,
      "export NCCL_PROFILER_PLUGIN=$(python -m faultline_probe --library)",
    );
  const silent = asked.filter(({ writers }) => !writers.includes("native"));
  if (silent.length > 0)
    return plugin.warning(
      `${whose(silent)}: the plug-in can be loaded, and writes no ring: NCCL is older than 2.23, or has no communicator yet`,
      "export LD_PRELOAD=$(python -m faultline_probe --library)    # for older NCCL",
    );
  return plugin.ok(`NCCL records collectives of ${count(asked.length, "rank")}`);
}

function whose(processes: readonly TrainingProcess[]): string {
  return some(
    processes.map(({ rank, pid }) =>
      rank === null ? `process ${pid}` : `rank ${rank} (process ${pid})`,
    ),
  );
}
