/** `faultline doctor`: what of a set-up works, what does not, and what to do, a line each. */
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { BUILT } from "../../base/built.ts";
import { UserError } from "../../base/errors.ts";
import { harmless } from "../../base/text.ts";
import { thisMachine, type Machine } from "../../live/agent/process-state.ts";
import {
  defaultData,
  readServeConfig,
  type ServeConfig,
  type ServeFlags,
} from "../../live/service/config/config.ts";
import { contentOf, foldersOf, machineName, tokenOf } from "../agent-live.ts";
import type { Io } from "../io.ts";
import { FOUND_SOMETHING, printJson, wantsColour } from "../output.ts";
import { judgeAgent } from "./agent.ts";
import { judgeBroker, lookAtBrokers } from "./broker.ts";
import { judgeClocks } from "./clocks.ts";
import { judgeConfiguration, startFaults } from "./configuration.ts";
import { judgeDisk, lookAtDisk, lookWhereItWouldBe } from "./disk.ts";
import { judgePlugin, judgeProbe } from "./jobs.ts";
import { type Line, type State } from "./line.ts";
import { lookAtTraining, lookForAgents } from "./look-processes.ts";
import { lookAtService } from "./look-service.ts";
import { lookAtDatabase, lookAtFiles } from "./look-store.ts";
import { judgeMetricsServer, lookAtMetricsServer } from "./metrics-server.ts";
import { judgePermissions, lookAtPermissions } from "./permissions.ts";
import { judgeRings, lookAtRings } from "./rings.ts";
import { judgeService, judgeStore } from "./service.ts";
import { judgeTargets, lookAtTargets } from "./targets.ts";
import { judgeVersions } from "./versions.ts";

export interface DoctorFlags {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly dir?: readonly string[];
  readonly config?: string;
  /** What the user has set for `serve`. */
  readonly serve?: ServeFlags;
  readonly data?: string;
  readonly prometheus?: string;
  readonly match?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Where the machine is looked at; tests have others. */
export interface Surroundings {
  readonly machine: Machine;
  readonly shared: string;
  readonly kernelLog: string;
  readonly timeoutMs: number;
  /** What is wrong with the user's own settings. */
  readonly settings: { readonly file: string | null; readonly fault: UserError | null };
}

export const HERE: Omit<Surroundings, "settings" | "machine"> = {
  shared: "/dev/shm",
  kernelLog: "/dev/kmsg",
  timeoutMs: 5000,
};
const USUAL = "http://127.0.0.1:7077";

export async function runDoctor(
  io: Io,
  flags: DoctorFlags,
  around: Omit<Surroundings, "machine"> & { readonly machine?: Machine },
): Promise<number> {
  const lines = await examine(io, flags, { machine: thisMachine(), ...around });
  const worst = (["broken", "warning"] as const).find((state) =>
    lines.some((line) => line.state === state),
  );
  if (flags.json)
    printJson(io, { schema: "faultline.doctor/1", worst: worst ?? "ok", checks: lines });
  else io.out.write(text(io, flags.quiet ? lines.filter(isWrong) : lines));
  return flags.exitCode && worst === "broken" ? FOUND_SOMETHING : 0;
}

async function examine(io: Io, flags: DoctorFlags, around: Surroundings): Promise<Line[]> {
  const { machine, timeoutMs } = around;
  const { config, access, ...configuration } = readConfig(io, flags, around);
  const folders = foldersOf(io, flags.dir)().map((folder) => lookAtRings(folder, machine));
  const rings = folders.flatMap((folder) => folder.rings);
  const { processes, hidden } = lookAtTraining(machine.proc, rings);
  const agents = lookForAgents(machine.proc);
  const [given = null] = [
    flags.server,
    agents.find(({ server }) => server !== null)?.server,
  ].filter((server) => server !== undefined && server !== null);
  const isNats = given !== null && /^(nats|tls):/.test(given);
  const guess = config === null ? USUAL : addressOf(config);
  const url = given === null || isNats ? guess : given.replace(/^ws(s?):/, "http$1:");
  const brokers = isNats ? given : (config?.nats?.url ?? null);
  const metrics = metricsServer(flags, config);
  const history = config?.history ?? null;
  const ask = (at: string, isGuessed: boolean) =>
    lookAtService(at.replace(/\/+$/, ""), isGuessed, { ...access, timeoutMs });
  const [service, own, brokersSeen, prometheus, database, targets] = await Promise.all([
    ask(url, given === null || isNats),
    url === guess ? null : ask(guess, true),
    brokers === null ? [] : lookAtBrokers(brokers, timeoutMs),
    metrics === null ? null : lookAtMetricsServer(metrics, timeoutMs),
    history?.kind === "clickhouse" ? lookAtDatabase(history.url, timeoutMs) : null,
    config && lookAtTargets(config, io.env, timeoutMs),
  ]);
  const isRunning = (own ?? service).health !== null;
  const faults = [
    ...configuration.faults,
    ...(config === null ? [] : await startFaults(config, isRunning)),
  ];
  const unread = isRunning ? null : await lookAtFiles(config, dataFolder(io, flags, config));
  const heard = service.agents?.map(({ agent }) => agent) ?? null;
  return [
    ...judgeConfiguration({ files: configuration.files, faults }),
    judgeVersions({
      node: process.versions.node,
      own: BUILT.version,
      service: service.health?.version ?? null,
      agents: service.agents ?? [],
    }),
    judgeProbe(processes),
    judgePlugin(processes),
    ...folders.map(({ seen }) => judgeRings(seen)),
    judgeAgent({
      machine: machineName(undefined),
      pids: agents.map(({ pid }) => pid),
      hasTraining: processes.length > 0,
      heard,
    }),
    judgeService(service),
    judgeStore(service, database ?? unread),
    ...(targets === null ? [] : judgeTargets(targets)),
    judgeBroker({ brokers: brokersSeen, saysService: service.health?.broker ?? null }),
    judgeClocks({ clocks: clocksOf(service, prometheus?.clockOffsetMs ?? null) }),
    judgeMetricsServer(
      prometheus?.seen ?? {
        url: null,
        match: "",
        failure: null,
        has: null,
        lacks: [],
        hasGpus: false,
      },
    ),
    judgeDisk(
      disks(
        io,
        flags,
        config,
        folders.map(({ seen }) => seen.folder),
      ),
    ),
    judgePermissions(
      lookAtPermissions(
        { proc: machine.proc, shared: around.shared, kernelLog: around.kernelLog },
        hidden,
      ),
    ),
  ];
}

/** Where its service is to be reached from this machine. */
function addressOf({ host, port, tls, allowedHosts }: ServeConfig): string {
  const isAny = ["0.0.0.0", "::", ""].includes(host);
  // A certificate is for a name.
  const name = isAny ? ((tls && allowedHosts[0]) ?? "127.0.0.1") : host;
  return `${tls ? "https" : "http"}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** What is named and cannot be read is a fault of the set-up, and the rest is looked at without it. */
function readConfig(io: Io, flags: DoctorFlags, { settings }: Surroundings) {
  const files = settings.file === null ? [] : [settings.file];
  const faults = settings.fault === null ? [] : [settings.fault];
  const tried = <T>(file: string | undefined, read: () => T): T | null => {
    try {
      const found = read();
      if (file !== undefined) files.push(file);
      return found;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      faults.push(error);
      return null;
    }
  };
  const { config: file, ca, tokenFile } = flags;
  const config =
    file === undefined ? null : tried(file, () => readServeConfig(file, flags.serve ?? {}, io.env));
  const access = {
    token: tried(tokenFile, () => tokenOf(io, flags)),
    ca: ca === undefined ? null : tried(ca, () => contentOf(ca, "--ca", 1 << 20)),
  };
  return { config, access, files, faults };
}

function metricsServer({ prometheus, match }: DoctorFlags, config: ServeConfig | null) {
  if (prometheus !== undefined) return { url: prometheus, match: match ?? "", headers: {} };
  return config?.prometheus ?? null;
}

function clocksOf(
  {
    agents,
    clockOffsetMs,
  }: {
    readonly agents: readonly { agent: string; clockOffsetMs: number }[] | null;
    readonly clockOffsetMs: number | null;
  },
  prometheusMs: number | null,
) {
  const service = clockOffsetMs ?? 0;
  return [
    ...(clockOffsetMs === null ? [] : [{ name: "the service is", offsetMs: clockOffsetMs }]),
    ...(agents ?? [])
      .filter((one) => one.clockOffsetMs !== 0)
      .map((one) => ({ name: `${one.agent} is`, offsetMs: service + one.clockOffsetMs })),
    ...(prometheusMs === null ? [] : [{ name: "Prometheus is", offsetMs: prometheusMs }]),
  ];
}

function disks(
  io: Io,
  flags: DoctorFlags,
  config: ServeConfig | null,
  ringFolders: readonly string[],
) {
  const isNamed = (flags.data ?? config?.dataFolder) !== undefined;
  const data = dataFolder(io, flags, config);
  const shared = ringFolders
    .filter((folder) => existsSync(folder))
    .map((folder) => dirname(folder));
  return [
    existsSync(data) ? lookAtDisk("data folder", data) : isNamed ? lookWhereItWouldBe(data) : null,
    ...[...new Set(shared)].map((path) => lookAtDisk("shared memory", path)),
  ].filter((seen) => seen !== null);
}

function dataFolder(io: Io, flags: DoctorFlags, config: ServeConfig | null): string {
  const named = flags.data ?? config?.dataFolder;
  if (named !== undefined) return resolve(named);
  try {
    return defaultData(io.env);
  } catch {
    // Without a home folder there is none.
    return "/nonexistent";
  }
}

function isWrong({ state }: Line): boolean {
  return state === "broken" || state === "warning";
}

const WORDS: Readonly<Record<State, string>> = {
  ok: "ok",
  warning: "warning",
  broken: "broken",
  none: "-",
};
/** Of a terminal. */
const COLOURS: Readonly<Record<State, number>> = { ok: 32, warning: 33, broken: 31, none: 2 };

function text(io: Io, lines: readonly Line[]): string {
  const paint = (state: State): string => {
    const word = WORDS[state].padEnd(8);
    return wantsColour(io) ? `\u001b[${COLOURS[state]}m${word}\u001b[0m` : word;
  };
  const width = Math.max(...lines.map(({ check }) => check.length), 0);
  return lines
    .map(({ check, state, says, fix }) => {
      const what = fix === null ? says : `${says}; to do: ${fix}`;
      return `${paint(state)} ${check.padEnd(width)}  ${harmless(what)}\n`;
    })
    .join("");
}
