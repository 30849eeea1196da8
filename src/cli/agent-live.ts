/** `faultline agent --server URL`: the long-running agent of a machine. */
import { readdirSync, readFileSync, statSync, lstatSync } from "node:fs";
import { hostname } from "node:os";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { UserError, errorText } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { defaultFolder } from "../live/agent/rings/discover.ts";
import { fitName } from "../live/agent/names.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { ringNode } from "../live/agent/ring-node.ts";
import { runAgent, type AgentSaying } from "../live/agent/run-agent.ts";
import { SlowStorage } from "../live/agent/evidence/slow-storage.ts";
import { openAgentLink } from "../live/wire/link.ts";
import { NAME, ASKS, PROTOCOL } from "../live/wire/messages.ts";
import type { Io } from "./io.ts";

export interface AgentFlags {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly dir?: readonly string[];
  readonly log?: readonly string[];
  readonly job?: string;
  readonly machine?: string;
  readonly nic?: readonly string[];
  /** MiB, as the next. */
  readonly buffer?: number;
  readonly memory?: number;
  /** Seconds. */
  readonly keep?: number;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const BUFFER_MB = 64;
const MEMORY_MB = 512;
const KEEP_S = 600;
const MIB = 2 ** 20;
const MOST_TOKEN = 4096;
const SHARED_MEMORY = "/dev/shm";
const FOLDER = /^faultline-\d{1,10}$/;

export async function runAgentLive(io: Io, flags: AgentFlags, version: string): Promise<number> {
  const url = checkedUrl(flags.server);
  const token = tokenOf(io, flags);
  const ca = flags.ca === undefined ? null : contentOf(flags.ca, "--ca", 1 << 20);
  const name = machineName(flags.machine);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, onSignal);
  const say = sayer(io, flags, url);
  const storage = new SlowStorage();
  const node = ringNode({
    folders: foldersOf(io, flags.dir),
    logs: flags.log ?? [],
    job: flags.job === undefined ? null : checkedName(flags.job, "--job"),
    machineName: name,
    nics: flags.nic ?? [],
    keepNs: (flags.keep ?? KEEP_S) * 1e9,
    memoryBytes: (flags.memory ?? MEMORY_MB) * MIB,
    machine: thisMachine(),
    storage,
    onTrouble: (line) => say({ event: "trouble", line }),
  });
  say({ event: "started", agent: name, server: url });
  await runAgent(node, {
    openLink: openAgentLink,
    link: {
      url,
      token,
      ca,
      bufferBytes: (flags.buffer ?? BUFFER_MB) * MIB,
      hello: {
        protocol: PROTOCOL,
        agent: name,
        machine: name,
        boot: bootName(),
        version,
        asks: ASKS,
      },
    },
    onSay: say,
    stop: stop.signal,
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, onSignal);
  say({ event: "ended" });
  // Node would wait for its threads, and those for a file server that is gone.
  if (storage.isStuck) process.kill(process.pid, "SIGKILL");
  return 0;
}

type Saying =
  | AgentSaying
  | { readonly event: "started"; readonly agent: string; readonly server: string }
  | { readonly event: "ended" };

function sayer(io: Io, flags: AgentFlags, url: string): (what: Saying) => void {
  return (what) => {
    const time = new Date().toISOString();
    if (flags.json) io.out.write(`${JSON.stringify({ time, ...what })}\n`);
    else if (!flags.quiet) io.out.write(`${time.slice(0, 19)}Z ${harmless(wordsOf(what, url))}\n`);
  };
}

function wordsOf(what: Saying, url: string): string {
  switch (what.event) {
    case "started":
      return `agent ${what.agent} reports to ${what.server}; Ctrl-C stops it`;
    case "connected":
      return `connected to ${url}`;
    case "dropped":
      return `dropped so far, because the service was away and the buffer was full: ${count(what.reports, "report")}, ${count(what.points, "point")}`;
    case "trouble":
      return what.line;
    case "ended":
      return "stopped";
  }
}

function checkedUrl(server: string | undefined): string {
  const hint =
    "give --server ws://HOST:PORT (wss:// with TLS) or nats://HOST:PORT of your faultline serve";
  if (server === undefined || server === "")
    throw new UserError("faultline agent needs --server URL or a subcommand", hint, 2);
  // Somebody pastes what the browser shows.
  const words = server.replace(/^http(s?):\/\//, "ws$1://");
  for (const part of words.split(",")) {
    if (!URL.canParse(part) || !/^(?:wss?|nats|tls):\/\/[^/]/.test(part))
      throw new UserError(`--server ${part} is not the address of a service`, hint, 2);
    if (new URL(part).password !== "" || new URL(part).username !== "")
      throw new UserError(
        "--server contains a password, which every user of this machine can see",
        "give the token with --token-file or FAULTLINE_TOKEN",
        2,
      );
  }
  return words;
}

export function tokenOf(io: Io, { tokenFile }: Pick<AgentFlags, "tokenFile">): string | null {
  if (tokenFile === undefined) return io.env["FAULTLINE_TOKEN"] || null;
  const token = contentOf(tokenFile, "--token-file", MOST_TOKEN).trim();
  if (token === "" || /\s/.test(token))
    throw new UserError(
      `--token-file ${tokenFile} holds no token`,
      "write the token on one line, nothing else",
      2,
    );
  return token;
}

export function contentOf(path: string, flag: string, most: number): string {
  try {
    if (statSync(path).size > most) throw new Error(`is larger than ${count(most, "byte")}`);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(
      `${flag} ${path}: ${errorText(error)}`,
      "give a file that this user can read",
      3,
    );
  }
}

export function machineName(given: string | undefined): string {
  if (given !== undefined) return checkedName(given, "--machine");
  return fitName(hostname().split(".")[0]!, "machine");
}

function checkedName(name: string, flag: string): string {
  if (NAME.test(name)) return name;
  throw new UserError(
    `${flag} ${name} is not a valid name`,
    "use letters, digits, _ and -, at most 64, starting with a letter or digit",
    2,
  );
}

/** Root looks after the jobs of all users: their folders come and go. Never a link, which anybody could put there. */
export function foldersOf(io: Io, given: readonly string[] | undefined): () => readonly string[] {
  if (given !== undefined && given.length > 0) return () => given;
  const own = defaultFolder(io.env);
  if (io.env["FAULTLINE_DIR"] || process.getuid?.() !== 0) return () => [own];
  return () => {
    const others = namesIn(SHARED_MEMORY)
      .filter((name) => FOLDER.test(name))
      .map((name) => join(SHARED_MEMORY, name))
      .filter(isFolder);
    return others.length > 0 ? others : [own];
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

function bootName(): string {
  return randomUUID().replaceAll("-", "");
}
