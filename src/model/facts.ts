/**
 * What a finding is about, one type per kind of fact: the figures behind its sentence. Methods state them; verdict,
 * mitigation and pictures read them. `fact` says which it is. In JSON they are a finding's `data`.
 */
import type { Category } from "./fault-record.ts";
import type { Rank } from "./ids.ts";
import type { LogReport } from "./log-report.ts";
import type { FaultyMachine, MachineReport } from "./machine-report.ts";
import type { CallPurpose } from "./probe.ts";
import type { TraceMetric } from "./regression.ts";

export type Fact =
  | Remark
  | NothingPending
  | WaitingRanks
  | StoppedRank
  | WaitingCircle
  | StuckConnection
  | StuckCommunicators
  | ProcessState
  | StoppedProcesses
  | RasState
  | RasBehind
  | WatchdogTimeouts
  | PythonStacks
  | OpenCall
  | OwnError
  | EchoedErrors
  | EndedFromOutside
  | StoodStill
  | SilentEnd
  | ExitCodes
  | LogCauseFact
  | SlowDown
  | SlowEpisodes
  | EvenIterations
  | SlowRank
  | SlowDevice
  | EvenRanks
  | SlowBeforeStop
  | PythonTime
  | TestedSlow
  | TestedDifferent
  | TestedAlike
  | RegressedMetric
  | OddMachine
  | BrokenMonitoring
  | AlikeMachines
  | UnexplainedLines
  | SiteJudged;

export type FactKind = Fact["fact"];
export type FactOf<Kind extends FactKind> = Extract<Fact, { readonly fact: Kind }>;

/** A sentence without figures. */
export interface Remark {
  readonly fact: "remark";
}

/** People judged verdicts of this kind at this site: the confidence is corrected by that. */
export interface SiteJudged {
  readonly fact: "site-judged";
  readonly judged: number;
  readonly right: number;
  /** The confidence before. */
  readonly stated: number;
}

// Hangs.

/** No rank waits in an operator; null where that cannot be seen on all of them. */
export interface NothingPending {
  readonly fact: "nothing-pending";
  readonly pending: 0 | null;
  /** Operators are pending and the job goes on: no hang. `fresh`: nothing tells that it goes on, but none was pending for long. */
  readonly isMoving?: true | "fresh";
}

/** silent: no dump; not-enqueued: never issued the operator; behind: issued it, stuck earlier. */
export type Absence = "silent" | "not-enqueued" | "behind";

/** An operator that cannot finish. */
export interface StuckOperator {
  /** "all_reduce #241 of DATA_PARALLEL_1" */
  readonly what: string;
  readonly role: string;
  readonly group: string;
  readonly seq: number;
  readonly p2p: boolean;
  /** Ranks that are in it. */
  readonly arrived: readonly Rank[];
  /** Members that are not. */
  readonly absent: readonly { readonly rank: Rank; readonly why: Absence }[];
}

export interface WaitingRanks {
  readonly fact: "waiting-ranks";
  /** The first some hundred of them. */
  readonly ops: readonly StuckOperator[];
  readonly stuckOps: number;
  readonly since?: string | null;
}

/** Where the waiting ends: a rank that waits for no other, and which side of it stopped. */
export interface StoppedRank {
  readonly fact: "stopped-rank";
  readonly side:
    | "cpu"
    | "gpu"
    | "process"
    | "program"
    | "communication"
    | "gpu or communication"
    | "unknown";
  /** Whether operators were timed: without that a stuck GPU looks like a stuck network. */
  readonly timing?: boolean;
  /** Line of code of what is pending, and of the last completed operator. */
  readonly at?: string | null;
  readonly code?: string | null;
  readonly last?: string | null;
  readonly lastCode?: string | null;
  /** How many members left nothing. */
  readonly unknownMembers?: number;
}

/** Ranks that wait for each other in a circle. */
export interface WaitingCircle {
  readonly fact: "waiting-circle";
  readonly cycle: readonly Rank[];
}

/** Where inside a collective data stands still, by what the proxies of both sides know. */
export interface StuckConnection {
  readonly fact: "stuck-connection";
  readonly side: "gpu" | "communication";
  readonly communicator: string;
  readonly channels: readonly number[];
  readonly from: Rank | null;
  readonly to: Rank | null;
  readonly sentSteps: number | null;
  readonly receivedSteps: number | null;
  readonly idleMs: number;
}

export interface StuckCommunicators {
  readonly fact: "stuck-communicators";
  readonly communicators: readonly string[];
}

/** What the kernel says of a process. */
export interface ProcessState {
  readonly fact: "process-state";
  readonly state: string;
  readonly waitsIn: string;
  readonly pid: number;
}

export interface StoppedProcesses {
  readonly fact: "stopped-processes";
  readonly stopped: number;
}

export interface RasState {
  readonly fact: "ras-state";
  readonly state: string;
}

/** Collectives that a rank launched less than a peer. */
export interface RasBehind {
  readonly fact: "ras-behind";
  readonly behind: Readonly<Record<Rank, number>>;
}

export interface WatchdogTimeouts {
  readonly fact: "watchdog-timeouts";
  readonly reporting: readonly Rank[];
}

export interface PythonStacks {
  readonly fact: "python-stacks";
  /** Ranks that stand in communication, and the lines of those that do not. */
  readonly waiting?: readonly Rank[];
  readonly outside?: Readonly<Record<Rank, string | null>>;
  /** Ranks that save, evaluate or compile, by their frames: which of these, and where; a few of them. */
  readonly pauses?: Readonly<Record<Rank, string>>;
  /** The job runs: a stack shows a moment. */
  readonly isRunning?: true;
}

/** The traced call in which a rank stands. */
export interface OpenCall {
  readonly fact: "open-call";
  readonly side: "cpu";
  readonly call?: string;
  readonly forMs?: number;
  readonly loading?: readonly Rank[];
}

// Crashes and what logs say.

/** What the log report says of the same lines. */
export interface LogJudgement {
  readonly category?: Category;
  readonly record?: string;
  /** The log report's confidence in its cause. */
  readonly logConfidence?: number;
}

/** Lines that stand out and that no record explains: new against healthy jobs, other nodes or earlier iterations. */
export interface UnexplainedLines {
  readonly fact: "unexplained-lines";
  /** One of each kind, the most telling first. */
  readonly lines: readonly {
    readonly text: string;
    readonly file: string;
    readonly line: number;
    readonly count: number;
    readonly node: string | null;
    readonly rank: Rank | null;
    readonly time: string | null;
    readonly why: readonly string[];
  }[];
}

export interface OwnError extends LogJudgement {
  readonly fact: "own-error";
  readonly signature: string;
  readonly code: string | null;
  /** The line itself, cut. */
  readonly text?: string;
  readonly ranks?: readonly Rank[];
}

export interface EchoedErrors {
  readonly fact: "echoed-errors";
  readonly echoes: number;
  readonly ranks: readonly Rank[];
}

export interface EndedFromOutside extends LogJudgement {
  readonly fact: "ended-from-outside";
  readonly signature: string;
  readonly ranUntilEnd: boolean;
}

export interface StoodStill {
  readonly fact: "stood-still";
  readonly stoodStill: true;
  readonly since?: string;
}

export interface SilentEnd extends LogJudgement {
  readonly fact: "silent-end";
  readonly silent: readonly Rank[];
}

export interface ExitCodes {
  readonly fact: "exit-codes";
  readonly exitCodes: Readonly<Record<Rank, number | null>>;
}

export interface LogCauseFact {
  readonly fact: "log-cause";
  readonly category: Category;
  readonly signature: string;
  readonly owner: string;
  readonly action: string;
  readonly stage: LogReport["stage"];
  readonly captures: Readonly<Record<string, string>>;
  readonly nodes: readonly { readonly node: string; readonly score: number }[];
  readonly logConfidence: number;
  /** A symptom, shown where nothing better is known. */
  readonly isGuess?: true;
  readonly stoodStill?: true;
}

// Slow-downs.

/** When iterations became slow, as one witness dates it. */
export interface SlowTimes {
  readonly slowDown: true;
  readonly iteration: number;
  /** The last slow iteration; null: still slow. */
  readonly until: number | null;
  readonly from: string | null;
  readonly to: string | null;
  /** Slow since the record begins, at this iteration. */
  readonly sinceStart?: boolean;
  readonly recordFrom?: number | null;
}

/** The job's iterations became longer. */
export interface SlowDown extends SlowTimes {
  readonly fact: "slow-down";
  readonly detectedAt: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly ratio: number;
  /** Slow now and then: in how many iterations of how many. Absent where all are. */
  readonly intermittent?: { readonly slow: number; readonly of: number };
  readonly ramp?: { readonly until: number; readonly msPerIteration: number } | null;
  readonly wastedHours: number | null;
  readonly series: string;
}

/** Spikes and fluctuations that do not last. */
export interface SlowEpisodes {
  readonly fact: "slow-episodes";
  readonly spikes: number;
  readonly fluctuations: number;
  readonly period: number | null;
  readonly wastedHours: number | null;
}

export interface EvenIterations {
  readonly fact: "even-iterations";
  readonly evenIterations: number;
  readonly medianMs: number;
  readonly variation: number;
  /** The end over the beginning. */
  readonly rise: number;
  /** Of a short series that rises once and stays: from which iteration on, and how many times as long they take since. */
  readonly riseFrom?: number;
  readonly riseRatio?: number;
}

/** What the judge of slowness weighed for whom it names: the figures behind its sentence. */
export interface Judged {
  /** Of this hypothesis among all of them: healthy, other ranks, other wires. */
  readonly probability: number;
  /** Milliseconds of an iteration: of healthy ones (null: slow as far as the record goes back), and of slow ones. */
  readonly healthyMs: number | null;
  readonly slowMs: number;
  readonly compared: Compared;
  /** What else may be true, the likeliest first: "nobody", "ranks", "machine", "wire", "device", "all" alike, or a rank that was not seen. */
  readonly rivals?: readonly {
    readonly what: string;
    readonly ranks: readonly Rank[];
    readonly probability: number;
  }[];
}

/** Who was compared with whom. Pairs of figures are milliseconds an iteration: before (null: not on record) and since. */
export interface Compared {
  /** Words for the group whose members were compared: "DATA_PARALLEL_1", "all ranks". */
  readonly group: string;
  readonly iterations: number;
  /** How much less than its peers the suspect waits, and what such a lead is by chance here. */
  readonly leadMs: readonly [number | null, number];
  readonly chanceMs: number;
  /** The suspects first, then their peers; a few dozen. */
  readonly ranks: readonly {
    readonly rank: Rank;
    /** Inside operators: communicating, or waiting for others. */
    readonly insideMs: readonly [number | null, number];
    /** Outside operators: its own work. */
    readonly ownMs: readonly [number | null, number];
  }[];
  /** For a link or NIC: it first, then wires that carry the same; the least that communication over them takes. */
  readonly wires?: readonly {
    readonly name: string;
    readonly ranks: readonly Rank[];
    readonly leastMs: readonly [number | null, number];
  }[];
}

/** A rank that keeps the others waiting. */
export interface SlowRank extends SlowTimes {
  readonly fact: "slow-rank";
  /** Milliseconds an iteration that it costs. */
  readonly growthMs: number;
  /** Slow now and then: the iterations that speak for it. */
  readonly slowIterations?: readonly number[];
  readonly judged: Judged;
}

/** A link, NIC or switch over which communication became slow. */
export interface SlowDevice extends SlowTimes {
  readonly fact: "slow-device";
  readonly growthMs: number;
  readonly slowIterations?: readonly number[];
  readonly device: string;
  readonly explains: number;
  readonly judged: Judged;
}

/** Ranks that were slow until the job stopped of something else. */
export interface SlowBeforeStop {
  readonly fact: "slow-before-stop";
  readonly ranks: readonly Rank[];
  /** Own time beyond that of peers in an iteration. */
  readonly growthMs: number;
}

export interface EvenRanks {
  readonly fact: "even-ranks";
  /** That nobody is slow, among all that the judge of slowness weighed. */
  readonly probability: number;
  readonly evenRanks: number;
  readonly comparedIterations: number;
}

/** What Python did instead of training. */
export interface PythonTime {
  readonly fact: "python-time";
  readonly purpose: CallPurpose;
  readonly from?: number;
  readonly extraMs?: number;
  /** By rank. */
  readonly growthMs?: Readonly<Record<Rank, number>>;
  readonly share?: number;
  readonly peers?: number;
  readonly ranks?: readonly Rank[];
}

// Tests of GPUs and links, traces, machines.

/** Members of the group that left no report of the tests. */
export interface Tested {
  readonly missing?: readonly Rank[];
}

export interface TestedSlow extends Tested {
  readonly fact: "tested-slow";
  readonly ratio: number;
  readonly tests: number;
  readonly hosts?: readonly string[];
}

export interface TestedDifferent extends Tested {
  readonly fact: "tested-different";
  readonly what: string;
  readonly fast?: readonly Rank[];
  readonly slow: readonly (Rank | readonly [Rank, Rank])[];
  readonly ratio: number;
}

export interface TestedAlike extends Tested {
  readonly fact: "tested-alike";
  readonly gpus: number;
  readonly links: number;
  readonly transfers: number;
}

export interface RegressedMetric {
  readonly fact: "regressed-metric";
  readonly regression: true;
  readonly metric: TraceMetric;
  readonly value: number;
  readonly baseline: number;
  readonly share: number;
  /** Of the run and of its baseline; absent where there is no baseline. */
  readonly stepMs?: readonly [own: number, baseline: number];
  /** The call or the line of code, and how often it runs in a step now and when healthy. */
  readonly call?: string;
  readonly calls?: readonly [now: number, healthy: number];
  readonly threshold: string;
}

export interface OddMachine {
  readonly fact: "odd-machine";
  readonly machine: string;
  readonly since: string;
  readonly until: string | null;
  readonly order: FaultyMachine["order"];
  readonly metrics: readonly Pick<
    FaultyMachine["deviations"][number],
    "metric" | "direction" | "device" | "value" | "peers"
  >[];
}

export interface BrokenMonitoring {
  readonly fact: "broken-monitoring";
  readonly telemetry: MachineReport["telemetry"];
}

export interface AlikeMachines {
  readonly fact: "alike-machines";
  readonly machines: number;
  readonly jitters: number;
  readonly allAlike: boolean;
}

/** The fact, if it is one of these kinds. */
export function factOf<Kind extends FactKind>(
  { data }: { readonly data: Fact },
  ...kinds: readonly Kind[]
): FactOf<Kind> | null {
  return (kinds as readonly FactKind[]).includes(data.fact) ? (data as FactOf<Kind>) : null;
}

/** The facts of these kinds that findings state, in their order. */
export function factsOf<Kind extends FactKind>(
  findings: readonly { readonly data: Fact }[],
  ...kinds: readonly Kind[]
): FactOf<Kind>[] {
  return findings.flatMap((finding) => factOf(finding, ...kinds) ?? []);
}

/** That somebody dates a slow-down: the job's iterations, a rank or a device. */
export function slowTimesOf(finding: {
  readonly data: Fact;
}): (FactOf<"slow-down" | "slow-rank" | "slow-device"> & SlowTimes) | null {
  return factOf(finding, "slow-down", "slow-rank", "slow-device");
}

/** What the log report bets on the cause that a finding repeats; null where it says nothing of it. */
export function logConfidenceOf({ data }: { readonly data: Fact }): number | null {
  return "logConfidence" in data ? (data.logConfidence ?? null) : null;
}

/** The job did nothing any more before it ended. */
export function saysStoodStill({ data }: { readonly data: Fact }): boolean {
  return "stoodStill" in data && data.stoodStill;
}
