/**
 * "operators/operators.flop": every operator of every rank as columns (docs/formats/operators.md). One
 * text line of JSON that describes the job, then for each iteration and stage a block of raw doubles.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { clusterGroups } from "../cluster/groups.ts";
import type { Emitter, Output } from "./emitter.ts";

const OPERATORS_MAGIC = "faultline.operators/1";

export function emitOperators(simulation: Simulation, output: Output): Emitter {
  const file = output.open("operators/operators.flop");
  const { spec, programs, lanes } = simulation;
  const header = JSON.stringify({
    schema: OPERATORS_MAGIC,
    epochNs: String(spec.epochNs),
    gpus: spec.gpus,
    lanes: lanes.lanes,
    kinds: ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "recv", "compute"],
    roles: ["tp", "cp", "dp", "ep", "pp", "embedding", "world", "none"],
    groups: clusterGroups(simulation).groups.map(({ name, desc, ranks }) => ({
      name,
      desc,
      ranks,
    })),
    stages: programs.map((program) => ({
      kind: [...program.kind],
      role: [...program.role],
      bytes: [...program.bytes],
      microBatch: [...program.microBatch],
      peerStage: [...program.peerStage],
      peerOp: [...program.peerOp],
    })),
  });
  // Blocks begin at a multiple of eight bytes, so that a reader can map them as they are.
  const padding = (8 - ((Buffer.byteLength(header) + 1) % 8)) % 8;
  file.write(`${header}${" ".repeat(padding)}\n`);
  return {
    iteration({ iteration, stages }: IterationTimes): void {
      stages.forEach(({ issueNs, startNs, endNs }, stage) => {
        const block = Float64Array.of(iteration, stage, programs[stage]!.count, lanes.lanes);
        for (const column of [block, issueNs, startNs, endNs]) {
          file.write(new Uint8Array(column.buffer, column.byteOffset, column.byteLength).slice());
        }
      });
    },
    end: () => file.end(),
  };
}
