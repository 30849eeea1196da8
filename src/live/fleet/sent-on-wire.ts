/**
 * How long sends of a simulated rank are on the wire: a ring's or a pipeline's hop at the speed of the devices on its way,
 * whoever else it waits for, as test/support/methods/timed-proxies.ts derives it from NCCL's rules. Groups with several members
 * on a machine are not known: there NCCL often sends through the NIC of another process (PXN), whose events have no record.
 */
import { devicesAt, placedDevices, type DeviceState } from "../../simulate/cluster/faults.ts";
import { wireBytes } from "../../simulate/cluster/links.ts";
import { NETWORK_LATENCY_NS, NIC_BYTES_PER_NS } from "../../simulate/cluster/network.ts";
import { hash, networkNoise, STREAM } from "../../simulate/cluster/noise.ts";
import * as P from "../../simulate/cluster/program.ts";
import type { PlayedJob } from "./played-job.ts";
import type { RankGroup } from "./rank-groups.ts";
import { COLLECTIVE, SENDING, type StageOperators } from "./stage-operators.ts";

type Played = Pick<PlayedJob, "simulation" | "board">;
type Simulation = PlayedJob["simulation"];

/** What hops beside a slow one seem to take of what it takes more: assumed, buffers do not drain as evenly as in the rules. */
const SMEARED = 0.03;

/** For how long what a rank sends at a place of its program was on the wire, simulated; 0 where the network does not carry it. */
export function sentOf(
  played: Played,
  layout: StageOperators,
  own: readonly RankGroup[],
  rank: number,
  iteration: number,
): (place: number) => number {
  const { simulation } = played;
  const devices = devicesOf(played, iteration);
  return (place) => {
    const peer = peerOf(simulation, own, layout, place, rank);
    if (peer < 0) return 0;
    if (layout.code[place] === SENDING)
      return transferNs(simulation, devices, layout, place, rank, peer, iteration);
    const group = own.find(({ role }) => role === layout.role[place])!;
    return hopNs(simulation, devices, group, layout, place, rank, iteration);
  };
}

/** To whom the network carries it; -1 where it does not, or where that is not known. */
export function peerOf(
  simulation: Simulation,
  own: readonly RankGroup[],
  { role, code, peerStage }: StageOperators,
  place: number,
  rank: number,
): number {
  const { topology, lanes } = simulation;
  if (code[place] === SENDING) {
    const peer = peerStage[place]! * lanes.lanes + (rank % lanes.lanes);
    return topology.machineOf(peer) === topology.machineOf(rank) ? -1 : peer;
  }
  if (code[place] !== COLLECTIVE) return -1;
  const group = own.find((one) => one.role === role[place]);
  const next = group ? nextOf(simulation, group, rank) : null;
  return next === null ? -1 : membersOf(simulation, group!, rank)[next]!;
}

/** Who is next in a group's ring, by the place in it; null where the network carries nothing, or where that is not known. */
export function nextOf(simulation: Simulation, group: RankGroup, rank: number): number | null {
  if (group.role === P.WORLD) return null;
  const members = membersOf(simulation, group, rank);
  const isKnown = members.length >= 2 && areApart(simulation, members);
  return isKnown ? (group.groupRank + 1) % members.length : null;
}

const apart = new WeakMap<readonly number[], boolean>();

/** Whether no two are on one machine. */
function areApart({ topology }: Simulation, list: readonly number[]): boolean {
  let are = apart.get(list);
  if (are === undefined) {
    are = new Set(list.map((member) => topology.machineOf(member))).size === list.length;
    apart.set(list, are);
  }
  return are;
}

const membersIn = new WeakMap<Simulation, Map<string, readonly number[]>>();

function membersOf(simulation: Simulation, group: RankGroup, rank: number): readonly number[] {
  const { lanes } = simulation;
  const known = membersIn.get(simulation) ?? new Map<string, readonly number[]>();
  membersIn.set(simulation, known);
  let list = known.get(group.key);
  if (!list) {
    const base = Math.floor(rank / lanes.lanes) * lanes.lanes;
    const of = group.role === P.TP ? lanes.tp : group.role === P.EP ? lanes.ep : lanes.dp;
    const first = of.groupOf[rank % lanes.lanes]! * of.size;
    list =
      group.ranks ?? [...of.members.subarray(first, first + of.size)].map((lane) => base + lane);
    known.set(group.key, list);
  }
  return list;
}

function factorOf(
  simulation: Simulation,
  devices: DeviceState,
  from: number,
  to: number,
  spread: number,
): number {
  const { spec, topology } = simulation;
  const { nic, leaf, spine, pair } = devices;
  const [a, b] = [topology.leafOf(from), topology.leafOf(to)];
  const via = topology.spineOf(a, b, spread);
  return Math.max(
    nic[from]!,
    nic[to]!,
    leaf[a]!,
    leaf[b]!,
    via >= 0 ? spine[via]! : 1,
    pair.get(from * spec.gpus + to) ?? 1,
  );
}

function transferNs(
  simulation: Simulation,
  devices: DeviceState,
  { bytes, op }: StageOperators,
  place: number,
  rank: number,
  peer: number,
  iteration: number,
): number {
  const { spec } = simulation;
  const noise = networkNoise(spec.seed, rank, op[place]!, iteration, spec.noise);
  const carried = NETWORK_LATENCY_NS + (bytes[place]! / NIC_BYTES_PER_NS) * noise;
  return carried * factorOf(simulation, devices, rank, peer, rank);
}

/** Factors on the hops of a group, the first from its first member on, the largest, and which hop that is. */
interface Hops {
  readonly factors: readonly number[];
  readonly worst: number;
  readonly slowest: number;
}

const hopsIn = new WeakMap<DeviceState, Map<string, Hops>>();

function hopsOf(
  simulation: Simulation,
  devices: DeviceState,
  list: readonly number[],
  key: string,
  spread: number,
): Hops {
  const known = hopsIn.get(devices) ?? new Map<string, Hops>();
  hopsIn.set(devices, known);
  let hops = known.get(key);
  if (!hops) {
    const factors = list.map((member, i) =>
      factorOf(simulation, devices, member, list[(i + 1) % list.length]!, spread),
    );
    const worst = factors.reduce((most, one) => Math.max(most, one), 1);
    hops = { factors, worst, slowest: worst > 1 ? factors.indexOf(worst) : -1 };
    known.set(key, hops);
  }
  return hops;
}

/** The slowest hop has the group's noise (network.ts), the others their own where that is less. */
function hopNs(
  simulation: Simulation,
  devices: DeviceState,
  group: RankGroup,
  { stage, op, bytes }: StageOperators,
  place: number,
  rank: number,
  iteration: number,
): number {
  const { spec, lanes, programs } = simulation;
  const list = membersOf(simulation, group, rank);
  const of = group.role === P.TP ? lanes.tp : group.role === P.EP ? lanes.ep : lanes.dp;
  const where = stage * of.count + of.groupOf[rank % lanes.lanes]!;
  const at = op[place]!;
  const { factors, worst, slowest } = hopsOf(simulation, devices, list, group.key, where);
  const draw = hash(spec.seed ^ STREAM.network, where, at, iteration) % list.length;
  const noise = networkNoise(spec.seed, where, at, iteration, spec.noise);
  const own = networkNoise(spec.seed, spec.gpus + rank, at, iteration, spec.noise);
  const wire = wireBytes(programs[stage]!.kind[at]!, bytes[place]!, list.length) / NIC_BYTES_PER_NS;
  const nsOf = (factor: number, jitter: number): number =>
    (NETWORK_LATENCY_NS + wire * jitter) * factor;
  const mine = factors[group.groupRank]!;
  if (group.groupRank === (slowest < 0 ? draw : slowest) || mine === worst)
    return nsOf(mine, noise);
  const ns = nsOf(mine, Math.min(noise, own));
  return ns + SMEARED * Math.max(0, nsOf(worst, noise) - ns);
}

const states = new WeakMap<Played, Map<string, DeviceState>>();

/** By the faults that act now: those of an hour ago are of no interest. */
function devicesOf(played: Played, iteration: number): DeviceState {
  const { simulation, board } = played;
  const { spec, topology } = simulation;
  const faults = board.specs;
  const known = states.get(played) ?? new Map<string, DeviceState>();
  states.set(played, known);
  const key = `${iteration} ${faults.map(({ cause, from, severity }) => `${cause} ${from} ${severity}`).join()}`;
  let state = known.get(key);
  if (!state) {
    if (known.size > 256) known.clear();
    state = devicesAt({ ...spec, faults }, topology, iteration) ?? placedDevices(spec, topology);
    known.set(key, state);
  }
  return state;
}
