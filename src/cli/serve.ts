/** `faultline serve`: the live service. */
import { hostname } from "node:os";
import { harmless } from "../base/text.ts";
import { readServeConfig, type ServeConfig, type ServeFlags } from "../live/service/config.ts";
import { openService } from "./open-service.ts";

export interface ServeCliFlags extends ServeFlags {
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** Seconds. */
  readonly hang?: number;
}

export async function runServe(flags: ServeCliFlags, version: string): Promise<number> {
  const config = readServeConfig(flags.config ?? null, flags, process.env);
  const log = (line: string): void => {
    const time = new Date().toISOString();
    if (flags.json) process.stdout.write(`${JSON.stringify({ time, event: "log", line })}\n`);
    else if (!flags.quiet) process.stderr.write(`${time.slice(0, 19)}Z ${harmless(line)}\n`);
  };
  const hangMs = 1000 * (flags.hang ?? config.detection.hangSeconds);
  const service = await openService(config, { hangMs, version, log });
  for (const line of service.says) log(line);
  say(flags, service.url, config);
  await told();
  log("ends: writes down what is open");
  await service.close();
  return 0;
}

function say(flags: ServeCliFlags, bound: string, config: ServeConfig): void {
  const { nats, history, dataFolder } = config;
  const where = history.kind === "duckdb" ? history.path : "ClickHouse";
  // "All addresses" is none that an agent could be given.
  const url = bound.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
  if (flags.json)
    process.stdout.write(`${JSON.stringify({ event: "listening", url, dataFolder })}\n`);
  else
    process.stdout.write(
      `listens on ${url}\n${nats ? `agents: faultline agent --server ${nats.url}` : `agents: faultline agent --server ${url}`}\nhistory: ${where}; Ctrl-C ends it\n`,
    );
}

function told(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve());
  });
}
