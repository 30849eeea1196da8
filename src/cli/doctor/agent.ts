/** Does the agent of this machine run, and does the service hear it? */
import { type Line, linesOf } from "./line.ts";

export interface AgentHere {
  readonly machine: string;
  /** Of processes that run `faultline agent`. */
  readonly pids: readonly number[];
  readonly hasTraining: boolean;
  /** Names of agents that the service hears; null where that is not known. */
  readonly heard: readonly string[] | null;
}

const { ok, warning, broken, none } = linesOf("agent");

export function judgeAgent({ machine, pids, hasTraining, heard }: AgentHere): Line {
  const isHeard = heard?.includes(machine) ?? null;
  if (pids.length === 0 && isHeard !== true)
    return hasTraining
      ? warning(
          "jobs run on this machine, and no agent reports them",
          "faultline agent --server ws://HOST:7077 --token-file FILE    # or systemctl start faultline-agent",
        )
      : none("no agent runs on this machine");
  if (isHeard === false)
    return broken(
      `the agent runs (process ${pids.join(", ")}), and the service does not hear ${machine}`,
      "journalctl -u faultline-agent -n 50    # it says why it cannot connect",
    );
  if (pids.length > 1)
    return warning(
      `${pids.length} agents run on this machine (processes ${pids.join(", ")})`,
      `kill ${pids.at(-1)}    # one is enough`,
    );
  return ok(isHeard ? `the service hears ${machine}` : `the agent runs (process ${pids[0]})`);
}
