/** Agents of several machines of a rehearsal in one process: the child that `simulate --live --agents N` starts. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { jsonOf } from "../base/json.ts";
import { UserError } from "../base/errors.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { ringNode } from "../live/agent/ring-node.ts";
import { SlowStorage } from "../live/agent/evidence/slow-storage.ts";
import { runAgent } from "../live/agent/run-agent.ts";
import { SIMULATED_NICS } from "../live/fleet/simulated-nics.ts";
import { openAgentLink } from "../live/wire/link.ts";
import { NAME, ASKS, PROTOCOL } from "../live/wire/messages.ts";
import type { Io } from "./io.ts";

export interface SharedAgentsFlags {
  readonly live: string;
  readonly tokenFile?: string;
  /** JSON: [{"machine":"node000","folder":"…"}, …] */
  readonly agentsOf: string;
}

const MIB = 2 ** 20;
/** For all of them together, as one agent takes by itself. */
const BUFFER_BYTES = 64 * MIB;
const MEMORY_BYTES = 512 * MIB;
/** Of a machine, however many there are: less does not hold the rings of eight ranks. */
const LEAST_MEMORY_BYTES = 48 * MIB;
const KEEP_NS = 600e9;

export async function runSharedAgents(
  io: Io,
  flags: SharedAgentsFlags,
  version: string,
): Promise<number> {
  const machines = machinesOf(flags.agentsOf);
  const token = flags.tokenFile === undefined ? null : readFileSync(flags.tokenFile, "utf8").trim();
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // One per machine.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const tell = (name: string, line: string): void =>
    void io.out.write(`${JSON.stringify({ event: "trouble", line: `${name}: ${line}` })}\n`);
  const storage = new SlowStorage();
  await Promise.all(
    machines.map(({ machine, folder }) => {
      const node = ringNode({
        folders: () => [folder],
        logs: [],
        job: null,
        machineName: machine,
        nics: SIMULATED_NICS,
        keepNs: KEEP_NS,
        memoryBytes: Math.max(LEAST_MEMORY_BYTES, MEMORY_BYTES / machines.length),
        machine: thisMachine(),
        storage,
        onTrouble: (line) => tell(machine, line),
      });
      const boot = randomUUID().replaceAll("-", "");
      return runAgent(node, {
        openLink: openAgentLink,
        link: {
          url: flags.live.replace(/^http(s?):\/\//, "ws$1://"),
          token,
          ca: null,
          bufferBytes: BUFFER_BYTES / machines.length,
          hello: { protocol: PROTOCOL, agent: machine, machine, boot, version, asks: ASKS },
        },
        onSay: (what) => {
          if (what.event === "trouble") tell(machine, what.line);
        },
        stop: stop.signal,
      });
    }),
  );
  return 0;
}

function machinesOf(json: string): { machine: string; folder: string }[] {
  const wrong = new UserError(
    "--agents-of is internal to faultline simulate --live",
    "use --agents N",
    2,
  );
  const value = jsonOf(json);
  if (!Array.isArray(value)) throw wrong;
  return value.map((one: { machine?: unknown; folder?: unknown } | null) => {
    const { machine, folder } = one ?? {};
    if (typeof machine !== "string" || typeof folder !== "string" || !NAME.test(machine))
      throw wrong;
    return { machine, folder };
  });
}
