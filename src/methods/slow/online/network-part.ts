/** Of what iterations grew by, how much a communicator grew by once everybody was there: on the member that waited least. */
import type { KeptBlock } from "./kept-block.ts";

/** From half of the growth on it is the network's; how surely. */
const MIDDLE = 0.5;
const SLOPE = 10;

interface NetworkOdds {
  readonly cause: "network-slow" | null;
  readonly probability: number;
}

const NAMED_FROM = 0.75;

export function networkOdds(
  before: readonly KeptBlock[],
  since: readonly KeptBlock[],
  wires: number,
): NetworkOdds {
  const [usual, now] = [timesOf(before, wires), timesOf(since, wires)];
  // Ranks go in step: one communicator that takes longer makes everybody's iterations longer.
  const most = now.wireMs.reduce((top, ms, w) => Math.max(top, ms - usual.wireMs[w]!), 0);
  const part = most / Math.max(1e-9, now.ms - usual.ms);
  const network = 1 / (1 + Math.exp(-SLOPE * (Math.min(1, part) - MIDDLE)));
  const isKnown = Number.isFinite(part) && network >= NAMED_FROM;
  return { cause: isKnown ? "network-slow" : null, probability: isKnown ? network : 1 - network };
}

/** Milliseconds between two calls of a rank, on average, and of that on each wire. */
function timesOf(
  blocks: readonly KeptBlock[],
  wires: number,
): { readonly ms: number; readonly wireMs: Float64Array } {
  const wireMs = new Float64Array(wires);
  let [ms, calls] = [0, 0];
  for (const { block, pace } of blocks) {
    ms += block.lengthMs;
    calls += pace * block.lengthMs;
    for (let w = 0; w < wires; w++)
      if (block.wireCount[w]! > 0) wireMs[w]! += block.wireMs[w]! * block.wireCount[w]!;
  }
  return { ms: ms / calls, wireMs: wireMs.map((sum) => sum / calls) };
}
