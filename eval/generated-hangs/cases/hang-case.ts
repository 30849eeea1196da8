import type { Random } from "../../../src/base/random.ts";
import { pick, seeded } from "../../../src/base/random.ts";
import type { Cause } from "../../../src/model/cause.ts";
import type { Rank } from "../../../src/model/ids.ts";
import type { Broken } from "./break-job.ts";
import { breakProgram, breakRanks } from "./break-job.ts";
import { confusable, obstacle } from "./decidable.ts";
import { Evidence } from "./evidence.ts";
import type { Execution } from "./execute.ts";
import { execute, noFaults } from "./execute.ts";
import type { Culprit, FaultKind } from "./faults.ts";
import { flightJson } from "./flight-json.ts";
import { flightDump } from "../../../src/simulate/flight/flight-recorder.ts";
import { isGenuine } from "./genuine.ts";
import type { SimJob } from "./job.ts";
import { buildJob, DEFAULT_PROGRAM } from "./job.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Layout } from "./layout.ts";
import type { MismatchVariant } from "./mismatch.ts";
import { noise } from "./noise.ts";
import type { FilePlan, Nuisances } from "./nuisance.ts";
import { NO_NUISANCES, planFiles } from "./nuisance.ts";
import { pickle } from "../../../src/simulate/flight/pickle-writer.ts";
import type { ProgramOptions } from "./program.ts";
import type { RankRecords } from "../../../src/simulate/flight/rank-records.ts";
import { recordRank } from "../../../src/simulate/flight/record-rank.ts";

export interface HangOptions extends Layout {
  readonly seed: number;
  readonly fault: FaultKind;
  /** How many ranks fail at the same moment; a mismatch has more than one only in a large group. */
  readonly culprits?: number;
  /** Of a collective-mismatch; drawn where absent. */
  readonly variant?: MismatchVariant;
  readonly program?: Partial<Omit<ProgramOptions, "iterations">>;
  /** From 1, because the groups' communicators are made in iteration 0; 3 where absent. */
  readonly faultIteration?: number;
  /** Sends end when their data is buffered, as small ones do; else with their receiver. */
  readonly eagerSends?: boolean;
  readonly unusedGroups?: boolean;
  readonly nuisances?: Partial<Nuisances>;
}

export interface HangTruth {
  readonly kind: "hang";
  readonly cause: Cause;
  /** Sorted; for a network-hang the members of the group. */
  readonly ranks: readonly Rank[];
  readonly note: string;
  /** Whether a careful reader of the files can name exactly these ranks. */
  readonly decidable: boolean;
  /** "" where decidable. */
  readonly undecidableBecause: string;
  /** Causes that the files cannot tell apart, the true one among them. */
  readonly causes: readonly Cause[];
}

export interface HangCase {
  readonly options: HangOptions;
  readonly groups: readonly SimGroup[];
  readonly truth: HangTruth;
  /** What every rank recorded, those included that leave no dump. */
  readonly ranks: readonly RankRecords[];
  readonly files: readonly FilePlan[];
  readonly execution: Execution;
}

/** Iterations after the faulty one: ranks that the fault reaches late go on into them. */
const TRAILING_ITERATIONS = 2;
/** Draws of a place before the options are held to allow no such hang. */
const ATTEMPTS = 40;

/** A hung job with its ground truth. Throws where the options allow no such hang. */
export function makeHangCase(options: HangOptions): HangCase {
  const made = tryHangCase(options);
  if (made === null) throw new Error(`these options hang in no draw: ${JSON.stringify(options)}`);
  return made;
}

/** Null where no draw led to a hang of the kind asked for. */
export function tryHangCase(options: HangOptions): HangCase | null {
  const { seed, fault, variant, culprits = 1, faultIteration: iteration = 3 } = options;
  const iterations = iteration + 1 + TRAILING_ITERATIONS;
  const layout = { tp: options.tp, pp: options.pp, dp: options.dp };
  const program = { ...DEFAULT_PROGRAM, ...options.program, iterations };
  const job = buildJob(layout, program, seed, options.unusedGroups);
  const engine = { eagerSends: options.eagerSends ?? false, seed };
  const healthy =
    fault === "collective-mismatch"
      ? null
      : execute(job.programs, job.groups, noFaults(job.programs.length), engine);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const random = seeded(seed * 7919 + attempt * 104_729 + 1);
    const broken =
      healthy === null || fault === "collective-mismatch"
        ? breakProgram(job, { variant, iteration, culprits }, engine, random)
        : breakRanks(job, healthy, { kind: fault, iteration, culprits }, engine, random);
    if (broken !== null && isGenuine(fault, broken)) return fileCase(job, broken, options, random);
  }
  return null;
}

/** Writes down what each rank saw, decides what becomes of the files, and what they tell. */
function fileCase(job: SimJob, broken: Broken, options: HangOptions, random: Random): HangCase {
  const { execution, culprits } = broken;
  const { seed, fault, faultIteration = 3 } = options;
  const timeoutMs = pick(random, [12_000, 180_000, 600_000]);
  const records = recordAll(broken, seed, timeoutMs, random() < 0.5);
  const guilty = culprits.map((c) => c.rank);
  const files = planFiles(
    {
      records,
      joined: job.joined,
      nuisances: { ...NO_NUISANCES, ...options.nuisances },
      guilty,
      guiltyAbsent: fault === "process-gone" || fault === "process-stopped",
      timeoutMs,
      seed,
    },
    random,
  );
  const evidence = new Evidence(job, execution, records, files, faultIteration);
  const undecidableBecause = obstacle(fault, culprits, broken.deviation, evidence);
  const truth: HangTruth = {
    kind: "hang",
    cause: fault,
    ranks: guilty,
    note: noteOf(fault, job, broken),
    decidable: undecidableBecause === "",
    undecidableBecause,
    causes: confusable(fault, culprits, evidence),
  };
  return { options, groups: job.groups, truth, ranks: records, files, execution };
}

function recordAll(
  broken: Broken,
  seed: number,
  timeoutMs: number,
  blindShowsStart: boolean,
): RankRecords[] {
  const { runs } = broken.execution;
  let lastNs = 0;
  for (const run of runs) for (const endNs of run.endNs) if (endNs > lastNs) lastNs = endNs;
  return runs.map((run, rank) =>
    recordRank(rank, run, {
      seed,
      skewNs: 6e6 * (noise(seed, rank, 5) - 0.5),
      // The first rank to time out tells the others, who do not all hear it at once.
      dumpNs: lastNs + timeoutMs * 1e6 + 1e9 * noise(seed, rank, 6),
      blindFrom: broken.blindFrom.get(rank) ?? Infinity,
      blindShowsStart,
    }),
  );
}

function noteOf(fault: FaultKind, job: SimJob, { culprits, deviation }: Broken): string {
  const { rank, index } = culprits[0] as Culprit;
  const op = job.programs[rank]?.[index];
  const what = deviation === null ? fault : `${fault} (${deviation.variant})`;
  const more = culprits.length > 1 ? ` and ${culprits.length - 1} more` : "";
  const where = op ? `${op.kind} of ${job.groups[op.group]?.desc}, iteration ${op.iteration}` : "";
  return `${what} of rank ${rank}${more} at operator ${index}: ${where}`;
}

export interface CaseFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The dumps as the job's ranks would leave them. */
export function writeCase(hang: HangCase): CaseFile[] {
  const written: CaseFile[] = [];
  hang.ranks.forEach((records, rank) => {
    const plan = hang.files[rank] as FilePlan;
    if (!plan.written) return;
    const dump = flightDump(records, hang.groups, plan.options);
    const bytes = plan.format === "json" ? flightJson(dump) : pickle(dump);
    const name = `nccl_trace_rank_${rank}`;
    written.push({ name, bytes });
    if (plan.copies === 2) written.push({ name: `copy-of-${name}`, bytes });
  });
  return written;
}
