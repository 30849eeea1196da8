/**
 * What agents and the service say to each other, whatever carries it: a WebSocket to the service's own port, or NATS.
 * Iteration times, and how each half second passed, flow all the time and are small; operators stay on their machines until
 * somebody asks for some of them (Holmes §5.2). Every message is a frame (codec.ts): a JSON head, and columns of numbers behind it.
 */
import type { Rank } from "../../model/ids.ts";
import type { ShareColumns } from "../../model/rank-shares.ts";
import type { WorkSummary } from "../../model/work-summary.ts";

export const PROTOCOL = 1;

/** Names of agents, jobs and runs: safe in a path, a subject of NATS, a log line and a terminal. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** Most of anything that an agent may claim: beyond is nonsense or malice, and is refused. */
export const LIMITS = {
  ranksPerAgent: 4096,
  worldSize: 1 << 18,
  groupsPerRank: 1024,
  pointsPerFrame: 65_536,
  /** Slots of ranks, or of wires, in one report of shares; and wires. */
  sharesPerFrame: 65_536,
  wiresPerFrame: 1024,
  /** Bytes of one report, and of all that one answer holds. */
  reportBytes: 4 << 20,
  replyBytes: 64 << 20,
  textLength: 4096,
} as const;

/** Who an agent is; the first it says. */
export interface AgentHello {
  readonly protocol: number;
  /** One agent a machine: the machine's name, made to fit NAME. */
  readonly agent: string;
  readonly machine: string;
  /** New at every start: sequence numbers of reports count within it. */
  readonly boot: string;
  readonly version: string;
  /** What it can be asked; absent in agents that are older than this field. */
  readonly asks?: readonly string[];
}

/** A process group as one member knows it. */
export interface GroupReport {
  /** The same on all members. */
  readonly key: string;
  readonly name: string;
  readonly desc: string;
  readonly groupRank: number;
  readonly size: number;
  /** Global ranks in group order, where the member knows them; else whoever names the same key is a member. */
  readonly ranks: readonly Rank[] | null;
}

export interface RankReport {
  readonly rank: Rank;
  readonly gpu: number | null;
  readonly pid: number | null;
  readonly nic: string | null;
  readonly leaf: string | null;
  readonly stage: number | null;
  /** Index of a group in this list is what `OperatorsReply.group` means. */
  readonly groups: readonly GroupReport[];
}

/** A job that has ranks on this machine: said at its start, when ranks come or groups change, and after a reconnect. */
export interface JobReport {
  readonly kind: "job";
  readonly job: string;
  /** One start of the job; another start is another run. */
  readonly run: string;
  readonly startedMs: number;
  /** 0 where unknown. */
  readonly worldSize: number;
  readonly ranks: readonly RankReport[];
}

/**
 * Iterations that ended on ranks of one job, a row each. Times inside communication are sums over the iteration's
 * operators: time outside them is the rank's own, and only a slow rank's grows.
 */
export interface PointsReport {
  readonly kind: "points";
  readonly job: string;
  readonly run: string;
  readonly rank: Uint32Array;
  /** Number of the iteration, as a log would print it. */
  readonly iteration: Float64Array;
  /** When it ended, milliseconds since 1970 by the machine's clock. */
  readonly endMs: Float64Array;
  readonly durationMs: Float32Array;
  /** Inside collectives, sends, receives; NaN where operators are not known or carry no durations. */
  readonly collectiveMs: Float32Array;
  readonly sendMs: Float32Array;
  readonly recvMs: Float32Array;
  /** From the CPU's first call of an operator in the iteration to its last; NaN where unknown. */
  readonly issueMs: Float32Array;
}

/**
 * How the time of this machine's ranks passed, in some half seconds (SLOT_MS): for the judge of slowness. Only of ranks whose
 * operators are timed; a service older than this passes it over.
 */
export interface SharesReport extends ShareColumns {
  readonly kind: "shares";
  readonly job: string;
  readonly run: string;
  /** In the order in which they stand in each slot. */
  readonly ranks: readonly Rank[];
  /** Milliseconds since 1970 of the first slot, in slots. */
  readonly firstSlot: number;
  /** Keys of groups of two and more (GroupReport), in the order in which they stand in each slot. */
  readonly wires: readonly string[];
}

/** What of a job stands how on this machine, every few seconds, also while nothing happens. */
export interface BeatReport {
  readonly kind: "beat";
  readonly nowMs: number;
  readonly jobs: readonly {
    readonly job: string;
    readonly run: string;
    readonly alive: number;
    readonly stopped: readonly Rank[];
    readonly gone: readonly Rank[];
    /** How long nothing went on though something should (agent/run-health.ts, silence); 0 while it does. */
    readonly silentMs: number;
    readonly openOperators: number;
    readonly lastIteration: number;
    /**
     * What iterations of the last interval were spent on; repeated until the next is there, so that a beat that is lost
     * costs nothing. Older agents do not say it, older services do not read it.
     */
    readonly work?: WorkSummary;
    /** What ranks here do other than training: a phase that the job named, or storage I/O; absent for nothing. */
    readonly pause?: string;
  }[];
  /** What did not reach the service because the buffer was full, since the start of the agent. */
  readonly dropped: { readonly reports: number; readonly points: number };
}

/** Something happened: sent once. */
export interface EventReport {
  readonly kind: "event";
  readonly job: string;
  readonly run: string;
  readonly what: "gone" | "stopped" | "continued" | "ended" | "log-failure" | "trouble";
  readonly ranks: readonly Rank[];
  readonly atMs: number;
  /** One line. */
  readonly says: string;
}

export type Report = JobReport | PointsReport | SharesReport | BeatReport | EventReport;

/** Asked of the agent that has the rank. */
export type AgentRequest =
  | OperatorsRequest
  | WireRequest
  | EvidenceRequest
  | PrepareTestsRequest
  | ReadTestsRequest
  | ValidateRequest
  | ProfileRequest
  | UnknownRequest;

/** What an agent of this version answers. A service asks an agent only for what the agent's hello lists. */
export const ASKS = [
  "operators",
  "wire",
  "evidence",
  "prepare-tests",
  "validate",
  "read-tests",
  "profile",
] as const satisfies readonly AgentRequest["ask"][];

/** Of a later service: refused by name. */
export interface UnknownRequest {
  readonly ask: "unknown";
  readonly job: string;
  readonly run: string;
  readonly word: string;
}

/** All operators of one rank in a stretch of iterations. */
export interface OperatorsRequest {
  readonly ask: "operators";
  readonly job: string;
  readonly run: string;
  readonly rank: Rank;
  readonly fromIteration: number;
  readonly toIteration: number;
}
export interface OperatorsReply {
  readonly kind: "operators";
  /** One entry an iteration held: its number, first operator, the one behind its last, when it began. */
  readonly iteration: Float64Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly startMs: Float64Array;
  readonly durationMs: Float64Array;
  /** One entry an operator, as OperatorTable has them; nanoseconds since `epochMs`. */
  readonly epochMs: number;
  /** COLLECTIVE 0, SENDING 1, RECEIVING 2, in the order of issue. */
  readonly op: Uint8Array;
  /** Index into the rank's groups; -1 where unknown. */
  readonly group: Int32Array;
  /**
   * Global rank of the other side of a transfer; -1 for collectives. Where the agent knows only its place in the group
   * (who else is in it, only all agents together know): -2 - place.
   */
  readonly peer: Int32Array;
  readonly seq: Int32Array;
  readonly bytes: Float64Array;
  readonly createdNs: Float64Array;
  readonly startedNs: Float64Array;
  readonly completedNs: Float64Array;
}

/** How long sends over the network were on the wire (probe/RING.md), of these ranks of one agent. */
export interface WireRequest {
  readonly ask: "wire";
  readonly job: string;
  readonly run: string;
  readonly ranks: readonly Rank[];
  readonly iterations: readonly number[];
}
export interface WireReply {
  readonly kind: "wire";
  /** One entry a rank, group and peer, as in OperatorsReply; to whom collectives send is the next member of their ring. */
  readonly rank: Int32Array;
  readonly group: Int32Array;
  readonly peer: Int32Array;
  /** Entry-major: milliseconds in each of the iterations asked for; NaN where it is not known. */
  readonly ms: Float32Array;
}

/** Files that `faultline diagnose` reads: rings cut to their last records, stacks, ends of logs. */
export interface EvidenceRequest {
  readonly ask: "evidence";
  readonly job: string;
  readonly run: string;
  /** null: all of the agent's. */
  readonly ranks: readonly Rank[] | null;
  /** Last records of each ring. */
  readonly records: number;
  readonly stacks: boolean;
  /** Last bytes of each log; 0 for none. */
  readonly logBytes: number;
}
export interface EvidenceReply {
  readonly kind: "evidence";
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** What could not be had, a line each. */
  readonly troubles: readonly string[];
}

/**
 * Whether the ranks of this machine can take part in tests: a member that does not come keeps the others waiting, so all
 * agents confirm before any rank is asked. The answer is evidence without files.
 */
export interface PrepareTestsRequest {
  readonly ask: "prepare-tests";
  readonly job: string;
  readonly run: string;
  readonly group: readonly Rank[];
}

/**
 * Tests of GPUs and links by the ranks themselves, at the end of one common iteration (Greyhound §4.3). The job waits for
 * them. The answer is evidence: a report of each rank.
 */
export interface ValidateRequest {
  readonly ask: "validate";
  readonly job: string;
  readonly run: string;
  /** All that take part, in the order of their group; the agent asks those that it has. */
  readonly group: readonly Rank[];
  readonly atIteration: number;
  /** Tested again after each of so many iterations: what is slow now and then is not slow in every one. */
  readonly rounds: number;
  readonly gemm: boolean;
  readonly ring: boolean;
  readonly tree: boolean;
  /** Where each machine has several of them: so many, next to each other. Tests then lead from rail to rail, too. */
  readonly stride: number;
  readonly repeats: number;
  /** MiB of a transfer. */
  readonly mb: number;
  /** No rank tests for longer, and the agent waits no longer for the iteration. */
  readonly limitMs: number;
  readonly waitMs: number;
}

/**
 * What tests of several rounds have shown so far. The answer is evidence, as soon as all ranks of this machine have done so
 * many: a report of each; without files where they did not in time.
 */
export interface ReadTestsRequest {
  readonly ask: "read-tests";
  readonly job: string;
  readonly run: string;
  readonly group: readonly Rank[];
  /** As the tests were asked for. */
  readonly atIteration: number;
  readonly rounds: number;
  readonly waitMs: number;
}

/** Steps of the profiler of some ranks. The answer is evidence: a trace of each. */
export interface ProfileRequest {
  readonly ask: "profile";
  readonly job: string;
  readonly run: string;
  readonly ranks: readonly Rank[];
  readonly steps: number;
  readonly waitMs: number;
}

/** The agent cannot answer: it says why. */
export interface RefusedReply {
  readonly kind: "refused";
  readonly why: string;
}

export type AgentReply = OperatorsReply | WireReply | EvidenceReply | RefusedReply;
