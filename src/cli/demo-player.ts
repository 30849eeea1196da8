/** The process that plays the job of the demonstration, from the side of its parent. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { sameProgram } from "../base/own-program.ts";
import type { DemoNews, DemoOrder } from "./demo-play.ts";

export interface DemoPlayer {
  /** null before the job runs. */
  readonly news: DemoNews | null;
  order(order: DemoOrder): void;
  /** Resolves when the job runs anew. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface StartPlayerOptions {
  readonly folder: string;
  readonly url: string;
  readonly log: (line: string) => void;
  /** Something is new. */
  readonly onNews: (news: DemoNews) => void;
  /** It has ended on its own. */
  readonly onLost: () => void;
}

/** Time to end in order; then it is killed, and its ranks end with it. */
const END_MS = 1500;

export function startPlayer(options: StartPlayerOptions): DemoPlayer {
  const { folder, url, log, onNews, onLost } = options;
  const [program, ...nodeWords] = sameProgram();
  const words = [...nodeWords, "demo", "--play", JSON.stringify({ folder, url })];
  // Not of our terminal's group: Ctrl-C is for us, and we tell it.
  const child: ChildProcess = spawn(program, words, {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true,
  });
  let news: DemoNews | null = null;
  let isClosing = false;
  const waiting: { readonly restarts: number; readonly done: () => void }[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8");
    stream?.on("data", (text: string) => {
      for (const line of text.trim().split("\n")) log(line.slice(0, 1000));
    });
  }
  child.on("error", (error) => log(`the job: ${error.message}`));
  child.on("exit", () => {
    for (const { done } of waiting.splice(0)) done();
    if (!isClosing) onLost();
  });
  child.on("message", (latest: DemoNews) => {
    if (latest.line !== undefined) log(latest.line);
    news = latest;
    for (const one of waiting.filter(({ restarts }) => latest.restarts >= restarts)) {
      waiting.splice(waiting.indexOf(one), 1);
      one.done();
    }
    onNews(latest);
  });
  const order = (what: DemoOrder): void => {
    if (child.connected) child.send(what, () => undefined);
  };
  return {
    get news() {
      return news;
    },
    order,
    async restart() {
      const restarts = (news?.restarts ?? 0) + 1;
      const done = new Promise<void>((resolve) => waiting.push({ restarts, done: resolve }));
      order({ do: "restart" });
      await done;
    },
    async close() {
      isClosing = true;
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const gone = once(child, "exit");
      const late = setTimeout(() => child.kill("SIGKILL"), END_MS);
      child.kill("SIGTERM");
      await gone;
      clearTimeout(late);
    },
  };
}
