/** The agent: asks the machine what is new about once a second, and has a link carry it to the service. */
import type { AgentReply, AgentRequest, BeatReport, Report } from "../wire/messages.ts";
import type { AgentLink, AgentLinkOptions } from "../wire/transport.ts";
import type { Node } from "./node.ts";
import { RecentPoints } from "./recent-points.ts";

const TICK_MS = 1000;
const BEAT_MS = 2000;
const FLUSH_MS = 2000;

export interface AgentOptions {
  /** What the link needs; the agent itself answers. */
  readonly link: Omit<AgentLinkOptions, "answer" | "onConnected" | "onTrouble">;
  readonly openLink: (options: AgentLinkOptions) => AgentLink;
  /** What people should see; each once until it changes. */
  onSay(this: void, what: AgentSaying): void;
  /** For tests. */
  readonly tickMs?: number;
  readonly beatMs?: number;
  readonly flushMs?: number;
  readonly now?: () => number;
}

export type AgentSaying =
  | { readonly event: "connected" }
  | { readonly event: "trouble"; readonly line: string }
  | { readonly event: "dropped"; readonly reports: number; readonly points: number };

export interface RunningAgent {
  readonly link: AgentLink;
  /** Ends in order: a last look, what is buffered is handed over, the link is closed. */
  stop(): Promise<void>;
}

export function startAgent(node: Node, options: AgentOptions): RunningAgent {
  const { onSay, tickMs = TICK_MS, beatMs = BEAT_MS, flushMs = FLUSH_MS } = options;
  const now = options.now ?? Date.now;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let beat: BeatReport | null = null;
  let beatAt = -Infinity;
  let isNew = false;
  let toldDropped = 0;
  const recent = new RecentPoints();

  const link = options.openLink({
    ...options.link,
    answer: (request) => answer(node, request),
    onConnected: () => {
      onSay({ event: "connected" });
      // Links may call while they are being opened: the tick that follows introduces us.
      isNew = true;
    },
    onTrouble: (line) => onSay({ event: "trouble", line }),
  });

  const send = (reports: readonly Report[]): void => {
    for (const report of reports) {
      if (report.kind === "beat") beat = report;
      else link.send(report);
      if (report.kind === "points") recent.add(report);
    }
  };

  const look = (): void => {
    const nowMs = now();
    if (isNew) {
      isNew = false;
      for (const report of node.introduce()) link.send(report);
      for (const report of recent.all()) link.send(report);
    }
    send(node.tick(nowMs));
    if (nowMs < beatAt || nowMs - beatAt >= beatMs) {
      beatAt = nowMs;
      const { reports, points } = link.dropped;
      link.send({ kind: "beat", nowMs, jobs: beat?.jobs ?? [], dropped: { reports, points } });
      // A node that tells of its jobs more seldom than we beat has still said how they stand.
      if (reports + points > toldDropped) onSay({ event: "dropped", reports, points });
      toldDropped = reports + points;
    }
  };

  const loop = (): void => {
    const began = performance.now();
    try {
      look();
    } catch (error) {
      onSay({ event: "trouble", line: `a look at this machine failed: ${String(error)}` });
    }
    if (isStopped) return;
    // After a pause of the whole machine there is one look, not one for each that was missed.
    const rest = Math.max(tickMs / 10, tickMs - (performance.now() - began));
    timer = setTimeout(loop, rest);
  };
  loop();

  return {
    link,
    async stop() {
      if (isStopped) return;
      isStopped = true;
      clearTimeout(timer);
      try {
        look();
        await link.flush(flushMs);
      } catch (error) {
        onSay({ event: "trouble", line: String(error) });
      }
      await link.close();
      node.close();
    },
  };
}

/** Runs until it is told to end. */
export async function runAgent(
  node: Node,
  options: AgentOptions & { readonly stop: AbortSignal },
): Promise<void> {
  const agent = startAgent(node, options);
  if (!options.stop.aborted)
    await new Promise<void>((resolve) => {
      options.stop.addEventListener("abort", () => resolve(), { once: true });
    });
  await agent.stop();
}

async function answer(node: Node, request: AgentRequest): Promise<AgentReply> {
  try {
    return await node.answer(request);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "refused", why: why.slice(0, 400) };
  }
}
