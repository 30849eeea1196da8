/** Which agents are there: each says so every few seconds, and whoever falls silent is gone. */
import type { NatsConnection } from "@nats-io/transport-node";
import { decodeFrame, FrameError } from "./codec.ts";
import type { AgentHello } from "./messages.ts";
import { SAY_AGAIN_MS, subjects } from "./nats-subjects.ts";
import type { AgentBusHandlers } from "./transport.ts";
import { safely } from "./trouble.ts";

const GONE_MS = 5 * SAY_AGAIN_MS;
const MOST_AGENTS = 65_536;

export interface Presence {
  agents(): readonly AgentHello[];
  /** Nobody could be heard for a while: nobody is gone because of that. */
  renew(): void;
  close(): void;
}

export function createPresence(nc: NatsConnection, handlers: AgentBusHandlers): Presence {
  const present = new Map<string, { hello: AgentHello; heardAt: number }>();
  const subscription = nc.subscribe(subjects.present("*"), {
    callback: (error, { subject, data }) => {
      if (error !== null) return;
      const frame = decodeFrame(data);
      if (frame instanceof FrameError || frame.type !== "hello") return;
      const { hello } = frame;
      if (!subject.endsWith(`.${hello.agent}`)) return;
      const before = present.get(hello.agent);
      if (before === undefined && present.size >= MOST_AGENTS) return;
      present.set(hello.agent, { hello, heardAt: performance.now() });
      if (before?.hello.boot === hello.boot) return;
      if (before !== undefined) safely(() => handlers.gone(hello.agent));
      safely(() => handlers.connected(hello));
    },
  });
  const sweep = setInterval(() => {
    if (nc.isClosed()) return;
    const now = performance.now();
    for (const [agent, { heardAt }] of present) {
      if (now - heardAt < GONE_MS) continue;
      present.delete(agent);
      safely(() => handlers.gone(agent));
    }
  }, SAY_AGAIN_MS / 2);
  sweep.unref();
  return {
    agents: () => [...present.values()].map(({ hello }) => hello),
    renew() {
      const now = performance.now();
      for (const one of present.values()) one.heardAt = now;
    },
    close() {
      clearInterval(sweep);
      if (!nc.isClosed()) subscription.unsubscribe();
    },
  };
}
