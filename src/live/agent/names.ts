/** What jobs, runs and machines are called towards a service: the same on every machine of a job, without anybody asking. */
import { createHash } from "node:crypto";
import { NAME } from "../wire/messages.ts";

const MOST = 64;
const HASH = 12;
/** What probes write where nobody named the job; torchrun's own id is "none" unless it is given one. */
const NAMELESS = new Set(["", "job", "none"]);
const LOOPBACK = /^(?:localhost|127\.|\[?::1)/;

/** Any text as a name (wire/messages.ts, NAME). */
export function fitName(text: string, otherwise: string): string {
  const fit = text
    .replace(/[^A-Za-z0-9_-]/g, "_")
    .replace(/^[_-]+/, "")
    .slice(0, MOST);
  return NAME.test(fit) ? fit : otherwise;
}

/**
 * Jobs that nobody named would all be one: they are told apart by where their ranks meet, and where that is the machine
 * itself, by the machine.
 */
export function jobName(job: string, address: string, machine: string): string {
  if (!NAMELESS.has(job)) return fitName(job, "job");
  const isLocal = address === "" || LOOPBACK.test(address);
  return `job-${digest([address, isLocal ? machine : ""])}`;
}

export interface RunTraits {
  readonly job: string;
  readonly address: string;
  readonly worldSize: number;
  /** How many of its ranks are on this machine. */
  readonly ranksHere: number;
  /** Ids of the first communicators of all ranks, one for each process that has made one. */
  readonly worldIds: readonly string[];
  /** The run's first process, the same as long as it is watched. */
  readonly firstProcess: string;
  readonly machine: string;
  /** Of one of its processes; null where it may not be read. */
  readonly environment: ReadonlyMap<string, string> | null;
  /** Whether there will be no better name: an iteration has ended, a process is gone, or nothing writes communicators. */
  readonly isLate: boolean;
}

/** Words of launchers that change from start to start and are the same on all machines. */
const START_WORDS = [
  "SLURM_JOB_ID",
  "SLURM_STEP_ID",
  "SLURM_RESTART_COUNT",
  "TORCHELASTIC_RUN_ID",
  "TORCHELASTIC_RESTART_COUNT",
  "MASTER_ADDR",
  "MASTER_PORT",
];

/** All that is read of a process' environment. */
export const RUN_WORDS: ReadonlySet<string> = new Set(["FAULTLINE_RUN", ...START_WORDS]);

/**
 * One start of a job. All machines must say the same without speaking to each other: the id of the communicator of all
 * ranks is made anew at each start and is the same on all members. Null while it may still come.
 */
export function runName(traits: RunTraits): string | null {
  const told = traits.environment?.get("FAULTLINE_RUN");
  if (told) return fitName(told, "run");
  const [world] = traits.worldIds;
  if (world !== undefined) return `c-${world}`;
  const isWhole = traits.worldSize > 0 && traits.ranksHere >= traits.worldSize;
  if (!traits.isLate) return null;
  if (isWhole) return `p-${digest([traits.machine, traits.firstProcess])}`;
  const words = START_WORDS.map((word) => traits.environment?.get(word) ?? "");
  return `s-${digest([traits.job, traits.address, ...words])}`;
}

export function digest(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, HASH);
}
