/** What the demonstration can break, as a simulator fault and as a sentence. Strong enough to be seen at a glance. */
import { UserError } from "../base/errors.ts";
import type { DemoFault } from "../live/service/view.ts";
import type { Simulation } from "../simulate/cluster/times.ts";

export interface ChosenFault {
  /** As `faultline simulate --fault` has them. */
  readonly words: string;
  readonly says: string;
  /** All that would be right to name. */
  readonly ranks: readonly number[];
  readonly machine: string | null;
}

/** `random`: 0 to below 1, asked where no rank is given. */
export function chooseFault(
  { kind, rank }: DemoFault,
  { spec, topology, lanes }: Pick<Simulation, "spec" | "topology" | "lanes">,
  random: () => number,
): ChosenFault {
  // Only the first stage of the pipeline reads data.
  const most = kind === "data-loader" ? lanes.lanes : spec.gpus;
  if (rank !== undefined && !(Number.isInteger(rank) && rank >= 0 && rank < most))
    throw new UserError(
      kind === "data-loader" && rank < spec.gpus
        ? `rank ${rank} loads no data; ranks 0 to ${most - 1} do`
        : `there is no rank ${rank}; ranks go from 0 to ${most - 1}`,
      "give another one, or none",
      2,
    );
  const at = rank ?? Math.floor(random() * most);
  const machine = topology.machineOf(at);
  const name = topology.machineName(machine);
  const gpu = topology.gpuOf(at);
  const on = (which: number): number[] =>
    Array.from({ length: spec.gpus }, (_, one) => one).filter(
      (one) => topology.machineOf(one) === which,
    );
  switch (kind) {
    case "gpu":
      return {
        words: `gpu-slow:rank=${at}:severity=3`,
        says: `GPU ${gpu} of ${name} (rank ${at}) computes at a third of its speed`,
        ranks: [at],
        machine: name,
      };
    case "nic":
      return {
        words: `network-slow:rank=${at}:severity=10`,
        says: `NIC ${gpu} of ${name} (rank ${at}) has a tenth of its bandwidth`,
        ranks: [at],
        machine: name,
      };
    case "data-loader":
      return {
        words: `dataloader:rank=${at}:severity=1.6`,
        says: `the data loader of rank ${at} on ${name} delivers its batches late`,
        ranks: [at],
        machine: name,
      };
    case "link": {
      // Its neighbour in the pipeline, the next one or the one before.
      const next = at + lanes.lanes < spec.gpus ? at + lanes.lanes : at - lanes.lanes;
      const other = topology.machineOf(next);
      const [a, b] = machine < other ? [machine, other] : [other, machine];
      const [from, to] = [topology.machineName(a), topology.machineName(b)];
      return {
        words: `network-slow:link=${from}-${to}:severity=100`,
        says: `the link between ${from} and ${to} has a hundredth of its bandwidth`,
        ranks: [...on(a), ...on(b)],
        machine: null,
      };
    }
    case "machine":
      return {
        words: `process-gone:machine=${name}`,
        says: `${name} lost power: its ${on(machine).length} processes are gone`,
        ranks: on(machine),
        machine: name,
      };
  }
}
