/**
 * The child of `faultline demo`: plays the job and runs the agents of all its machines. In a process of its own: the
 * service may compute for seconds, and the job must not stop meanwhile. Ends when its parent does.
 */
import { randomInt } from "node:crypto";
import { errorText } from "../base/errors.ts";
import { Rehearsal } from "../live/fleet/rehearsal.ts";
import { completeSpec, type ClusterSpec } from "../simulate/cluster/spec.ts";
import type { Io } from "./io.ts";
import { runSharedAgents } from "./simulate-agents.ts";

export const DEMO = { job: "demo-llama", gpus: 64, everyMs: 500 } as const;
const TICK_MS = 100;
const TELL_MS = 200;

/**
 * Few operators, large ones: a laptop plays the job, serves it and diagnoses it at the same time, and an iteration takes
 * about as long as it would on such GPUs.
 */
export function demoSpec(): ClusterSpec {
  return completeSpec({
    name: DEMO.job,
    gpus: DEMO.gpus,
    tp: 4,
    pp: 4,
    layersPerStage: 2,
    hidden: 8192,
    iterations: Number.MAX_SAFE_INTEGER,
  });
}

/** From the parent. */
export type DemoOrder =
  | { readonly do: "add"; readonly id: number; readonly words: string }
  | { readonly do: "remove"; readonly id: number }
  | { readonly do: "restart" };

/** To the parent. */
export interface DemoNews {
  readonly run: string;
  readonly iteration: number;
  readonly isHung: boolean;
  /** Counts restarts that are done. */
  readonly restarts: number;
  readonly line?: string;
}

export async function playDemoJob(
  io: Io,
  { folder, url }: { readonly folder: string; readonly url: string },
  version: string,
): Promise<number> {
  let restarts = 0;
  let rehearsal: Rehearsal | null = null;
  const tell = (line?: string): void => {
    if (!rehearsal || !process.connected) return;
    const { run, iteration, isHung } = rehearsal.state();
    const news: DemoNews = {
      run,
      iteration,
      isHung,
      restarts,
      ...(line === undefined ? {} : { line }),
    };
    process.send?.(news, () => undefined);
  };
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    void (rehearsal?.close() ?? Promise.resolve()).finally(() => process.exit(0));
  };
  process.on("disconnect", end);
  process.on("SIGTERM", end);
  const started = await Rehearsal.start({
    spec: demoSpec(),
    everyMs: DEMO.everyMs,
    speed: 1,
    job: DEMO.job,
    runNumber: randomInt(2 ** 31),
    folder,
    tickMs: TICK_MS,
    say: tell,
  });
  rehearsal = started;
  if (isOver) {
    await started.close();
    return 0;
  }
  const boardIds = new Map<number, number>();
  process.on("message", (order: DemoOrder) => {
    if (order.do === "add") {
      try {
        boardIds.set(order.id, started.add(order.words).id);
      } catch (error) {
        tell(errorText(error));
      }
    } else if (order.do === "remove") started.remove(boardIds.get(order.id) ?? -1);
    else
      void started
        .restart()
        .catch((error: unknown) => tell(String(error)))
        .finally(() => {
          restarts++;
          tell();
        });
  });
  setInterval(() => tell(), TELL_MS);
  const machines = JSON.stringify(started.run.machines);
  return await runSharedAgents(io, { live: url, agentsOf: machines }, version);
}
