/** Whom the service would call: who signs people in, who gets alerts, what runs actions. */
import { accessSync, constants } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Io } from "../io.ts";
import type { ServeConfig } from "../../live/service/config/config.ts";
import { environmentOf } from "../../live/service/actions/run-command.ts";
import { type Line, linesOf, some } from "./line.ts";

interface Target {
  /** What it is, with its address but without what may be secret in it. */
  readonly name: string;
  /** To try it by hand. */
  readonly command: string;
  readonly failure: string | null;
}

export interface TargetsSeen {
  readonly signIn: readonly Target[];
  readonly alerts: readonly Target[];
  readonly actions: readonly Target[];
}

const KEYS = { "sign-in": "oidc.issuer", alerts: "alerts", actions: "actions" } as const;

export function judgeTargets({ signIn, alerts, actions }: TargetsSeen): Line[] {
  const judge = (check: keyof typeof KEYS, targets: readonly Target[]): Line => {
    const { ok, broken, none } = linesOf(check);
    if (targets.length === 0) return none("none is configured");
    const dead = targets.filter(({ failure }) => failure !== null);
    if (dead.length === 0) return ok(some(targets.map(({ name }) => name)));
    return broken(
      some(dead.map(({ name, failure }) => `${name}: ${failure}`)),
      `${dead[0]!.command}    # on the service's machine, as its user; then mend "${KEYS[check]}"`,
    );
  };
  return [judge("sign-in", signIn), judge("alerts", alerts), judge("actions", actions)];
}

export async function lookAtTargets(
  { oidc, alerts, actions }: ServeConfig,
  env: Io["env"],
  timeoutMs: number,
): Promise<TargetsSeen> {
  const { PATH = "" } = environmentOf([], env);
  const at = async (what: string, url: string): Promise<Target> => ({
    // The path of a webhook may be a secret.
    name: `${what} ${new URL(url).origin}`,
    command: `curl -sS ${new URL(url).origin}`,
    failure: await failureAt(url, timeoutMs),
  });
  const hooks = actions.hooks.map(async (hook): Promise<Target> => {
    const [program] = hook.command ?? [];
    if (hook.webhook !== undefined) return await at(`${hook.do}:`, hook.webhook);
    return programAt(`${hook.do}:`, program ?? "", PATH);
  });
  const { kubernetes, slurm, webhook } = actions.drivers ?? {};
  return {
    signIn: oidc ? [await at("provider", oidc.issuer)] : [],
    alerts: await Promise.all([
      ...alerts.alertmanager.map((url) => at("Alertmanager", url)),
      ...alerts.webhooks.map(({ url }) => at("webhook", url)),
      ...alerts.slack.map(({ url }) => at("Slack", url)),
    ]),
    actions: [
      ...(slurm ? [slurm.scontrol, slurm.squeue] : []).map((one) => programAt("Slurm", one, PATH)),
      ...(await Promise.all([
        ...hooks,
        ...(kubernetes ? [at("Kubernetes", kubernetes.access.server)] : []),
        ...(webhook ? [at("webhook", webhook.url)] : []),
      ])),
    ],
  };
}

function programAt(what: string, program: string, path: string): Target {
  return {
    name: `${what} ${program}`,
    command: `command -v '${program}'`,
    failure: failureOf(program, path),
  };
}

/** Programs are started in the root folder, without a shell. */
function failureOf(program: string, path: string): string | null {
  const places = program.includes("/")
    ? [join("/", program)]
    : path.split(":").map((folder) => join("/", folder, program));
  const isThere = (file: string, mode: number): boolean => {
    try {
      accessSync(file, mode);
      return true;
    } catch {
      return false;
    }
  };
  if (places.some((file) => isThere(file, constants.X_OK))) return null;
  return places.some((file) => isThere(file, constants.F_OK))
    ? "this user may not run it"
    : "there is no such program";
}

/** That somebody listens is enough: nothing is sent, for it might be taken for an alert. */
function failureAt(url: string, timeoutMs: number): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)) });
    const end = (failure: string | null): void => {
      socket.destroy();
      resolve(failure);
    };
    socket.setTimeout(timeoutMs, () => end("no answer"));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.once("connect", () => end(null));
  });
}
