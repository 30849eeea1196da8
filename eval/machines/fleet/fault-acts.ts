/** What a fault does to the machines: to its own where it shows, to the others by propagation. */
import { act, type Act, type GpuChange, type NodeChange } from "./acts.ts";
import { Draw } from "./draw.ts";
import { isSlowType, type FleetFault } from "./faults.ts";
import type { Halt, Slowdown } from "./job-clock.ts";

const XID: Readonly<Record<string, number>> = {
  ecc: 48,
  nvlink: 74,
  "card-drop": 79,
  "gpu-execution": 62,
};
const OTHER_XID = 31;

export function faultActs(fault: FleetFault, machines: number, seed: number): Act[] {
  const { onsetS: fromS, rampS, gpus } = fault;
  const untilS = fault.untilS ?? Infinity;
  const acts: Act[] = [];
  for (const machine of fault.machines) {
    const at = { machine, fromS, untilS, rampS };
    if (fault.vanishes === "machine") {
      // Nobody puts it back by ending the job.
      acts.push(act({ ...at, untilS: Infinity, isDead: true }));
      continue;
    }
    if (isSlowType(fault.type)) {
      acts.push(
        act({ ...at, gpus: fault.type === "cpu-overload" ? null : gpus, ...slowChange(fault) }),
      );
      continue;
    }
    const node = nodeChange(fault);
    if (Object.keys(node).length > 0) acts.push(act({ ...at, node }));
    const gpu = gpuChange(fault);
    if (Object.keys(gpu).length > 0) acts.push(act({ ...at, gpus, gpu }));
    if (fault.vanishes === "gpu")
      acts.push(act({ ...at, untilS: Infinity, gpus, gpu: { isGone: true } }));
    const state = stateChange(fault);
    if (state !== null)
      acts.push(act({ ...at, rampS: 0, untilS: Infinity, gpus: gpus ?? [0], gpu: state }));
  }
  return [...acts, ...spreadOfCongestion(fault, machines, seed)];
}

/** Of what slows the job: its own counters tell, the work that it does is everybody's. */
function slowChange({ type, pace }: FleetFault): { gpu?: GpuChange; node?: NodeChange } {
  const factor = 1 / pace;
  if (type === "slow-clock") return { gpu: { slowClock: factor } };
  if (type === "throttle") return { gpu: { throttle: factor } };
  if (type === "pcie-width") return { gpu: { linkWidth: 8 } };
  // A stray process takes a third of the cores or more; the job's own come late with their kernels.
  return { node: { contention: Math.min(0.7, 1.2 * (factor - 1) + 0.1) }, gpu: { idle: 0.05 } };
}

function nodeChange({ shown, strength, type }: FleetFault): NodeChange {
  return {
    ...(shown.includes("cpu") ? { cpu: strength.cpu } : {}),
    ...(shown.includes("cpu") && type === "hdfs" ? { iowait: 0.05 } : {}),
    ...(shown.includes("memory") ? { memory: strength.memory } : {}),
    ...(shown.includes("throughput") ? { tcp: strength.tcp } : {}),
    ...(shown.includes("disk") ? { diskBytes: strength.diskBytes } : {}),
  };
}

function gpuChange({ shown, strength, type, vanishes }: FleetFault): GpuChange {
  return {
    ...(shown.includes("gpu") ? { idle: strength.idle } : {}),
    // A process that ended gave its memory back; one that hangs did not.
    ...(shown.includes("gpu") &&
    strength.idle === 1 &&
    vanishes === null &&
    type !== "gpu-execution"
      ? { memory: "freed" as const }
      : {}),
    ...(shown.includes("throughput")
      ? { traffic: type === "nic-drop" ? 0 : strength.traffic, congestion: strength.congestion }
      : {}),
    ...(shown.includes("pfc") ? { pfc: strength.pfc } : {}),
  };
}

function stateChange({ states, type }: FleetFault): GpuChange | null {
  if (states.length === 0) return null;
  return {
    ...(states.includes("xid-errors") ? { xid: XID[type] ?? OTHER_XID } : {}),
    ...(states.includes("pcie-link-generation") ? { linkGen: 1 } : {}),
    ...(states.includes("infiniband-port-state") ? { isLinkDown: true } : {}),
  };
}

/**
 * §2.2 and Figure 3: the culprit's buffer fills first and it pauses its neighbours; these pause theirs some seconds to a
 * minute later, less strongly, and marks of congestion rise here and there.
 */
function spreadOfCongestion(fault: FleetFault, machines: number, seed: number): Act[] {
  if (!fault.shown.includes("pfc") || fault.reaction !== "slow") return [];
  const all = new Draw(seed, "congestion");
  const share = all.within(0, 0.2, 0.6);
  const acts: Act[] = [];
  for (let machine = 0; machine < machines; machine++) {
    const draw = new Draw(seed, "congested", machine);
    if (fault.machines.includes(machine) || !draw.chance(0, share)) continue;
    acts.push(
      act({
        machine,
        fromS: fault.onsetS + draw.within(1, 3, 60),
        untilS: fault.untilS ?? Infinity,
        rampS: draw.within(2, 5, 60),
        gpu: {
          pfc: fault.strength.pfc ** draw.within(3, 0.1, 0.45),
          congestion: draw.magnitude(4, 1.2, 6),
        },
      }),
    );
  }
  return acts;
}

/** How the job takes it. */
export function reactionOf(fault: FleetFault): { halt: Halt | null; slowdown: Slowdown | null } {
  const { reaction, reactionS, pace, rampS, untilS } = fault;
  const endsS = untilS ?? Infinity;
  if (reaction === "wait") return { halt: { waitsS: reactionS, endsS }, slowdown: null };
  const halt = untilS === null ? null : { waitsS: endsS, endsS };
  if (reaction === "none") return { halt, slowdown: null };
  return { halt, slowdown: { fromS: reactionS, untilS: endsS, pace, rampS } };
}
