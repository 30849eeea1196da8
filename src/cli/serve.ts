/** `faultline serve`: the live service. */
import { hostname } from "node:os";
import { harmless } from "../base/text.ts";
import {
  readServeConfig,
  type ServeConfig,
  type ServeFlags,
} from "../live/service/config/config.ts";
import { openService, type OpenService } from "./open-service.ts";
import type { Io } from "./io.ts";
import { makeReload, watchConfig } from "./reload-config.ts";

export interface ServeCliFlags extends ServeFlags {
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** Seconds. */
  readonly hang?: number;
}

export async function runServe(io: Io, flags: ServeCliFlags, version: string): Promise<number> {
  const config = readServeConfig(flags.config ?? null, flags, io.env);
  const log = (line: string): void => {
    const time = new Date().toISOString();
    if (flags.json) io.out.write(`${JSON.stringify({ time, event: "log", line })}\n`);
    else if (!flags.quiet) io.err.write(`${time.slice(0, 19)}Z ${harmless(line)}\n`);
  };
  const hangMs = 1000 * (flags.hang ?? config.detection.hangSeconds);
  const service = await openService(io, config, { hangMs, version, log });
  for (const line of service.says) log(line);
  say(io, flags, service, config);
  const stopWatching = flags.config ? watch(flags.config, io, flags, service, log) : () => {};
  await stopped();
  stopWatching();
  log("stopping: saving open incidents");
  await service.close();
  return 0;
}

function watch(
  file: string,
  io: Io,
  flags: ServeCliFlags,
  service: OpenService,
  log: (line: string) => void,
): () => void {
  const reload = makeReload({
    read: () => readServeConfig(file, flags, io.env),
    apply: (next) => service.reload(next),
    failed: (isFailed) => service.configFailed(isFailed),
    say: (line) => {
      log(`the configuration: ${line}`);
      void service.view.note("service", "reload", "", line).catch(() => undefined);
    },
  });
  return watchConfig(file, reload);
}

function say(io: Io, flags: ServeCliFlags, service: OpenService, config: ServeConfig): void {
  const { nats, dataFolder } = config;
  // "All addresses" is none that an agent could be given.
  const url = service.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
  if (flags.json) io.out.write(`${JSON.stringify({ event: "listening", url, dataFolder })}\n`);
  else
    io.out.write(
      `listening on ${url}\n${nats ? `agents: faultline agent --server ${nats.url}` : `agents: faultline agent --server ${url}`}\nhistory: ${service.history}; Ctrl-C stops it\n`,
    );
}

function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve());
  });
}
