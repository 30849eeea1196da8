/** `faultline plan serve`: the controller that a running job asks for its micro-batches (Greyhound §5.2, S2). */
import { UserError } from "../base/errors.ts";
import { startController } from "../live/service/microbatches/controller.ts";
import type { JobChange } from "../live/service/microbatches/jobs.ts";
import type { Io } from "./io.ts";

export interface PlanServeFlags {
  readonly groups: number;
  readonly total: number;
  readonly multipleOf?: number;
  /** How long the pipeline fills and drains, in micro-batch times: (stages − 1) / chunks of a stage. */
  readonly bubble?: number;
  readonly port?: number;
  readonly host?: string;
  /** The name of the environment variable that holds the token: every user can see command lines. */
  readonly tokenEnv?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** One more than serve's, so that both can run on one machine. */
const PORT = 7078;
/** Shares that are written out. */
const LISTED = 16;

/** Serves until a signal comes; returns the exit status. */
export async function runPlanServe(io: Io, flags: PlanServeFlags): Promise<number> {
  const { groups, total, multipleOf, bubble, host = "127.0.0.1", port = PORT } = flags;
  const token = tokenOf(io, flags.tokenEnv);
  const controller = await startController(
    {
      groups,
      total,
      port,
      host,
      ...(multipleOf === undefined ? {} : { multipleOf }),
      ...(bubble === undefined ? {} : { bubble }),
      ...(token === undefined ? {} : { token }),
    },
    { nowMs: () => Date.now(), onChange: (change) => tell(io, change, flags) },
  );
  const stop = ended();
  const where = `planning ${total} micro-batches for ${groups} replicas at ${controller.url}\n`;
  if (flags.json) io.err.write(where);
  else io.out.write(where);
  if (token === undefined && !isLoopback(host) && !flags.quiet)
    io.err.write(
      "faultline: anyone who can reach this address can change the shares; --token-env NAME requires a token\n",
    );
  await stop;
  await controller.stop();
  return 0;
}

function tell(io: Io, change: JobChange, { json, quiet }: PlanServeFlags): void {
  const time = new Date(change.timeMs).toISOString();
  if (json) {
    const { timeMs: _, ...rest } = change;
    io.out.write(`${JSON.stringify({ time, ...rest })}\n`);
  }
  if (quiet) return;
  const { job, iteration, before, counts, beforeS, afterS, why } = change;
  io.err.write(
    `${time.slice(0, 19)}Z ${job}, iteration ${iteration}: ${shares(before)} → ${shares(counts)}, ` +
      `${beforeS.toPrecision(3)} s → ${afterS.toPrecision(3)} s expected: ${why}\n`,
  );
}

/** Most replicas have the same share: "16 (all but replica 2: 4, 7: 9)" stays a line with hundreds of them. */
function shares(counts: readonly number[]): string {
  if (counts.length <= LISTED) return `[${counts.join(", ")}]`;
  const usual = usualOf(counts);
  const others = counts.flatMap((count, i) => (count === usual ? [] : [`${i}: ${count}`]));
  if (others.length === 0) return `${usual} each`;
  const listed = others.slice(0, LISTED).join(", ");
  return `${usual} (all but replica ${listed}${others.length > LISTED ? ", …" : ""})`;
}

function usualOf(counts: readonly number[]): number {
  const sorted = Int32Array.from(counts).sort();
  return sorted[sorted.length >> 1]!;
}

function tokenOf(io: Io, name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const token = io.env[name];
  if (!token)
    throw new UserError(`the environment variable ${name} is not set`, `set it to the token`, 2);
  return token;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

function ended(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
