/**
 * "flight-recorder/nccl_trace_rank_N": dumps in PyTorch's format 2.10, as the watchdog writes them when a
 * job hangs, or as a script does at its end. A rank whose process is gone or stopped leaves none.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { ENDING_CAUSES } from "../cluster/fault-spec.ts";
import { faultRanks, isEnding } from "../cluster/faults.ts";
import { clusterGroups, type ClusterGroups } from "../cluster/groups.ts";
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { machineNs } from "../cluster/clocks.ts";
import { uniform } from "../cluster/noise.ts";
import * as P from "../cluster/program.ts";
import { flightDump } from "../flight/flight-recorder.ts";
import { shapeOf, type Kind, type Op, type Shape, type Site } from "../flight/op.ts";
import { pickle } from "../flight/pickle-writer.ts";
import { canBeBatched, type RankRecords } from "../flight/rank-records.ts";
import { recordRank } from "../flight/record-rank.ts";
import type { Emitter, Output } from "./emitter.ts";
import { ranBefore, type RanBefore } from "./operator-counts.ts";

interface FlightOptions {
  /** TORCH_FR_BUFFER_SIZE; the default is PyTorch's. */
  readonly ringSize?: number;
  readonly timing?: boolean;
  /** What a rank recorded instead of what the engine had it do. */
  readonly alter?: (records: RankRecords) => RankRecords;
}

const TIMEOUT_MS = 600_000;

/** In the order in which a rank joins its groups. */
const ROLES = [P.WORLD, P.TP, P.CP, P.DP, P.EP, P.PP, P.EMBEDDING] as const;

/** Causes after which a process cannot write a dump any more. */
const SILENT: readonly string[] = ENDING_CAUSES.filter(
  (cause) => cause !== "network-hang" && cause !== "gpu-hang",
);

export function emitFlightRecorder(
  simulation: Simulation,
  output: Output,
  options: FlightOptions = {},
): Emitter {
  const { spec, programs, lanes, topology } = simulation;
  const { ringSize = 2000, timing = true, alter } = options;
  const { lost } = spec;
  const last = Math.min(
    spec.iterations,
    ...spec.faults.filter((fault) => isEnding(fault, fault.from)).map((fault) => fault.from),
  );
  /** As many of the last iterations as fill the ring of the rank that runs the fewest operators. */
  const kept: KeptIteration[] = [];
  const fewest = Math.min(...programs.map(({ count }) => count));
  let endNs = 0;
  return {
    iteration(times: IterationTimes): void {
      if (times.endNs !== Infinity) endNs = times.endNs;
      const stages = times.stages.map(({ issueNs, startNs, endNs: ends }) => ({
        issue: issueNs.slice(),
        start: startNs.slice(),
        end: ends.slice(),
      }));
      kept.push({ iteration: times.iteration, stages });
      // The last one may have been cut short.
      while ((kept.length - 2) * fewest >= ringSize) kept.shift();
    },
    end(): void {
      const groups = clusterGroups(simulation);
      const silent = new Set(
        spec.faults
          .filter((fault) => isEnding(fault, last) && SILENT.includes(fault.cause))
          .flatMap((fault) => faultRanks(spec, topology, fault)),
      );
      const before = ranBefore(simulation, kept[0]?.iteration ?? 1);
      const templates = programs.map((program) => operatorTemplates(simulation, program));
      for (let rank = 0; rank < spec.gpus; rank++) {
        const fate = uniform(spec.seed, rank, 0x10c, 0);
        if (silent.has(rank) || fate < lost / 2) continue;
        const stage = Math.floor(rank / lanes.lanes);
        const history = rankHistory(simulation, groups, templates[stage]!, rank, kept, before);
        const machine = topology.machineOf(rank);
        const records = recordRank(rank, history, {
          seed: spec.seed,
          skewNs: machineNs(spec, machine, endNs) - endNs,
          dumpNs: endNs + TIMEOUT_MS * 1e6 + 1e9 * uniform(spec.seed, rank, 0xd0, 0),
          blindFrom: Infinity,
          blindShowsStart: true,
        });
        const joined = ROLES.map((role) => groups.groupOf(rank, role)).filter(
          (index) => groups.groups[index]?.ranks.includes(rank) === true,
        );
        const altered = alter?.(records) ?? records;
        const dump = flightDump(altered, groups.groups, {
          version: "2.10",
          library: "2.28.9",
          timing,
          ringSize,
          onlyActive: false,
          // As Megatron-LM's pipelines do.
          batched: canBeBatched(altered),
          stacks: true,
          entries: true,
          timeoutMs: TIMEOUT_MS,
          epochNs: spec.epochNs,
          localIds: new Map(joined.map((index, id) => [index, id])),
        });
        const bytes = pickle(dump);
        const file = output.open(`flight-recorder/nccl_trace_rank_${rank}`);
        file.write(
          fate < lost
            ? bytes.subarray(0, Math.floor(bytes.length * uniform(spec.seed, rank, 0x10d, 0)))
            : bytes,
        );
        file.end();
      }
    },
  };
}

/** An iteration, copied. */
interface KeptIteration {
  readonly iteration: number;
  /** By stage. */
  readonly stages: readonly { issue: Float64Array; start: Float64Array; end: Float64Array }[];
}

interface Template {
  readonly kind: Kind;
  readonly shape: Shape;
  readonly dtype: string;
  readonly site: Site;
  readonly role: number;
  /** Stage of the other side of a P2P operator; -1 otherwise. */
  readonly peer: number;
}

const KINDS: readonly (Kind | null)[] = [
  "_all_gather_base",
  "_reduce_scatter_base",
  "all_reduce",
  "all_to_all",
  "send",
  "recv",
  null,
];

/** Kind, sizes and place in the script of each operator of a stage; null for pure compute. */
function operatorTemplates(
  { spec, programs }: Simulation,
  program: P.StageProgram,
): (Template | null)[] {
  const sendsTo = new Map<number, number>();
  for (const other of programs) {
    for (let op = 0; op < other.count; op++) {
      if (other.peerStage[op] === program.stage) sendsTo.set(other.peerOp[op]!, other.stage);
    }
  }
  const sizes: Partial<Record<number, number>> = {
    [P.TP]: spec.tp,
    [P.CP]: spec.cp,
    [P.DP]: spec.dp * spec.cp,
  };
  return Array.from({ length: program.count }, (_, op) => {
    const kind = KINDS[program.kind[op]!] ?? null;
    if (kind === null) return null;
    const role = program.role[op]!;
    const elements = Math.max(1, Math.round(program.bytes[op]! / 2));
    const peer = kind === "recv" ? program.peerStage[op]! : kind === "send" ? sendsTo.get(op)! : -1;
    return {
      kind,
      shape: shapeFor(kind, elements, sizes[role] ?? 1, spec.hidden),
      dtype: role === P.WORLD ? "Float" : "BFloat16",
      site: siteOf(program, op),
      role,
      peer,
    };
  });
}

function shapeFor(kind: Kind, elements: number, size: number, hidden: number): Shape {
  const shape = (n: number): number[] => (n % hidden === 0 ? [n / hidden, 1, hidden] : [n]);
  if (kind === "_all_gather_base") return shapeOf(shape(elements), shape(elements * size));
  if (kind === "_reduce_scatter_base") return shapeOf(shape(elements * size), shape(elements));
  return shapeOf(shape(elements));
}

function siteOf(program: P.StageProgram, op: number): Site {
  const role = program.role[op];
  if (program.kind[op] === P.SEND) return "send";
  if (program.kind[op] === P.RECV) return "recv";
  if (role === P.EMBEDDING) return "embedding";
  if (role === P.WORLD) return "norm";
  if (program.phase[op] === P.GRADIENTS) return "gradients";
  if (program.phase[op] === P.OPTIMIZER) return "parameters";
  const backward = program.phase[op] === P.BACKWARD;
  if (role === P.EP) return backward ? "experts-backward" : "experts-forward";
  return backward ? "backward" : "forward";
}

/** The rank's operators over the kept iterations, and how many came before in each group. */
function rankHistory(
  { lanes }: Simulation,
  groups: ClusterGroups,
  templates: readonly (Template | null)[],
  rank: number,
  kept: readonly KeptIteration[],
  ran: RanBefore,
) {
  const stage = Math.floor(rank / lanes.lanes);
  const lane = rank % lanes.lanes;
  const communicating = templates.flatMap((template, op) => (template ? [op] : []));
  const total = kept.length * communicating.length;
  const ops: Op[] = [];
  const createdNs = new Float64Array(total);
  const startNs = new Float64Array(total);
  const endNs = new Float64Array(total);
  const own = new Map<number, number>();
  const groupOf = (role: number): number =>
    getOrInsert(own, role, () => groups.groupOf(rank, role));
  const seen = (ns: number): number => (ns === Infinity ? NaN : ns);
  outer: for (const { iteration, stages } of kept) {
    const { issue, start, end } = stages[stage]!;
    for (const op of communicating) {
      const at = op * lanes.lanes + lane;
      if (issue[at] === Infinity) break outer;
      const { role, ...template } = templates[op]!;
      createdNs[ops.length] = issue[at]!;
      startNs[ops.length] = seen(start[at]!);
      endNs[ops.length] = seen(end[at]!);
      ops.push({
        ...template,
        group: groupOf(role),
        async: false,
        hostWait: 0,
        gapNs: 0,
        iteration,
      });
    }
  }
  const before = new Map<number, { collectives: number; p2p: number }>();
  for (const template of templates) {
    if (!template) continue;
    const number = ran(rank, template.role);
    const isP2p = template.peer >= 0;
    before.set(groupOf(template.role), {
      collectives: isP2p ? 0 : number,
      p2p: isP2p ? number : 0,
    });
  }
  return { ops, issued: ops.length, createdNs, startNs, endNs, before };
}
