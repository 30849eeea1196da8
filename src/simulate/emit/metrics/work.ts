/** What one iteration costs each GPU when all is well: time of kernels, bytes over NVLink and over its NIC. */
import { wireBytes } from "../../cluster/links.ts";
import type { Simulation } from "../../cluster/times.ts";
import type { LaneGroups } from "../../cluster/lanes.ts";
import { CP, DP, EP, NO_GROUP, PP, TP, WORLD, type StageProgram } from "../../cluster/program.ts";

export interface Work {
  readonly computeS: Float64Array;
  readonly nvlinkBytes: Float64Array;
  readonly nicBytes: Float64Array;
}

interface Cost {
  readonly computeNs: number;
  /** By role. */
  readonly bytes: ReadonlyMap<number, number>;
}

export function workOf({ spec, lanes, programs, topology }: Simulation): Work {
  const work: Work = {
    computeS: new Float64Array(spec.gpus),
    nvlinkBytes: new Float64Array(spec.gpus),
    nicBytes: new Float64Array(spec.gpus),
  };
  const groupsOf: Partial<Record<number, LaneGroups>> = {
    [TP]: lanes.tp,
    [CP]: lanes.cp,
    [DP]: lanes.dp,
    [EP]: lanes.ep,
  };
  const sizeOf = (role: number): number => groupsOf[role]?.size ?? (role === WORLD ? spec.gpus : 2);
  const costOf = (program: StageProgram): Cost => {
    let computeNs = 0;
    const bytes = new Map<number, number>();
    for (let op = 0; op < program.count; op++) {
      computeNs += program.computeNs[op]!;
      const role = program.role[op]!;
      if (role === NO_GROUP) continue;
      const wire =
        role === PP
          ? program.bytes[op]!
          : wireBytes(program.kind[op]!, program.bytes[op]!, sizeOf(role));
      bytes.set(role, (bytes.get(role) ?? 0) + wire);
    }
    return { computeNs, bytes };
  };
  programs.forEach((program, stage) => {
    const { computeNs, bytes } = costOf(program);
    for (let lane = 0; lane < lanes.lanes; lane++) {
      const rank = stage * lanes.lanes + lane;
      work.computeS[rank] = computeNs / 1e9;
      for (const [role, wire] of bytes) {
        const groups = groupsOf[role];
        const first = groups ? groups.members[groups.groupOf[lane]! * groups.size]! : -1;
        const lastMember = groups
          ? groups.members[(groups.groupOf[lane]! + 1) * groups.size - 1]!
          : -1;
        const base = stage * lanes.lanes;
        const intra =
          groups !== undefined &&
          topology.machineOf(base + first) === topology.machineOf(base + lastMember);
        (intra ? work.nvlinkBytes : work.nicBytes)[rank]! += wire;
      }
    }
  });
  return work;
}
