/** The agent: asks the machine what is new about once a second, and has a link carry it to the service. */
import { errorText } from "../../base/errors.ts";
import type {
  AgentReply,
  AgentRequest,
  BeatReport,
  PointsReport,
  Report,
} from "../wire/messages.ts";
import type { AgentLink, AgentLinkOptions } from "../wire/transport.ts";
import type { Node } from "./node.ts";

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
      onSay({ event: "trouble", line: `looking at this machine failed: ${String(error)}` });
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
    const why = errorText(error);
    return { kind: "refused", why: why.slice(0, 400) };
  }
}

/** Iterations of each rank. */
const KEPT = 64;
/** Rows of one job on one machine: more is no machine. */
const MOST_ROWS = 16_384;

/**
 * The last iterations that were told, for a service that has just been started, or has taken a job over: it learns what is
 * healthy from them, and need not wait for as many new ones.
 */
class RecentPoints {
  /** "job run" → what was told, oldest first. */
  readonly #told = new Map<string, PointsReport[]>();

  add(report: PointsReport): void {
    const key = `${report.job} ${report.run}`;
    const list = this.#told.get(key) ?? [];
    list.push(report);
    const newest = report.iteration.reduce((most, number) => Math.max(most, number), -Infinity);
    let rows = list.reduce((sum, { rank }) => sum + rank.length, 0);
    while (
      list.length > 1 &&
      (rows > MOST_ROWS || (list[0]!.iteration.at(-1) ?? 0) <= newest - KEPT)
    )
      rows -= list.shift()!.rank.length;
    // A run that is over is not asked for again: one run of a job is kept, the latest.
    for (const other of this.#told.keys())
      if (other !== key && other.startsWith(`${report.job} `)) this.#told.delete(other);
    this.#told.set(key, list);
  }

  /** One report a job. */
  all(): PointsReport[] {
    return [...this.#told.values()].map((list) => ({
      kind: "points",
      job: list[0]!.job,
      run: list[0]!.run,
      rank: Uint32Array.from(list.flatMap(({ rank }) => [...rank])),
      iteration: Float64Array.from(list.flatMap(({ iteration }) => [...iteration])),
      endMs: Float64Array.from(list.flatMap(({ endMs }) => [...endMs])),
      durationMs: floats(list, "durationMs"),
      collectiveMs: floats(list, "collectiveMs"),
      sendMs: floats(list, "sendMs"),
      recvMs: floats(list, "recvMs"),
      issueMs: floats(list, "issueMs"),
    }));
  }
}

type FloatColumn = "durationMs" | "collectiveMs" | "sendMs" | "recvMs" | "issueMs";

function floats(list: readonly PointsReport[], name: FloatColumn): Float32Array<ArrayBuffer> {
  return Float32Array.from(list.flatMap((report) => [...report[name]]));
}
