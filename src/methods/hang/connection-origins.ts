/**
 * Where a stuck communicator's waiting begins (FLARE §5.1, intra-kernel inspection, without a debugger). NCCL's proxies
 * move data in steps: the sender's GPU fills a buffer, the receiver gives credit, the wire carries, the receiver's GPU
 * empties. When all stand still, each end says what its oldest step waits for; nearly all of them wait for another
 * end. What waits for nothing that another end could give is where it begins:
 *
 *   sender for the wire or for credit, receiver for the data     the wire between them
 *   sent by one side, never seen by the other                    the wire between them
 *   a GPU that has its data and room for the outcome             that GPU
 *   nobody, all in a circle                                      the machine that sent the smallest step
 *   receiver for the flush                                       that receiver's NIC and GPU memory
 */
import * as P from "../../model/probe.ts";
import { isWaiting, type End, type Line, type Wiring } from "./connection-lines.ts";
import { treeRoot } from "./tree-roots.ts";

export type Origin =
  | { readonly kind: "wire"; readonly line: Line }
  | { readonly kind: "flush"; readonly line: Line }
  | {
      readonly kind: "gpu";
      readonly channel: number;
      /** Members on the machine that has its data and does not go on. */
      readonly members: readonly number[];
      /** One of its lines, for the words. */
      readonly line: Line;
      /** Whether another machine could be it just as well, or steps of other operators could deceive. */
      readonly isDoubtful: boolean;
    };

export function originsOf(wiring: Wiring): Origin[] {
  const origins: Origin[] = [];
  const byChannel = new Map<number, Line[]>();
  for (const line of wiring.lines) {
    const list = byChannel.get(line.channel);
    if (list) list.push(line);
    else byChannel.set(line.channel, [line]);
    if (isWire(line)) origins.push({ kind: "wire", line });
    else if (line.receiver?.state === P.RECEIVE_WAITS_FOR_FLUSH)
      origins.push({ kind: "flush", line });
  }
  const channels = [...byChannel];
  const busy = channels.filter(([, lines]) => !isAtRest(lines));
  for (const [channel, lines] of busy.length > 0 ? busy : channels)
    origins.push(...gpuOrigins(wiring, channel, lines));
  return origins;
}

function isWire({ sender, receiver }: Line): boolean {
  if (!sender || receiver?.state !== P.RECEIVE_WAITS_FOR_DATA) return false;
  if (sender.state === P.SEND_WAITS_FOR_WIRE || sender.state === P.SEND_WAITS_FOR_PEER) return true;
  // No more can be on its way than there are buffers; a larger difference is that of two counts, not of data.
  const sent = sender.finished - receiver.finished;
  return sent > 0 && sent <= BUFFERS;
}

/** NCCL_STEPS. */
const BUFFERS = 8;

/**
 * Nothing has been sent yet. Where data moved on another channel, this one is ready for an operator behind the one that
 * hangs: small operators use few channels.
 */
function isAtRest(lines: readonly Line[]): boolean {
  return lines.every(
    ({ sender, receiver }) =>
      sender !== null &&
      receiver !== null &&
      sender.finished === receiver.finished &&
      (sender.state === 0 || sender.state === P.SEND_WAITS_FOR_GPU) &&
      (receiver.state === 0 || receiver.state === P.RECEIVE_WAITS_FOR_DATA),
  );
}

/** What a machine's GPUs see of one channel. */
interface Place {
  readonly machine: string;
  readonly members: Set<number>;
  /** Lines on which a proxy waits for the GPU here. */
  readonly forGpu: Line[];
  /** Machines whose data is not there yet. */
  readonly starvedBy: Set<string>;
  /** Whether what was computed cannot leave. */
  isBlocked: boolean;
}

/**
 * Machines, because hops inside one have no proxy: what enters at one of its GPUs leaves at another. A machine goes on
 * when all its data is there and its outcome can leave.
 */
function gpuOrigins(wiring: Wiring, channel: number, lines: readonly Line[]): Origin[] {
  const places = placesOf(wiring, lines);
  const waiting = [...places.values()].filter(
    ({ forGpu, isBlocked }) => forGpu.length > 0 && !isBlocked,
  );
  const originOf = ({ machine, forGpu }: Place, isDoubtful: boolean): Origin => ({
    kind: "gpu",
    channel,
    members: [...wiring.members.keys()]
      .filter((member) => wiring.machineOf(member) === machine)
      .sort((a, b) => a - b),
    line: forGpu[0]!,
    isDoubtful,
  });
  const ready = waiting.filter(({ starvedBy }) => starvedBy.size === 0);
  if (ready.length > 0) return ready.map((place) => originOf(place, false));
  if (lines.some((line) => isWire(line) || line.receiver?.state === P.RECEIVE_WAITS_FOR_FLUSH))
    return [];
  /*
   * Trees: a machine waits for its parent to send the sum down, and the parent for it to send its part up. So a machine
   * that sends to another needs the data of all but that one. Two machines come out of this: the one that does not
   * send up and, at the other end of the way, the root, which waits for it. NCCL's trees have known roots.
   */
  const candidates = waiting.filter(({ forGpu, starvedBy, machine }) =>
    forGpu.some(({ from, to }) => {
      const isOut = wiring.machineOf(from) === machine;
      const other = wiring.machineOf(isOut ? to : from);
      return isOut && isMutual(lines, wiring, machine, other) && isOnly(starvedBy, other);
    }),
  );
  if (candidates.length === 0) {
    const last = smallestStep([...places.values()], wiring);
    return last ? [originOf(last, true)] : [];
  }
  // The root alone waits for somebody of whom nothing is seen: who has not entered, or left no ring.
  if (candidates.length < 2) return [];
  const root = treeRoot(wiring, lines);
  const others = candidates.filter(({ machine }) => machine !== root);
  return others.map((place) => originOf(place, others.length > 1));
}

/**
 * Every machine of a ring waits for the one before: data that one of them holds is passed on between its GPUs, where
 * nothing is seen. Each hop is ahead of the one that feeds it, so that the one that sent least is where it begins.
 */
function smallestStep(places: readonly Place[], wiring: Wiring): Place | null {
  const isCircle = places.every(
    ({ forGpu, starvedBy, isBlocked }) => forGpu.length === 1 && starvedBy.size === 1 && !isBlocked,
  );
  if (!isCircle || !places.some(({ members }) => members.size > 1)) return null;
  const sent = places.map(({ forGpu: [line], machine }) =>
    wiring.machineOf(line!.from) === machine ? line!.sender!.finished : NaN,
  );
  const least = Math.min(...sent);
  const last = places.filter((_, i) => sent[i] === least);
  return last.length === 1 ? last[0]! : null;
}

function isOnly(set: ReadonlySet<string>, machine: string): boolean {
  return set.size === 1 && set.has(machine);
}

/** Whether data flows both ways between two machines, each end waiting for the other. */
function isMutual(lines: readonly Line[], wiring: Wiring, a: string, b: string): boolean {
  return lines.some(
    ({ from, to, receiver }) =>
      wiring.machineOf(from) === a &&
      wiring.machineOf(to) === b &&
      receiver?.state === P.RECEIVE_WAITS_FOR_DATA,
  );
}

function placesOf(wiring: Wiring, lines: readonly Line[]): Map<string, Place> {
  const places = new Map<string, Place>();
  const at = (member: number): Place => {
    const machine = wiring.machineOf(member);
    let place = places.get(machine);
    if (!place) {
      place = {
        machine,
        members: new Set(),
        forGpu: [],
        starvedBy: new Set(),
        isBlocked: false,
      };
      places.set(machine, place);
    }
    place.members.add(member);
    return place;
  };
  const waitsFor = (end: End | null, ...states: readonly number[]): boolean =>
    isWaiting(end) && states.includes(end!.state);
  for (const line of lines) {
    const { sender, receiver, from, to } = line;
    if (waitsFor(sender, P.SEND_WAITS_FOR_GPU)) at(from).forGpu.push(line);
    if (waitsFor(sender, P.SEND_WAITS_FOR_WIRE, P.SEND_WAITS_FOR_PEER)) at(from).isBlocked = true;
    if (waitsFor(receiver, P.RECEIVE_WAITS_FOR_GPU)) at(to).forGpu.push(line);
    if (waitsFor(receiver, P.RECEIVE_WAITS_FOR_DATA)) at(to).starvedBy.add(wiring.machineOf(from));
  }
  return places;
}
