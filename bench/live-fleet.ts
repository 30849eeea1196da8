/**
 * The fleet's side of bench/live.ts: one process with an agent for every machine of a simulated job, each with its own
 * connection to the service, and a port that takes faults. Prints one line of JSON when all agents have been started;
 * ends with its stdin.
 */
import { SimulatedFleet } from "../eval/live/fleet/simulated-fleet.ts";
import { simulatedNode } from "../eval/live/fleet/simulated-node.ts";
import { startControl } from "../src/live/fleet/control-server.ts";
import { startAgent, type RunningAgent } from "../src/live/agent/run-agent.ts";
import { openAgentLink } from "../src/live/wire/link.ts";
import { PROTOCOL } from "../src/live/wire/messages.ts";
import { fleetSpec, type FleetShape } from "./live-shape.ts";

const { url, token, shape, everyMs } = JSON.parse(process.argv[2]!) as {
  url: string;
  token: string | null;
  shape: FleetShape;
  everyMs: number;
};
/** Agents of a cluster are not started in the same millisecond. */
const START_WITHIN_MS = 5000;
const BUFFER_BYTES = 1 << 20;

const fleet = new SimulatedFleet({
  spec: fleetSpec(shape),
  job: "load",
  run: `run-${process.pid}`,
  everyMs,
  startMs: Date.now(),
});
let connected = 0;
const troubles = new Map<string, number>();
const agents: RunningAgent[] = [];
for (let machine = 0; machine < fleet.machines; machine++) {
  const name = fleet.machineName(machine);
  const node = simulatedNode({ fleet, machine, now: Date.now });
  const hello = { protocol: PROTOCOL, agent: name, machine: name, boot: `b${process.pid}` };
  agents.push(
    startAgent(node, {
      openLink: openAgentLink,
      link: { url, token, ca: null, bufferBytes: BUFFER_BYTES, hello: { ...hello, version: "0" } },
      onSay: (what) => {
        if (what.event === "connected") connected++;
        if (what.event === "trouble") troubles.set(what.line, (troubles.get(what.line) ?? 0) + 1);
      },
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, START_WITHIN_MS / fleet.machines));
}

const { board } = fleet.played;
const control = await startControl(0, {
  add: (text) => board.add(text),
  remove: (id) => board.remove(id),
  clear: () => board.clear(),
  state: () => ({
    iteration: fleet.held.last,
    everyMs: fleet.played.everyMs,
    lateMs: fleet.played.lateMs,
    isConnected: agents.filter(({ link }) => link.isConnected).length,
    connected,
    dropped: agents.reduce((sum, { link }) => sum + link.dropped.points, 0),
    /** Operators of all ranks in one iteration. */
    operators:
      fleet.stages.reduce((sum, { count }) => sum + count, 0) * fleet.played.simulation.lanes.lanes,
    cpuSeconds: (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    troubles: [...troubles].slice(0, 5),
    faults: board.faults,
  }),
});
process.stdout.write(`${JSON.stringify({ control: control.url, machines: fleet.machines })}\n`);
process.stdin.on("end", () => process.exit()).resume();
