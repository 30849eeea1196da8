/** What a simulated machine answers to a search: from the columns that the fleet holds, in time that follows the answer. */
import type {
  AgentReply,
  EvidenceRequest,
  AgentRequest,
  OperatorsReply,
  OperatorsRequest,
  PrepareTestsRequest,
  ReadTestsRequest,
  ValidateRequest,
} from "../../../src/live/wire/messages.ts";
import { LIMITS } from "../../../src/live/wire/messages.ts";
import type { RankGroup } from "../../../src/live/fleet/rank-groups.ts";
import type { SimulatedFleet } from "./simulated-fleet.ts";
import { simulatedWire } from "./simulated-wire.ts";
import type { StageOperators } from "../../../src/live/fleet/stage-operators.ts";

type Groups = ReadonlyMap<number, readonly RankGroup[]>;
const BYTES_OF_OPERATOR = 1 + 3 * 4 + 4 * 8;

export function replyTo(
  fleet: SimulatedFleet,
  groups: Groups,
  request: Exclude<
    AgentRequest,
    EvidenceRequest | PrepareTestsRequest | ReadTestsRequest | ValidateRequest
  >,
  nowMs: number,
): AgentReply {
  switch (request.ask) {
    case "operators":
      return groups.has(request.rank) ? operators(fleet, groups, request, nowMs) : notHere();
    case "wire":
      return simulatedWire(fleet, groups, request, nowMs);
    case "profile":
    case "unknown":
      return { kind: "refused", why: "simulated ranks cannot do that" };
  }
}

function notHere(): AgentReply {
  return { kind: "refused", why: "that rank is not on this machine" };
}

/** Iterations that the rank is done with. */
function heldBy(fleet: SimulatedFleet, rank: number, nowMs: number): number[] {
  const { held } = fleet;
  const all: number[] = [];
  for (let one = held.first; one <= held.last; one++)
    if (held.of(one)!.endMs[rank]! <= nowMs) all.push(one);
  return all;
}

function groupColumn({ role }: StageOperators, groups: readonly RankGroup[]): Int32Array {
  return Int32Array.from(role, (one) => groups.findIndex((group) => group.role === one));
}

function peerColumn(
  fleet: SimulatedFleet,
  { peerStage }: StageOperators,
  rank: number,
): Int32Array {
  const { lanes } = fleet.played.simulation.lanes;
  return peerStage.map((stage) => (stage < 0 ? -1 : stage * lanes + (rank % lanes)));
}

function operators(
  fleet: SimulatedFleet,
  groups: Groups,
  { rank, fromIteration, toIteration }: OperatorsRequest,
  nowMs: number,
): AgentReply {
  const wanted = heldBy(fleet, rank, nowMs).filter(
    (one) => one >= fromIteration && one <= toIteration,
  );
  const layout = fleet.stageOf(rank);
  const { count } = layout;
  const n = wanted.length * count;
  if (n * BYTES_OF_OPERATOR > LIMITS.replyBytes)
    return { kind: "refused", why: "too many at once" };
  const own = groups.get(rank)!;
  const group = groupColumn(layout, own);
  const peer = peerColumn(fleet, layout, rank);
  const { lanes } = fleet.played.simulation.lanes;
  const lane = rank % lanes;
  const epochMs = Math.floor(fleet.played.startedMs);
  const reply = {
    kind: "operators" as const,
    iteration: Float64Array.from(wanted),
    from: Int32Array.from(wanted, (_, i) => i * count),
    to: Int32Array.from(wanted, (_, i) => (i + 1) * count),
    startMs: new Float64Array(wanted.length),
    durationMs: new Float64Array(wanted.length),
    epochMs,
    op: new Uint8Array(n),
    group: new Int32Array(n),
    peer: new Int32Array(n),
    seq: new Int32Array(n),
    bytes: new Float64Array(n),
    createdNs: new Float64Array(n),
    startedNs: new Float64Array(n),
    completedNs: new Float64Array(n),
  } satisfies OperatorsReply;
  wanted.forEach((iteration, i) => {
    const held = fleet.held.of(iteration)!;
    const columns = held.stages[layout.stage]!;
    const zeroMs = held.startMs - epochMs;
    reply.durationMs[i] = held.durationMs[rank]!;
    reply.startMs[i] = held.endMs[rank]! - held.durationMs[rank]!;
    reply.op.set(layout.code, i * count);
    reply.group.set(group, i * count);
    reply.peer.set(peer, i * count);
    reply.bytes.set(layout.bytes, i * count);
    for (let place = 0; place < count; place++) {
      const to = i * count + place;
      const at = place * lanes + lane;
      reply.seq[to] = sequenceOf(layout, place, iteration);
      reply.createdNs[to] = (zeroMs + columns.issueMs[at]!) * 1e6;
      reply.startedNs[to] = (zeroMs + columns.startMs[at]!) * 1e6;
      reply.completedNs[to] = (zeroMs + columns.startMs[at]! + columns.durationMs[at]!) * 1e6;
    }
  });
  return reply;
}

/** Number of a collective (transfer) in its group since the start of the job, from 1. */
export function sequenceOf(layout: StageOperators, place: number, iteration: number): number {
  const { role, code, nth, collectivesOf, transfersOf } = layout;
  const each = (code[place] === 0 ? collectivesOf : transfersOf)[role[place]!]!;
  return ((iteration - 1) * each + nth[place]! + 1) % 0x7fff_ffff;
}
