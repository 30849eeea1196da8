/** A service on a data folder, with nothing configured, and what it answers. */
import { openService } from "../../src/cli/open-service.ts";
import { readServeConfig } from "../../src/live/service/config/config.ts";

export interface AnsweringService {
  get(path: string): Promise<{ readonly status: number; readonly text: string }>;
  close(): Promise<void>;
}

export async function openStore(data: string): Promise<AnsweringService> {
  const screen = { write: () => undefined };
  const config = readServeConfig(null, { data, port: 0 }, {});
  const service = await openService({ out: screen, err: screen, env: {} }, config, {
    hangMs: 30_000,
    version: "0.0.0-test",
    log: () => undefined,
  });
  return {
    async get(path) {
      const response = await fetch(`${service.url}${path}`);
      return { status: response.status, text: await response.text() };
    },
    close: async () => await service.close(),
  };
}
