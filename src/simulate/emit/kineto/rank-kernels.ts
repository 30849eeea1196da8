/** The kernels that one rank's GPU runs before each operator, with the faults of the code that lengthen some of them. */
import { getOrInsert } from "../../../base/group-by.ts";
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { faultRanks, severityAt } from "../../cluster/faults.ts";
import { imageFactor } from "../../cluster/noise.ts";
import { partsNs } from "../../cluster/parts.ts";
import type { StageProgram } from "../../cluster/program.ts";
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import { shareOut, type KernelFault, type Piece } from "./durations.ts";
import { KernelPlan } from "./kernels.ts";

export class RankKernelPlan {
  readonly #simulation: Simulation;
  readonly #rank: number;
  readonly #program: StageProgram;
  /** By tokens of a micro-batch, and whether the feed-forward width is odd. */
  readonly #plans = new Map<string, KernelPlan>();

  constructor(simulation: Simulation, rank: number) {
    this.#simulation = simulation;
    this.#rank = rank;
    this.#program = simulation.programs[Math.floor(rank / simulation.lanes.lanes)]!;
  }

  /** Of one iteration: the kernels before an operator, which take so long together. */
  of(times: IterationTimes, faults: readonly FaultSpec[]): (op: number, ns: number) => Piece[] {
    const { seed, noise } = this.#simulation.spec;
    const { iteration } = times;
    const fault = this.#fault(times, faults);
    return (op, ns) =>
      shareOut(this.#planOf(op, iteration, fault), {
        program: this.#program,
        op,
        ns,
        fault,
        addedShare: this.#addedShare(op, times, fault),
        seed,
        noise,
        rank: this.#rank,
        iteration,
      });
  }

  #planOf(op: number, iteration: number, fault: KernelFault | null): KernelPlan {
    const { spec, lanes } = this.#simulation;
    const replica = Math.floor((this.#rank % lanes.lanes) / (spec.tp * spec.cp));
    const microBatch = this.#program.microBatch[op]!;
    const factor =
      microBatch < 0 ? 1 : imageFactor(spec.seed, replica, microBatch, iteration, spec.imbalance);
    const isOdd = fault?.cause === "gemm-layout";
    const key = `${factor}/${isOdd}`;
    return getOrInsert(this.#plans, key, () => new KernelPlan(spec, isOdd, factor));
  }

  /** What of the time before an operator a fault of the code has added, 0..1. */
  #addedShare(op: number, { devices }: IterationTimes, fault: KernelFault | null): number {
    if (fault === null) return 0;
    if (devices.parts === null) return 1 - 1 / fault.severity;
    const added = partsNs(this.#program, op, devices.parts, this.#rank);
    const computeNs = this.#program.computeNs[op]!;
    return added === 0 ? 0 : added / (computeNs + added);
  }

  /** Which of the faults that only lengthen kernels acts; null for none or for a slow GPU. */
  #fault({ iteration }: IterationTimes, faults: readonly FaultSpec[]): KernelFault | null {
    const { spec, topology } = this.#simulation;
    const found = faults.find(
      (fault) =>
        ["minority-kernels", "gemm-layout", "slow-kernel"].includes(fault.cause) &&
        severityAt(fault, iteration, spec.seed) > 1 &&
        faultRanks(spec, topology, fault).includes(this.#rank),
    );
    if (!found) return null;
    const { cause, how } = found;
    return { cause, how, severity: severityAt(found, iteration, spec.seed) };
  }
}
