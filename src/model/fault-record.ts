/** One entry of the fault library: what a line means, who it is about and what to do. Data, not code. */
import type { Cause } from "./cause.ts";

/** L4 §3.3's causes. */
export const CATEGORIES = [
  "hardware.network",
  "hardware.accelerator",
  "hardware.node",
  "hardware.storage",
  "user.config",
  "user.program",
  "user.software",
  "user.misoperation",
  "framework",
  "platform",
] as const;
export type Category = (typeof CATEGORIES)[number];

/**
 * root: says what broke. cascade: says that somebody else is late or gone, or that a process dies of what came before.
 * confirmation: means little alone and much beside a root. benign: seen in healthy jobs. advice: text that goes with
 * an error and is none.
 */
export const ROLES = ["root", "cascade", "confirmation", "benign", "advice"] as const;
export type CausalRole = (typeof ROLES)[number];

/**
 * What a line says of the process that writes it, where that does not follow from the role. Its own failure: end
 * (somebody outside ends the job), died (of what, the line does not say), failed (says so also outside a traceback).
 * Somebody else's: told (it is told to end), gone (another process is), late (another process is). stall: somebody waits,
 * says the kernel, and nothing has ended of it.
 */
export const TELLS = ["end", "died", "failed", "told", "gone", "late", "stall"] as const;
export type Tells = (typeof TELLS)[number];

export const LAYERS = [
  "kernel",
  "driver",
  "fabric",
  "network",
  "storage",
  "nccl",
  "cuda",
  "torch",
  "framework",
  "python",
  "launcher",
  "scheduler",
  "container",
  "amd",
  "ascend",
] as const;
export type Layer = (typeof LAYERS)[number];

export const OWNERS = ["user", "framework", "network", "hardware", "storage", "platform"] as const;
export type FaultOwner = (typeof OWNERS)[number];

export const SEVERITIES = ["fatal", "error", "warning", "info"] as const;
export type Severity = (typeof SEVERITIES)[number];

export interface FaultMatcher {
  /** Literals that must all stand in the line, whatever their case; the first has at least four characters. */
  readonly all: readonly string[];
  /** One of these must stand in it, too, where given. */
  readonly any?: readonly string[];
  /** None of these may stand in it. */
  readonly not?: readonly string[];
  /** Asked last, without regard to case. Named groups are captures: gpu, pci, host, peer, rank, seq, op, path, code. */
  readonly regex?: string;
}

export interface FaultRecord {
  /** Stable: "nvidia.xid.79", "nccl.ib.port-error". */
  readonly id: string;
  readonly title: string;
  readonly layer: Layer;
  readonly match: FaultMatcher;
  readonly meaning: string;
  /** "GPU", "NVLink", "InfiniBand port", "host memory", "checkpoint storage", … */
  readonly component: string;
  /** null for benign lines and advice. */
  readonly category: Category | null;
  /** What a verdict calls it; absent where that follows from the category. */
  readonly cause?: Cause;
  readonly role: CausalRole;
  readonly tells?: Tells;
  readonly severity: Severity;
  readonly owner: FaultOwner;
  readonly action: string;
  /** What else looks like this, or when this misleads. */
  readonly falseFriends: readonly string[];
  /** How surely the category follows from this line alone, 0 to 1. */
  readonly certainty: number;
  /**
   * Id of the record that says that it is over, and that all who waited go on as if nothing had been; captures that
   * both have name the same thing. A port that comes back is none: connections that broke stay broken.
   */
  readonly endedBy?: string;
  /** Public knowledge that it rests on, in a few words. */
  readonly source: string;
  /** A line that it must match, made up by us. */
  readonly example: string;
}

/** Of each category what verdicts call it where a record does not say better. */
export const CAUSE_OF: Readonly<Record<Category, Cause>> = {
  "hardware.network": "network-hang",
  "hardware.accelerator": "gpu-error",
  "hardware.node": "process-gone",
  "hardware.storage": "storage",
  "user.config": "user-config",
  "user.program": "user-program",
  "user.software": "software-version",
  "user.misoperation": "user-config",
  // A bug in a library ends the program like one of its own.
  framework: "user-program",
  platform: "platform",
};

export function causeOfRecord({ cause, category }: FaultRecord): Cause {
  return cause ?? (category === null ? "unknown" : CAUSE_OF[category]);
}
