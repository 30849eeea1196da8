/** Can the configuration files be read, and would `serve` start with them? */
import { createServer } from "node:net";
import { UserError } from "../../base/errors.ts";
import type { ServeConfig } from "../../live/service/config/config.ts";
import { listen } from "../../live/service/http/serve-http.ts";
import { readyService } from "../ready-service.ts";
import { type Line, linesOf } from "./line.ts";

export interface ConfigurationSeen {
  /** Files that were read, in words. */
  readonly files: readonly string[];
  /** What is wrong, with what to do. */
  readonly faults: readonly { readonly message: string; readonly hint: string }[];
}

const { ok, broken, none } = linesOf("configuration");

export function judgeConfiguration({ files, faults }: ConfigurationSeen): Line[] {
  if (faults.length > 0) return faults.map(({ message, hint }) => broken(message, hint));
  if (files.length === 0) return [none("no configuration file; every setting has a default")];
  return [ok(`${files.join(", ")} can be read`)];
}

/** Why a service of this configuration could not start; `isRunning`: it has its port already. */
export async function startFaults(config: ServeConfig, isRunning: boolean): Promise<UserError[]> {
  const { faults } = await readyService(config);
  const held = isRunning ? null : await portFault(config);
  return [...faults, ...(held ? [held] : [])];
}

/** Only for a moment: another program that holds the port is found by the system alone. */
async function portFault({ host, port }: ServeConfig): Promise<UserError | null> {
  const server = createServer();
  try {
    await listen(server, host, port);
    return null;
  } catch (error) {
    // A port below 1024 may be for the service's user only.
    return error instanceof UserError && !error.message.includes("EACCES") ? error : null;
  } finally {
    server.close();
  }
}
