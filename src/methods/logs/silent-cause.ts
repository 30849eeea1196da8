/** A job that stops without a word has a cause, too; what is known of it is little, and said so. */
import type { ContextCause } from "./cause.ts";
import type { LogNodes } from "./nodes.ts";
import type { Silence } from "./silence.ts";

const STALLED_WEIGHT = 0.3;
const STOPPED_WEIGHT = 0.4;

export function silentCauses(
  silences: readonly Silence[],
  { names }: LogNodes,
  /** Then it is no hang without a word. */
  hasErrors: boolean,
): ContextCause[] {
  const causes: ContextCause[] = [];
  const stopped = silences.filter((one) => one.kind === "stopped");
  const common = { at: null, places: [], ranks: [], captures: {} };
  if (stopped.length > 0 && stopped.length <= 3) {
    const nodes = stopped.map(({ node }) => names[node]!);
    const who = nodes.join(", ");
    causes.push({
      weight: STOPPED_WEIGHT * Math.max(...stopped.map(({ score }) => score)),
      cause: {
        ...common,
        nodes,
        category: "hardware.node",
        cause: "process-gone",
        signature: "silence.node-stopped",
        title: `${who} fell silent before the others`,
        role: "root",
        owner: "hardware",
        meaning:
          "A node that dies cannot write why: its last line comes before everybody else's, and nothing in its log explains it.",
        action: `Check whether ${who} is up (ping, IPMI power state, the scheduler's node state), then its console log and BMC events at that time.`,
        falseFriends: [
          "A full disk or a lost connection to the log collector silences a healthy node, too.",
        ],
      },
    });
  }
  const stalled = silences.find((one) => one.kind === "stalled");
  if (stalled && !hasErrors) {
    const minutes = Math.round(stalled.silentMs / 60_000);
    causes.push({
      weight: STALLED_WEIGHT,
      cause: {
        ...common,
        nodes: [],
        category: "framework",
        cause: "unknown",
        signature: "silence.stalled",
        title: `no iteration after ${stalled.lastIteration} for ${minutes} min, and no error`,
        role: "root",
        owner: "framework",
        meaning: `${usualWords(stalled.usualMs)}After iteration ${stalled.lastIteration} none was reported, while something else (a scheduler, a monitor) kept writing. A hang without a timeout: deadlocked data loader, evaluation or checkpoint code, or storage that does not answer.`,
        action:
          "Take the stacks while it hangs (py-spy dump --pid PID on every rank of one node) and the flight recorder's dumps, and give them to faultline diagnose; the logs alone do not show more.",
        falseFriends: [
          "An evaluation or a checkpoint of unusual length looks the same until it ends.",
        ],
      },
    });
  }
  return causes;
}

function usualWords(usualMs: number): string {
  return Number.isNaN(usualMs) ? "" : `Iterations took ${(usualMs / 1000).toFixed(1)} s. `;
}
