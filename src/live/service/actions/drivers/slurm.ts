/**
 * Slurm by its own programs: `scontrol update … state=drain` (nothing new starts on the machine, the job goes on),
 * `state=undrain` to take just that back (`resume` would also bring back a node that is down), `scontrol requeue` to
 * restart the job. The reason that a drained node shows names the action: it says whose drain it is, after a restart of
 * this service, too.
 */
import { harmless } from "../../../../base/text.ts";
import { environmentOf, runCommand } from "../run-command.ts";
import {
  done,
  type DriverEnv,
  failed,
  type Outcome,
  type Plan,
  type Refused,
  type Task,
  unknown,
} from "./driver.ts";
import { commandOutcome } from "./hook.ts";

export interface SlurmConfig {
  readonly do: readonly string[];
  /** Paths of the programs. */
  readonly scontrol: string;
  readonly squeue: string;
  readonly environment: readonly string[];
  readonly timeoutSeconds: number;
}

export function slurmPlan(task: Task, config: SlurmConfig): Plan | Refused {
  switch (task.do) {
    case "cordon-node":
    case "exclude-node":
      return drainPlan(task, config) ?? { refused: "the verdict names no machine" };
    case "restart-job":
      return requeuePlan(task, config);
    case "replace-machine":
    case "restart-without":
      return replacePlan(task, config);
    default:
      return { refused: `Slurm's driver cannot do ${harmless(task.do)}` };
  }
}

/** The node first: a job that is requeued must not come back to it. */
function replacePlan(task: Task, config: SlurmConfig): Plan | Refused {
  const drain = drainPlan(task, config);
  if (!drain) return { refused: "the verdict names no machine" };
  const requeue = requeuePlan(task, config);
  return {
    ...drain,
    words: `${drain.words}; then ${requeue.words}`,
    async run(env) {
      const first = await drain.run(env);
      if (first.how !== "done") return first;
      const second = await requeue.run(env);
      return {
        ...second,
        says: `${first.says}; ${second.says}`,
        canUndo: first.canUndo ?? false,
      };
    },
    async settle(env) {
      const node = await drain.settle(env);
      if (node.how !== "done") return node;
      return unknown(`${node.says}; whether the job was requeued is not known`, true);
    },
  };
}

type DrainPlan = Plan & Required<Pick<Plan, "undo" | "settle">>;

function drainPlan(task: Task, config: SlurmConfig): DrainPlan | null {
  const { machine } = task;
  if (machine === null) return null;
  const node = `nodename=${machine}`;
  const reason = `${task.reason} [${task.action}]`;
  const drain = [config.scontrol, "update", node, "state=drain", `reason=${reason}`];
  const undrain = [config.scontrol, "update", node, "state=undrain"];
  const look = (env: DriverEnv): Promise<NodeSeen> => lookAt(machine, reason, config, env);
  return {
    words: `run ${JSON.stringify(drain)} within ${config.timeoutSeconds} s`,
    async run(env) {
      const seen = await look(env);
      if (seen.trouble) return seen.trouble;
      if (seen.isOurs) return done(`${machine} was drained by this action already`, true);
      if (seen.isDrained)
        return done(`${machine} was drained before, for another reason: nothing was changed`);
      const outcome = await call(drain, config, env);
      // What the node says counts: scontrol may have died, or complain of something else.
      if (outcome.how !== "done") {
        const { isOurs } = await look(env);
        if (!isOurs) return outcome;
      }
      return done(`${machine} is drained in Slurm`, true);
    },
    undo: {
      words: `run ${JSON.stringify(undrain)} within ${config.timeoutSeconds} s`,
      async run(env) {
        const seen = await look(env);
        if (seen.trouble) return seen.trouble;
        if (!seen.isOurs)
          return done(`${machine} is no longer drained by this action: nothing was changed`);
        const outcome = await call(undrain, config, env);
        if (outcome.how !== "done") {
          const { isOurs, trouble } = await look(env);
          if (isOurs || trouble) return outcome;
        }
        return done(`${machine} is no longer drained in Slurm`);
      },
    },
    async settle(env) {
      const seen = await look(env);
      if (seen.trouble) return unknown(seen.trouble.says, true);
      return seen.isOurs
        ? done(`${machine} is drained in Slurm`, true)
        : failed(`it was not done: ${machine} is not drained by this action`);
    },
  };
}

interface NodeSeen {
  readonly isDrained: boolean;
  readonly isOurs: boolean;
  readonly trouble?: Outcome;
}

/** `scontrol show node`: State=IDLE+DRAIN … Reason=… [user@time]. */
async function lookAt(
  machine: string,
  reason: string,
  config: SlurmConfig,
  env: DriverEnv,
): Promise<NodeSeen> {
  const argv = [config.scontrol, "--oneliner", "show", "node", machine];
  const result = await command(argv, config, env);
  if (result.how !== "exit" || result.status !== 0) {
    const { says } = commandOutcome(argv[0]!, result, 1000 * config.timeoutSeconds);
    return { isDrained: false, isOurs: false, trouble: failed(`nothing was changed: ${says}`) };
  }
  const [, state = ""] = / State=(\S+)/.exec(result.output) ?? [];
  const isDrained = state.includes("DRAIN");
  return { isDrained, isOurs: isDrained && result.output.includes(`Reason=${reason}`) };
}

/** A job is called by its number, or by the name that Slurm knows it by. */
function requeuePlan(task: Task, config: SlurmConfig): Plan {
  const isNumber = /^\d+$/.test(task.job);
  const which = isNumber ? task.job : "the number of the running job of that name";
  return {
    words: `run ${config.scontrol} requeue ${isNumber ? which : `${task.job} (${which})`} within ${config.timeoutSeconds} s`,
    async run(env) {
      const id = isNumber ? task.job : await jobNumber(task.job, config, env);
      if (typeof id !== "string") return id;
      const outcome = await call([config.scontrol, "requeue", id], config, env);
      return outcome.how === "done" ? done(`job ${id} is requeued in Slurm`) : outcome;
    },
  };
}

async function jobNumber(
  job: string,
  config: SlurmConfig,
  env: DriverEnv,
): Promise<string | Outcome> {
  const argv = [config.squeue, "--noheader", `--name=${job}`, "--states=RUNNING", "--format=%A"];
  const result = await command(argv, config, env);
  if (result.how !== "exit" || result.status !== 0) {
    const { says } = commandOutcome(argv[0]!, result, 1000 * config.timeoutSeconds);
    return failed(`nothing was changed: ${says}`);
  }
  const numbers = [...new Set(result.output.split(/[\s|]+/).filter((one) => /^\d+$/.test(one)))];
  if (numbers.length === 1) return numbers[0]!;
  return failed(
    numbers.length === 0
      ? `nothing was changed: Slurm has no running job ${job}`
      : `nothing was changed: Slurm has ${numbers.length} running jobs ${job}`,
  );
}

async function call(
  argv: readonly string[],
  config: SlurmConfig,
  env: DriverEnv,
): Promise<Outcome> {
  const result = await command(argv, config, env);
  return commandOutcome(argv[0]!, result, 1000 * config.timeoutSeconds);
}

async function command(argv: readonly string[], config: SlurmConfig, env: DriverEnv) {
  const environment = environmentOf(config.environment, env.environment);
  return await runCommand(argv, environment, 1000 * config.timeoutSeconds);
}
