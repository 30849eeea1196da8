/**
 * Slurm by its own programs: `scontrol update … state=drain` (nothing new starts on the machine, the job goes on),
 * `state=resume` to take it back, `scontrol requeue` to restart the job. The reason that a drained node shows names the
 * action: it says whose drain it is, after a restart of this service, too.
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
      const node = await drain.settle!(env);
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
  const resume = [config.scontrol, "update", node, "state=resume"];
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
      if (outcome.how === "done") return done(`${machine} is drained in Slurm`, true);
      return outcome.how === "unknown" ? await settled(look, machine, outcome, env) : outcome;
    },
    undo: {
      words: `run ${JSON.stringify(resume)} within ${config.timeoutSeconds} s`,
      async run(env) {
        const seen = await look(env);
        if (seen.trouble) return seen.trouble;
        if (!seen.isOurs)
          return done(`${machine} is no longer drained by this action: nothing was changed`);
        const outcome = await call(resume, config, env);
        return outcome.how === "done" ? done(`${machine} is resumed in Slurm`) : outcome;
      },
    },
    async settle(env) {
      return await settled(look, machine, null, env);
    },
  };
}

async function settled(
  look: (env: DriverEnv) => Promise<NodeSeen>,
  machine: string,
  otherwise: Outcome | null,
  env: DriverEnv,
): Promise<Outcome> {
  const seen = await look(env);
  if (seen.trouble) return otherwise ?? unknown(seen.trouble.says, true);
  return seen.isOurs
    ? done(`${machine} is drained in Slurm`, true)
    : failed(`it was not done: ${machine} is not drained by this action`);
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
  const isDrained = /DRAIN|DOWN/.test(state);
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
