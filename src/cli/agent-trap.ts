/** `faultline agent trap` and `release`: holds the calls of running processes (Greyhound §4.3). */
import { printJson } from "./output.ts";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { heldBy, releaseTrap, setTrap, type Trouble } from "../live/agent/rings/control.ts";
import type { FoundRing } from "../live/agent/rings/discover.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { nameOf } from "../live/agent/evidence/request-stacks.ts";
import { living, ringsOfWriter, type ChosenFlags } from "./agent-chosen.ts";
import { table } from "./agent-rings.ts";
import type { Io } from "./io.ts";

export interface TrapFlags extends ChosenFlags {
  /** Seconds. */
  readonly for: number;
}

/** The probe's own limit, where FAULTLINE_TRAP_MAX_MS does not say otherwise. */
const TRAP_MAX_S = 60;
const MOST_TRAP_S = 600;
const LOOK_MS = 20;

export async function runTrap(io: Io, flags: TrapFlags): Promise<number> {
  if (flags.for > MOST_TRAP_S)
    throw new UserError(`--for ${flags.for}s is too long to hold a job`, "give at most 10m", 2);
  const machine = thisMachine();
  const rings = ringsOfWriter(living(io, flags, machine), "native");
  const before = new Map(heldBy(rings).map(({ ring, calls }) => [ring, calls]));
  const troubles = setTrap(rings, BigInt(Math.round(flags.for * 1e9)), machine);
  if (flags.for > TRAP_MAX_S && !flags.quiet)
    io.err.write(
      `a probe holds a call for at most ${TRAP_MAX_S} s, unless FAULTLINE_TRAP_MAX_MS is set\n`,
    );
  /** The most threads of each that were held at once. */
  const waiting = new Map<FoundRing, number>();
  const end = performance.now() + flags.for * 1000;
  // Most arrive within an iteration; look at the one that has not arrived when all others wait.
  while (performance.now() < end && waiting.size < rings.length - troubles.length) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    for (const { ring, calls, now } of heldBy(rings))
      if (calls > before.get(ring)!) waiting.set(ring, Math.max(now, waiting.get(ring) ?? 1));
  }
  const rows = rings.map((ring) => ({
    ...identity(ring),
    waited: waiting.has(ring),
    threads: waiting.get(ring) ?? 0,
  }));
  const leftMs = Math.max(0, Math.round(end - performance.now()));
  tell(io, flags, { schema: "faultline.trap/1", freeInMs: leftMs, rings: rows }, troubles, () => {
    const lines = rows.map((row) => [
      who(row),
      row.waited ? `waits (${count(row.threads, "thread")})` : "made no call",
    ]);
    const free =
      leftMs > 0
        ? `released in ${(leftMs / 1000).toFixed(1)} s, or with faultline agent release\n`
        : "released\n";
    return table([["process", "trap"], ...lines]) + free;
  });
  return 0;
}

export function runRelease(io: Io, flags: ChosenFlags): number {
  const rings = living(io, flags, thisMachine());
  const troubles = releaseTrap(rings);
  const released = rings.length - troubles.length;
  tell(
    io,
    flags,
    { schema: "faultline.trap/1", released },
    troubles,
    () => `${count(released, "ring")} released\n`,
  );
  return 0;
}

function tell(
  io: Io,
  { json, quiet }: ChosenFlags,
  document: object,
  troubles: readonly Trouble[],
  words: () => string,
): void {
  const lines = troubles.map(({ ring, why }) => `${nameOf(ring)}: ${why}`);
  if (json) printJson(io, { ...document, troubles: lines });
  else io.out.write(words());
  if (!quiet) for (const line of lines) io.err.write(`${harmless(line)}\n`);
}

function identity({ header }: FoundRing): { rank: number | null; pid: number; writer: string } {
  return { rank: header.rank < 0 ? null : header.rank, pid: header.pid, writer: header.writer };
}

function who({ rank, pid, writer }: { rank: number | null; pid: number; writer: string }): string {
  return `${rank === null ? "process" : `rank ${rank}, process`} ${pid} (${writer})`;
}
