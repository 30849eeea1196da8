/** `faultline simulate --live`: a simulated job in real time, through real agents, against a running service. */
import { randomInt } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { AgentProcesses } from "../live/fleet/agent-processes.ts";
import { startControl, type ControlServer } from "../live/fleet/control-server.ts";
import { makeRehearsalFolder } from "../live/fleet/rehearsal-folder.ts";
import { Rehearsal } from "../live/fleet/rehearsal.ts";
import { SIMULATED_NICS } from "../live/fleet/simulated-nics.ts";
import { NAME } from "../live/wire/messages.ts";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { completeSpec, type ScheduleName } from "../simulate/cluster/spec.ts";
import type { SimulateFlags } from "./simulate.ts";
import type { Io } from "./io.ts";

export interface SimulateLiveFlags extends SimulateFlags {
  readonly live: string;
  readonly every?: number;
  readonly speed?: number;
  readonly agents?: number;
  readonly control?: number;
  readonly tokenFile?: string;
  readonly for?: number;
  readonly name?: string;
}

/** A process and two files per rank: more belongs onto more machines (bench/live.ts plays 10,000 in memory). */
const MOST_GPUS = 1024;
const TICK_MS = 100;
/** Agents look about once a second: time for them to see that the job has ended. */
const SEEN_MS = 2500;

export async function runSimulateLive(io: Io, flags: SimulateLiveFlags): Promise<number> {
  const job = flags.name ?? "rehearsal";
  check(flags, job);
  const spec = completeSpec({
    ...flags,
    name: job,
    iterations: flags.iterations ?? Number.MAX_SAFE_INTEGER,
    schedule: flags.schedule as ScheduleName,
    layersPerStage: flags.layers,
    faults: (flags.fault ?? []).map(parseFault),
  } as Parameters<typeof completeSpec>[0]);
  if (spec.gpus > MOST_GPUS)
    throw new UserError(
      `--live plays at most ${MOST_GPUS} GPUs, not ${spec.gpus}: each is a process and two files`,
      "bench/live.ts plays larger jobs in memory",
      2,
    );
  const say = (line: string): void => {
    if (flags.quiet !== true) io.err.write(`${line}\n`);
  };
  const ending = endingBySignals();
  const folder = makeRehearsalFolder(tmpdir());
  let rehearsal: Rehearsal | null = null;
  let agents: AgentProcesses | null = null;
  let control: ControlServer | null = null;
  try {
    rehearsal = await Rehearsal.start({
      spec,
      everyMs: flags.speed === undefined ? (flags.every ?? 1) * 1000 : null,
      speed: flags.speed ?? 1,
      job,
      runNumber: randomInt(2 ** 31),
      folder,
      tickMs: TICK_MS,
      say,
    });
    agents = startAgents(flags, rehearsal, say);
    if (flags.control !== undefined) control = await startControl(flags.control, rehearsal);
    announce(io, flags, rehearsal, agents, control);
    await untilStopped(io, flags, rehearsal, ending);
    await rehearsal.finish();
    if (agents.count > 0) await Promise.race([after(SEEN_MS), ending.inHurry]);
    return 0;
  } finally {
    await control?.close();
    await agents?.close();
    await rehearsal?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function check(flags: SimulateLiveFlags, job: string): void {
  const { live, every, speed, control } = flags;
  if (!/^(?:https?|wss?|nats|tls):\/\/\S+$/.test(live))
    throw new UserError(
      `--live ${live} is not an address`,
      "give the address that faultline serve prints, such as http://127.0.0.1:7077, or nats://…",
      2,
    );
  if (!NAME.test(job))
    throw new UserError(`--name ${job} is not a valid job name`, "use letters, digits, - and _", 2);
  if (every !== undefined && speed !== undefined)
    throw new UserError(
      "--every and --speed cannot be used together",
      "--every sets the duration of a healthy iteration, --speed how fast the simulated clock runs",
      2,
    );
  if (speed !== undefined && !(speed >= 0.001 && speed <= 1000))
    throw new UserError(`--speed ${speed} is out of range`, "allowed: 0.001 to 1000", 2);
  if (every !== undefined && !(every >= 0.05 && every <= 3600))
    throw new UserError(`--every of ${every} s is out of range`, "allowed: 50ms to 1h", 2);
  if (control !== undefined && !(Number.isInteger(control) && control <= 65_535))
    throw new UserError(`--control ${control} is not a port`, "allowed: 0 (any) to 65535", 2);
}

function startAgents(
  flags: SimulateLiveFlags,
  rehearsal: Rehearsal,
  say: (line: string) => void,
): AgentProcesses {
  const { machines } = rehearsal.run;
  const most = flags.agents ?? machines.length;
  const token = flags.tokenFile === undefined ? [] : ["--token-file", flags.tokenFile];
  const alone = ({ machine, folder }: (typeof machines)[number]): string[] => [
    "agent",
    "--server",
    flags.live,
    "--dir",
    folder,
    "--machine",
    machine,
    "--nic",
    SIMULATED_NICS.join(),
    "--json",
    ...token,
  ];
  const together = (some: typeof machines): string[] => [
    "simulate",
    "--live",
    flags.live,
    ...token,
    "--agents-of",
    JSON.stringify(some),
  ];
  const shares = Array.from({ length: Math.min(most, machines.length) }, (_, i) =>
    machines.filter((_, at) => at % most === i),
  );
  return new AgentProcesses({
    agents: shares.map((some) => (flags.agents === undefined ? alone(some[0]!) : together(some))),
    say,
  });
}

function announce(
  io: Io,
  flags: SimulateLiveFlags,
  rehearsal: Rehearsal,
  agents: AgentProcesses,
  control: ControlServer | null,
): void {
  const { job, run, gpus, machines, everyMs } = rehearsal.state();
  if (flags.json) {
    const about = { schema: "faultline.rehearsal/1", job, run, gpus, machines, everyMs };
    const words = { ...about, agents: agents.pids, control: control?.url ?? null };
    io.out.write(`${JSON.stringify(words)}\n`);
    return;
  }
  io.out.write(
    `${job} (${run}): ${count(gpus, "GPU")} on ${count(machines.length, "machine")}, ` +
      `agent processes: ${agents.count}, one iteration every ${(everyMs / 1000).toFixed(2)} s` +
      `${control === null ? "" : `; control ${control.url}`}\n` +
      `type a fault per line (gpu-slow:rank=17:severity=2), or clear, state, restart, quit\n`,
  );
}

/** Asked to stop; a second request does not wait. */
interface Ending {
  readonly asked: Promise<void>;
  readonly inHurry: Promise<void>;
  stop(this: void): void;
}

/** From the very start: Ctrl-C while ranks are started must not leave half of them behind. */
function endingBySignals(): Ending {
  let isAsked = false;
  let end: () => void = () => undefined;
  let hurry: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => (end = resolve));
  const inHurry = new Promise<void>((resolve) => (hurry = resolve));
  const stop = (): void => {
    if (isAsked) hurry();
    isAsked = true;
    end();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  return { asked, inHurry, stop };
}

async function untilStopped(
  io: Io,
  flags: SimulateLiveFlags,
  rehearsal: Rehearsal,
  ending: Ending,
): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  rehearsal.onQuit = ending.stop;
  const timer = flags.for === undefined ? undefined : setTimeout(ending.stop, flags.for * 1000);
  lines.on("line", (line) => {
    void rehearsal.command(line).then((answer) => {
      if (answer !== "") io.out.write(`${harmless(answer)}\n`);
    });
  });
  await ending.asked;
  clearTimeout(timer);
  lines.close();
  // Its end must not be waited for: it may be a terminal.
  process.stdin.unref?.();
}

function after(ms: number): Promise<void> {
  // Agents are children, and keep us here while there are some.
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
