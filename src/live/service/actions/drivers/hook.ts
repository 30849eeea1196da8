/** A hook of the configuration as a driver: one command, or one POST. What it did nobody can take back or look up. */
import { harmless } from "../../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../../model/incident.ts";
import { post } from "../../alerts/post.ts";
import { type HookPlan, planOf, planWords } from "../hooks.ts";
import { type CommandResult, environmentOf, runCommand } from "../run-command.ts";
import type { ActionHook } from "../types.ts";
import {
  done,
  type DriverEnv,
  failed,
  type Outcome,
  type Plan,
  type Refused,
  unknown,
} from "./driver.ts";

export function hookPlan(
  action: IncidentAction,
  incident: Incident,
  hook: ActionHook,
): Plan | Refused {
  const plan = planOf(action, incident, hook);
  if (plan.kind === "refused") return { refused: plan.why };
  return {
    words: planWords(plan),
    run: (env) => carryOut(plan, hook, `${incident.id}-${action.id}`, env),
  };
}

async function carryOut(
  plan: HookPlan,
  hook: ActionHook,
  delivery: string,
  env: DriverEnv,
): Promise<Outcome> {
  if (plan.kind === "command") {
    const environment = environmentOf(hook.environment ?? [], env.environment);
    const result = await runCommand(plan.argv, environment, plan.timeoutMs);
    return commandOutcome(plan.argv[0]!, result, plan.timeoutMs);
  }
  // Once only: nobody knows whether a receiver can tell a repetition.
  const headers = { "x-faultline-delivery": delivery };
  const answer = await post(env.fetch, plan.url, plan.body, headers, plan.timeoutMs);
  if (answer.ok) return done(`the hook took it${answer.answer === "" ? "" : `: ${answer.answer}`}`);
  return (answer.how === "silent" ? unknown : failed)(`the hook ${answer.why}`);
}

export function commandOutcome(
  name: string,
  { how, status, output }: CommandResult,
  timeoutMs: number,
): Outcome {
  const program = harmless(name);
  const said = output === "" ? "" : `: ${output}`;
  switch (how) {
    case "not-started":
      return failed(`${program} could not be started${said}`);
    case "timeout":
      return unknown(`${program} was ended after ${timeoutMs / 1000} s${said}`);
    case "signal":
      return unknown(`${program} was ended by a signal${said}`);
    case "exit":
      return status === 0
        ? done(`${program} ended well${said}`)
        : failed(`${program} ended with status ${status}${said}`);
  }
}
