/** A service's end and agents' ends for tests: all that was opened is closed by one call. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { AgentHello, AgentReply, Report } from "../../../src/live/wire/messages.ts";
import type {
  AgentBus,
  AgentBusHandlers,
  AgentLinkOptions,
} from "../../../src/live/wire/transport.ts";
import { serveAgents, type ServeAgentsOptions } from "../../../src/live/wire/ws-bus.ts";

export interface Heard {
  readonly reports: { readonly agent: string; readonly boot: string; readonly report: Report }[];
  readonly connected: string[];
  readonly gone: string[];
  readonly announced: string[];
  readonly troubles: string[];
  readonly handlers: AgentBusHandlers;
}

export function hear(over: Partial<AgentBusHandlers> = {}): Heard {
  const heard = {
    reports: [] as Heard["reports"],
    connected: [] as string[],
    gone: [] as string[],
    announced: [] as string[],
    troubles: [] as string[],
  };
  const handlers: AgentBusHandlers = {
    report: ({ agent, boot }, report) => void heard.reports.push({ agent, boot, report }),
    connected: ({ agent }) => void heard.connected.push(agent),
    gone: (agent) => void heard.gone.push(agent),
    asked: (job, text) => `${job}: ${text}`,
    announced: (job) => void heard.announced.push(job),
    onTrouble: (line) => void heard.troubles.push(line),
    ...over,
  };
  return { ...heard, handlers };
}

export interface TestService {
  readonly server: Server;
  readonly bus: AgentBus;
  readonly url: string;
  stop(): Promise<void>;
}

export async function startService(
  heard: Heard,
  over: Partial<ServeAgentsOptions> = {},
  port = 0,
): Promise<TestService> {
  const server = createServer((_, response) => response.end());
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const {
    authorize = (): ReturnType<ServeAgentsOptions["authorize"]> => ({
      name: "test",
      agent: null,
      jobs: null,
    }),
  } = over;
  const bus = serveAgents(server, {
    authorize,
    holds: (request, who) => JSON.stringify(authorize(request)) === JSON.stringify(who),
    handlers: heard.handlers,
    ...over,
  });
  return {
    server,
    bus,
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      await bus.close();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

export function helloOf(agent: string, boot = "boot-1"): AgentHello {
  return { protocol: 1, agent, machine: agent, boot, version: "0.1.0" };
}

export function linkOptions(url: string, over: Partial<AgentLinkOptions> = {}): AgentLinkOptions {
  return {
    url,
    token: null,
    hello: helloOf("node-1"),
    bufferBytes: 1 << 20,
    ca: null,
    answer: async (): Promise<AgentReply> => ({ kind: "refused", why: "not here" }),
    onConnected: () => {},
    onTrouble: () => {},
    ...over,
  };
}
