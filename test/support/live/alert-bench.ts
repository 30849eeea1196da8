/** What alerts need from a service, for tests: a clock of our own, timers that follow it, a document that is kept. */
import { LeaseLost } from "../../../src/live/wire/transport.ts";
import { makeAlerts } from "../../../src/live/service/alerts/alerts.ts";
import type {
  Alerts,
  AlertsConfig,
  AlertsEnv,
  AlertTimings,
  Fetch,
} from "../../../src/live/service/alerts/types.ts";

export interface AlertBench {
  nowMs: number;
  readonly lines: string[];
  /** As the store has it: text, so that nothing is shared by accident. */
  stored: string | null;
  /** How `remember` fails; null while it works. */
  storeFails: "down" | "lost" | "hangs" | null;
  /** Why people need not hear of an incident. */
  hush: AlertsEnv["hush"];
  /** How long a request may take, by the real clock: short where one hangs on purpose. */
  requestMs: number;
  open(config: Partial<AlertsConfig>, fetch?: Fetch): Alerts;
  /** Moves the clock, and calls what is due on the way, in order. */
  advance(ms: number): Promise<void>;
  /** Lets requests and promises go on until the condition holds. */
  until(condition: () => boolean | Promise<boolean>, what: string): Promise<void>;
}

const LIMIT_MS = 50_000;
const TIMINGS: Partial<AlertTimings> = { firstRetryMs: 1000, mostRetryMs: 60_000 };

export function makeAlertBench(nowMs = 1_700_000_010_000): AlertBench {
  const timers = new Set<{ atMs: number; run: () => void }>();
  const bench: AlertBench = {
    nowMs,
    lines: [],
    stored: null,
    storeFails: null,
    requestMs: 30_000,
    hush: () => null,
    open(config, fetch = globalThis.fetch) {
      const env: AlertsEnv = {
        nowMs: () => bench.nowMs,
        fetch,
        setTimer(afterMs, run) {
          const timer = { atMs: bench.nowMs + afterMs, run };
          timers.add(timer);
          return () => timers.delete(timer);
        },
        hush: (incident) => bench.hush?.(incident) ?? null,
        log: (line) => bench.lines.push(line),
        async remember(document) {
          if (bench.storeFails === "down") throw new Error("the store is down");
          if (bench.storeFails === "lost") throw new LeaseLost("llama");
          if (bench.storeFails === "hangs") await new Promise(() => {});
          bench.stored = JSON.stringify(document);
        },
        recalled: bench.stored === null ? null : (JSON.parse(bench.stored) as unknown),
        timings: { ...TIMINGS, requestMs: bench.requestMs },
      };
      return makeAlerts({ alertmanager: [], webhooks: [], slack: [], ...config }, env);
    },
    async advance(ms) {
      const endMs = bench.nowMs + ms;
      await turn();
      for (;;) {
        const [next] = [...timers].sort((a, b) => a.atMs - b.atMs);
        if (!next || next.atMs > endMs) break;
        timers.delete(next);
        bench.nowMs = Math.max(bench.nowMs, next.atMs);
        next.run();
        await turn();
      }
      bench.nowMs = endMs;
      await turn();
    },
    async until(condition, what) {
      const beganMs = Date.now();
      while (!(await condition())) {
        if (Date.now() - beganMs > LIMIT_MS)
          throw new Error(`waited in vain: ${what}; log: ${bench.lines.join(" / ")}`);
        // Timers that are due now are part of going on.
        await bench.advance(0);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
  return bench;
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
