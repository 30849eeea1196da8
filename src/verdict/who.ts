/** Who a suspect is and where to find it: rank, GPU index, machine, NIC, switch, as far as the inputs say. */
import { rankWords } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { SuspectType } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { isPodName } from "../model/machine-names.ts";
import type { Suspect } from "../model/verdict.ts";

/** Causes whose culprit is the GPU, not the process that uses it. */
const OF_GPU: ReadonlySet<Cause> = new Set(["gpu-slow", "gpu-hang", "gpu-error"]);

/** The machine that all these ranks share, null where they do not or nothing tells. */
export function machineOf(job: Job, ranks: readonly Rank[]): string | null {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  return machines.size === 1 ? [...machines][0]! : null;
}

/** Devices between ranks. */
export const BETWEEN: ReadonlySet<SuspectType> = new Set(["link", "nic", "switch"]);

/** Whether the suspect is something between ranks, or what it causes shows there. */
export function isOfNetwork({ type, cause }: Pick<Suspect, "type" | "cause">): boolean {
  return BETWEEN.has(type) || cause === "network-slow" || cause === "network-hang";
}

/** Those of a network device that lies between several: each may show it in its metrics. */
export function machinesBetween(
  job: Job,
  { type, ranks }: Pick<Suspect, "type" | "ranks">,
): Pick<Suspect, "machines"> {
  if (!BETWEEN.has(type)) return {};
  const machines = new Set(ranks.flatMap((rank) => job.ranks.get(rank)?.machine ?? []));
  return machines.size > 1 ? { machines: [...machines] } : {};
}

/** Whether the sentence is about the GPU of one rank. */
export function isGpu({ type, cause, ranks }: Suspect): boolean {
  return ranks.length === 1 && (type === "gpu" || type === "rank") && OF_GPU.has(cause);
}

/**
 * "GPU 5 of node002 (rank 13)", "rank 3 on node003", "NIC mlx5_3 of node000 (rank 3)", "the link between rank 0 on node000
 * and rank 1 on node001", "machine node003 (ranks 24–31)". `gpu`: the index where monitoring knows it and the job does not.
 */
export function whoWords(job: Job, suspect: Suspect, gpu: number | null = null): string {
  const { type, ranks, name, machine, link } = suspect;
  if (type === "link") {
    if (ranks.length === 2)
      return `the link between ${rankOn(job, ranks[0]!)} and ${rankOn(job, ranks[1]!)}`;
    if (link !== null)
      return `the ${ranks.length > 2 ? "network" : "link"} between ${link[0]} and ${link[1]}`;
  }
  if (type === "nic") return nicWords(job, suspect);
  // A rack or a rail stands for its switch where nobody knows the switch's name.
  if (type === "switch" && name !== null)
    return `${/^(?:rack|rail) /.test(name) ? `the switch of ${name}` : `switch ${name}`}${ofRanks(ranks)}`;
  if (isGpu(suspect)) {
    const index = job.ranks.get(ranks[0]!)?.gpu ?? gpu;
    if (index !== null && machine !== null)
      return `GPU ${index} of ${machine} (${rankWords(ranks)})`;
    return `the GPU of ${rankOn(job, ranks[0]!)}`;
  }
  if (type === "machine") {
    const node = name ?? machine;
    if (node !== null && gpu !== null && OF_GPU.has(suspect.cause))
      return `GPU ${gpu} of ${node}${ofRanks(ranks)}`;
    if (node !== null && gpu === null && suspect.cause === "gpu-error")
      return `a GPU of ${node}${ofRanks(ranks)}`;
    if (node !== null)
      return `${isPodName(node) ? `the machine of pod ${node}` : `machine ${node}`}${ofRanks(ranks)}`;
  }
  if (ranks.length === 0) return OF_GPU.has(suspect.cause) ? "a GPU" : "a process";
  return `${rankWords(ranks)}${machine === null ? "" : ` on ${machine}`}`;
}

/**
 * What else is known of the one rank that is meant, a word or two each. No device beside the one at fault: a NIC next to a
 * slow GPU reads as if it were the place of the trouble.
 */
export function whereWords(job: Job, suspect: Suspect): string[] {
  const { ranks, type, machine } = suspect;
  const info = ranks.length === 1 ? job.ranks.get(ranks[0]!) : undefined;
  if (!info) return [];
  const { gpu, pid, nic, leaf, stage } = info;
  const isNetwork = isOfNetwork(suspect);
  return [
    // Commands are for some machine: that nobody can say for which must not be a riddle.
    machine === null && info.machine === null ? "the inputs do not name its machine" : "",
    gpu === null || isGpu(suspect) || isNetwork ? "" : `GPU ${gpu}`,
    pid === null ? "" : `pid ${pid}`,
    nic === null || type === "nic" || !isNetwork ? "" : `NIC ${deviceOf(nic)}`,
    leaf === null || !isNetwork ? "" : `switch ${leaf}`,
    stage === null || stage === undefined ? "" : `pipeline stage ${stage}`,
  ].filter((part) => part !== "");
}

/** "node000/mlx5_3" → "mlx5_3". */
export function deviceOf(nic: string): string {
  return nic.slice(nic.lastIndexOf("/") + 1);
}

function nicWords(job: Job, { ranks, name, machine }: Suspect): string {
  const known = name ?? (ranks.length === 1 ? (job.ranks.get(ranks[0]!)?.nic ?? null) : null);
  const node = known?.includes("/") ? known.slice(0, known.lastIndexOf("/")) : machine;
  if (known !== null)
    return `NIC ${deviceOf(known)}${node === null ? "" : ` of ${node}`}${ofRanks(ranks)}`;
  if (ranks.length === 1)
    return `the NIC of rank ${ranks[0]}${machine === null ? "" : ` on ${machine}`}`;
  if (machine !== null) return `the network of ${machine}${ofRanks(ranks)}`;
  return `the network between ${rankWords(ranks)}`;
}

function rankOn(job: Job, rank: Rank): string {
  const machine = job.ranks.get(rank)?.machine ?? null;
  return machine === null ? `rank ${rank}` : `rank ${rank} on ${machine}`;
}

function ofRanks(ranks: readonly Rank[]): string {
  return ranks.length === 0 ? "" : ` (${rankWords(ranks)})`;
}
