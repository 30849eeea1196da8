/** Where jobs are judged: in a thread, so that nothing keeps the service from taking reports; in a test with a set clock, here. */
import { Worker } from "node:worker_threads";
import { BUILT } from "../../../base/built.ts";
import { errorText } from "../../../base/errors.ts";
import { readOwn } from "../../../base/own-files.ts";
import { JudgeHost, type SessionJudgement, type ToJudge } from "./judge-host.ts";

/** The judge of one run of a job. */
export interface JobJudge {
  tell(message: ToJudge): void;
  close(): void;
}

export interface Judging {
  /** `hear`: what it says, one block after the other; sooner or later after a tick. */
  open(hear: (said: readonly SessionJudgement[]) => void): JobJudge;
  close(): Promise<void>;
}

export type ToThread =
  | { readonly job: number; readonly message: ToJudge }
  | { readonly job: number; readonly message: null };
export type FromThread =
  | { readonly job: number; readonly said: readonly SessionJudgement[] }
  | { readonly job: number; readonly failed: string };

export function judgeHere(): Judging {
  return {
    open(hear) {
      const host = new JudgeHost();
      return {
        tell(message) {
          const said = host.take(message);
          if (said.length > 0) hear(said);
        },
        close: () => undefined,
      };
    },
    close: () => Promise.resolve(),
  };
}

/** What fails is not started again at once: what failed it may come again. */
const RESTART_MS = 60_000;

interface OpenJob {
  readonly hear: (said: readonly SessionJudgement[]) => void;
  /** What another thread has to know first. */
  layout: ToJudge | null;
  microBatches: ToJudge | null;
}

/** From source there is no compiled thread to start. */
export function judgeInThread(trouble: (line: string) => void): Judging {
  if (!import.meta.url.endsWith(".js")) return judgeHere();
  const jobs = new Map<number, OpenJob>();
  let opened = 0;
  let failedMs = -Infinity;
  let worker: Worker | null = null;

  const post = (message: ToThread): void => running()?.postMessage(message);

  function running(): Worker | null {
    if (worker || performance.now() - failedMs < RESTART_MS) return worker;
    const started = startThread();
    started.on("message", (message: FromThread) => {
      const known = jobs.get(message.job);
      if ("said" in message) known?.hear(message.said);
      else if (known) {
        trouble(`a job is not judged for a minute: ${message.failed}`);
        setTimeout(() => introduce(message.job), RESTART_MS).unref();
      }
    });
    started.on("error", (error) => {
      trouble(`the judge of slowness failed, and learns again in a minute: ${errorText(error)}`);
    });
    started.on("exit", () => {
      if (worker !== started) return;
      worker = null;
      failedMs = performance.now();
    });
    // What it judges keeps no service running that wants to end.
    started.unref();
    worker = started;
    for (const job of jobs.keys()) introduce(job);
    return worker;
  }

  function introduce(job: number): void {
    const { layout = null, microBatches = null } = jobs.get(job) ?? {};
    for (const message of [layout, microBatches])
      if (message) worker?.postMessage({ job, message } satisfies ToThread);
  }

  return {
    open(hear) {
      const job = ++opened;
      const known: OpenJob = { hear, layout: null, microBatches: null };
      jobs.set(job, known);
      return {
        tell(message) {
          if (message.say === "layout") known.layout = message;
          if (message.say === "micro-batches") known.microBatches = message;
          post({ job, message });
        },
        close() {
          jobs.delete(job);
          if (worker) post({ job, message: null });
        },
      };
    },
    async close() {
      const last = worker;
      worker = null;
      await last?.terminate();
    },
  };
}

function startThread(): Worker {
  const place = new URL("./judge-worker.js", import.meta.url);
  if (BUILT.isSingle) return new Worker(readOwn(place).toString(), { eval: true });
  return new Worker(place);
}
