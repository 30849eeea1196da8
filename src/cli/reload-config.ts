/** A configuration that is read again while the service runs: at SIGHUP, and when its file has changed. */
import { stat } from "node:fs/promises";
import { errorText } from "../base/errors.ts";
import type { ServeConfig } from "../live/service/config/config.ts";

export interface ReloadOptions {
  /** Throws UserError where the file is wrong. */
  read(this: void): ServeConfig;
  /** Puts it in force; the sections that changed, and those that need a restart. Rejects with UserError, and changes nothing. */
  apply(this: void, next: ServeConfig): Promise<Changes>;
  /** Whether the last one failed. */
  failed(this: void, isFailed: boolean): void;
  /** One line for the log and the audit trail. */
  say(this: void, line: string): void;
}

export interface Changes {
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

const LOOK_MS = 5000;

/** Reads again; one at a time, and another one afterwards where it was asked for meanwhile. Never rejects. */
export function makeReload({ read, apply, failed, say }: ReloadOptions): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  const once = async (): Promise<void> => {
    try {
      say(wordsOf(await apply(read())));
      failed(false);
    } catch (error) {
      failed(true);
      say(`not reloaded, the earlier one stays in force: ${errorText(error)}`);
    }
  };
  return () => (last = last.then(once));
}

function wordsOf({ live, restart }: Changes): string {
  const parts = [
    ...(live.length === 0 ? [] : [`${live.join(", ")} changed`]),
    ...(restart.length === 0 ? [] : [`these need a restart: ${restart.join(", ")}`]),
  ];
  return `reloaded: ${parts.length === 0 ? "nothing of it has changed" : parts.join("; ")}`;
}

/** Calls `reload` when the file is another one, and at SIGHUP. Returns how to stop. */
export function watchConfig(file: string, reload: () => Promise<void>): () => void {
  let before: string | null = null;
  const stamp = (): Promise<string | null> =>
    stat(file).then(
      ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
      // Being replaced: it is looked at again.
      () => null,
    );
  const look = async (): Promise<void> => {
    const now = await stamp();
    if (now === null || now === before) return;
    const isFirst = before === null;
    before = now;
    if (!isFirst) await reload();
  };
  const asked = async (): Promise<void> => {
    before = (await stamp()) ?? before;
    await reload();
  };
  // One after the other: a signal about a new file is one reason to read it, not two.
  let last = Promise.resolve();
  const inTurn = (work: () => Promise<void>) => (): void => void (last = last.then(work));
  inTurn(look)();
  const timer = setInterval(inTurn(look), LOOK_MS).unref();
  const hangUp = inTurn(asked);
  process.on("SIGHUP", hangUp);
  return () => {
    clearInterval(timer);
    process.off("SIGHUP", hangUp);
  };
}

type ActionsConfig = ServeConfig["actions"];

/** The rest of `actions` is put together at the start. */
export function limitsOf(actions: ActionsConfig): Partial<ActionsConfig> {
  const { enabled: _, hooks: __, drivers: ___, ...limits } = actions;
  return limits;
}

const LIVE = ["tokens", "oidc", "publicRead", "allowedHosts", "alerts"] as const;
const RESTART = [
  "host",
  "port",
  "dataFolder",
  "tls",
  "nats",
  "history",
  "prometheus",
  "detection",
  "validation",
  "retention",
  "learning",
  "fabric",
  "jobs",
] as const;

/** By their names in the file. */
export function changesOf(running: ServeConfig, next: ServeConfig): Changes {
  const differ = (a: unknown, b: unknown): boolean => JSON.stringify(a) !== JSON.stringify(b);
  const live: string[] = LIVE.filter((key) => differ(running[key], next[key]));
  const restart: string[] = RESTART.filter((key) => differ(running[key], next[key]));
  if (differ(limitsOf(running.actions), limitsOf(next.actions))) live.push("limits of actions");
  for (const key of ["enabled", "hooks", "drivers"] as const)
    if (differ(running.actions[key], next.actions[key])) restart.push(`actions.${key}`);
  return { live, restart: restart.map((key) => (key === "dataFolder" ? "data" : key)) };
}

type Tokens = ServeConfig["tokens"];

/** Which, by their names: for the trail. */
export function tokensChanged(running: Tokens, next: Tokens): string {
  const before = new Map(running.map((one) => [one.name, one]));
  const after = new Set(next.map(({ name }) => name));
  const rights = ({ scopes, jobs, agent }: Tokens[number]): string =>
    [
      scopes.join("+"),
      ...(jobs === null ? [] : [`jobs ${jobs.join(" ")}`]),
      ...(agent === null ? [] : [`agent ${agent}`]),
    ].join(", ");
  const said = [
    ...next.flatMap((one) => {
      const old = before.get(one.name);
      if (!old) return [`added ${one.name} (${rights(one)})`];
      if (rights(old) !== rights(one))
        return [`${one.name} from (${rights(old)}) to (${rights(one)})`];
      return old.sha256 === one.sha256 ? [] : [`another secret of ${one.name}`];
    }),
    ...running.flatMap(({ name }) => (after.has(name) ? [] : [`removed ${name}`])),
  ];
  return said.length === 0 ? "tokens" : `tokens (${said.join("; ")})`;
}
