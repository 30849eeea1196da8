/** Rings of a simulated machine, made when somebody asks for evidence: its last records, as a dump would have them. */
import { FLAG, KIND } from "../../../src/ingest/probe-ring/layout.ts";
import { RingWriter, type RecordToWrite } from "../../../test/support/ingest/ring-writer.ts";
import type { EvidenceReply, EvidenceRequest } from "../../../src/live/wire/messages.ts";
import { LIMITS } from "../../../src/live/wire/messages.ts";
import { sequenceOf } from "./simulated-answers.ts";
import { simulatedPid, type SimulatedFleet } from "./simulated-fleet.ts";
import { COLLECTIVE } from "../../../src/live/fleet/stage-operators.ts";

const MOST_RECORDS = 1 << 16;
const LEAST_RECORDS = 64;
const MS = 1e6;
/** The simulated machine's clock when the job began. */
const MONOTONIC_NS = 1_000_000_000_000n;

export function evidenceFiles(
  fleet: SimulatedFleet,
  own: readonly number[],
  { ranks, records, stacks, logBytes }: EvidenceRequest,
  nowMs: number,
): EvidenceReply {
  const troubles: string[] = [];
  const files: { name: string; bytes: Uint8Array }[] = [];
  if (stacks) troubles.push("a simulated process has no stacks");
  if (logBytes > 0) troubles.push("a simulated process writes no log");
  const room = powerOfTwo(Math.max(LEAST_RECORDS, Math.min(records, MOST_RECORDS)));
  let total = 0;
  for (const rank of own) {
    if (ranks !== null && !ranks.includes(rank)) continue;
    for (const writer of ["native", "python"] as const) {
      const bytes =
        writer === "native" ? native(fleet, rank, room, nowMs) : python(fleet, rank, nowMs);
      total += bytes.length;
      if (total > LIMITS.replyBytes) {
        troubles.push(`rank ${rank}: left out, the answer is full`);
        return { kind: "evidence", files, troubles };
      }
      files.push({ name: `${fleet.job}.r${rank}.${simulatedPid(rank)}.${writer}.ring`, bytes });
    }
  }
  return { kind: "evidence", files, troubles };
}

function powerOfTwo(n: number): number {
  return 2 ** Math.ceil(Math.log2(n));
}

function ringOf(fleet: SimulatedFleet, rank: number, writer: "native" | "python", records: number) {
  const { spec, topology } = fleet.played.simulation;
  return new RingWriter({
    writer,
    rank,
    worldSize: spec.gpus,
    pid: simulatedPid(rank),
    gpu: topology.gpuOf(rank),
    host: topology.machineName(topology.machineOf(rank)),
    job: fleet.job,
    ...(writer === "python" ? { library: "Python 3.12.3 torch 2.11.0", source: "python" } : {}),
    madeAtNs: BigInt(Math.round(fleet.played.startedMs)) * 1_000_000n,
    monotonicNs: MONOTONIC_NS,
    records,
  });
}

function finish(fleet: SimulatedFleet, ring: RingWriter, rank: number, nowMs: number): Uint8Array {
  const { hung, played } = fleet;
  const sinceNs = (nowMs - played.startedMs) * MS;
  const fate = fleet.struckBy(nowMs, [rank]).get(rank) ?? "lives";
  const state = fate === "lives" ? "S" : fate === "stopped" ? "T" : "X";
  const lastNs = state === "S" ? sinceNs : (played.wallMs(hung!.startNs) - played.startedMs) * MS;
  ring.heartbeat(lastNs);
  ring.copied(sinceNs, state);
  return ring.bytes;
}

function native(fleet: SimulatedFleet, rank: number, records: number, nowMs: number): Uint8Array {
  const { played, held, hung } = fleet;
  const layout = fleet.stageOf(rank);
  const { lanes } = played.simulation.lanes;
  const lane = rank % lanes;
  const groups = fleet.groupsOf(rank);
  const ring = ringOf(fleet, rank, "native", records);
  const iterations = Math.ceil(records / layout.count) + 1;
  const commOf = new Map<number, number>();
  for (const { role, index, groupRank, size, desc } of groups) {
    const issued = layout.collectivesOf[role]! * held.last + issuedInHung(fleet, rank, role, nowMs);
    commOf.set(role, ring.comm(BigInt(index + 1), groupRank, size, desc, issued));
  }
  const record = (place: number, iteration: number, times: Times): void => {
    ring.record({
      kind: layout.code[place] === COLLECTIVE ? KIND.collective : KIND.p2p,
      func: layout.func[place]!,
      dtype: layout.dtype[place]!,
      flags: FLAG.gpuStart | FLAG.gpuEnd,
      group: commOf.get(layout.role[place]!)!,
      a: layout.elements[place]!,
      b: sequenceOf(layout, place, iteration),
      // Stages are ranks of a pipeline's group.
      c: Math.max(0, layout.peerStage[place]!),
      ...times,
    });
  };
  const epochMs = played.startedMs;
  for (let one = Math.max(held.first, held.last - iterations + 1); one <= held.last; one++) {
    const iteration = held.of(one);
    if (iteration === null || iteration.endMs[rank]! > nowMs) continue;
    const { issueMs, startMs, durationMs } = iteration.stages[layout.stage]!;
    const zeroMs = iteration.startMs - epochMs;
    for (let place = 0; place < layout.count; place++) {
      const at = place * lanes + lane;
      const startedNs = (zeroMs + startMs[at]!) * MS;
      const endedNs = startedNs + durationMs[at]! * MS;
      record(place, one, { issuedNs: (zeroMs + issueMs[at]!) * MS, startedNs, endedNs });
    }
  }
  if (hung !== null) {
    const { issueNs, startNs, endNs } = hung.stages[layout.stage]!;
    const since = (ns: number): number => (played.wallMs(ns) - epochMs) * MS;
    for (let place = 0; place < layout.count; place++) {
      const at = layout.op[place]! * lanes + lane;
      if (!(played.wallMs(issueNs[at]!) <= nowMs)) break;
      record(place, hung.iteration, {
        issuedNs: since(issueNs[at]!),
        ...(played.wallMs(startNs[at]!) <= nowMs ? { startedNs: since(startNs[at]!) } : {}),
        ...(played.wallMs(endNs[at]!) <= nowMs ? { endedNs: since(endNs[at]!) } : {}),
      });
    }
  }
  return finish(fleet, ring, rank, nowMs);
}

/** Collectives of a role that the rank has called in the iteration that never ends. */
function issuedInHung(fleet: SimulatedFleet, rank: number, role: number, nowMs: number): number {
  const { hung, played } = fleet;
  const layout = fleet.stageOf(rank);
  const { lanes } = played.simulation.lanes;
  const isIssued = (place: number): boolean => {
    const { issueNs } = hung!.stages[layout.stage]!;
    return played.wallMs(issueNs[layout.op[place]! * lanes + (rank % lanes)]!) <= nowMs;
  };
  return hung === null ? 0 : layout.byRole[role]!.filter(isIssued).length;
}

type Times = Pick<RecordToWrite, "issuedNs" | "startedNs" | "endedNs">;

function python(fleet: SimulatedFleet, rank: number, nowMs: number): Uint8Array {
  const { held, played, hung } = fleet;
  const ring = ringOf(fleet, rank, "python", LEAST_RECORDS);
  for (let one = held.first; one <= held.last; one++) {
    const iteration = held.of(one);
    if (iteration === null || iteration.endMs[rank]! > nowMs) continue;
    const endedNs = (iteration.endMs[rank]! - played.startedMs) * MS;
    const issuedNs = endedNs - iteration.durationMs[rank]! * MS;
    ring.record({ kind: KIND.iteration, a: one, issuedNs: Math.max(1, issuedNs), endedNs });
  }
  if (hung !== null)
    ring.record({
      kind: KIND.iteration,
      a: hung.iteration,
      issuedNs: (held.endedMs(rank) - played.startedMs) * MS,
    });
  return finish(fleet, ring, rank, nowMs);
}
