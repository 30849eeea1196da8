/**
 * Series of one machine's device that came under two names, made one: an exporter that was restarted as another pod goes on
 * where the first ended; one that is scraped twice says everything twice, and the longer half is kept.
 */
import type { MetricSamples } from "../../../model/metrics.ts";
import type { Placed } from "../grid-maker.ts";

interface Piece {
  readonly samples: MetricSamples;
  readonly from: number;
  readonly to: number;
}

/** `placed` is one metric. Left as it is where nothing comes twice, which is nearly always. */
export function onceEach(placed: Placed[]): Placed[] {
  const pieces = new Map<string, { machine: number; device: string; pieces: Piece[] }>();
  let isTwice = false;
  for (const { samples, machine } of placed) {
    for (let s = 0; s < machine.length; s++) {
      if (machine[s]! < 0) continue;
      const key = `${machine[s]} ${samples.device[s]}`;
      const piece = { samples, from: samples.start[s]!, to: samples.start[s + 1]! };
      const known = pieces.get(key);
      if (known) {
        isTwice = true;
        known.pieces.push(piece);
      } else pieces.set(key, { machine: machine[s]!, device: samples.device[s]!, pieces: [piece] });
    }
  }
  if (!isTwice) return placed;
  const series = [...pieces.values()].map((one) => ({ ...one, pieces: apart(one.pieces) }));
  const start = new Uint32Array(series.length + 1);
  series.forEach((one, s) => {
    start[s + 1] = one.pieces.reduce((sum, { from, to }) => sum + to - from, start[s]!);
  });
  const timeS = new Float64Array(start[series.length]!);
  const value = new Float64Array(start[series.length]!);
  series.forEach((one, s) => {
    let at = start[s]!;
    for (const { samples, from, to } of one.pieces) {
      timeS.set(samples.timeS.subarray(from, to), at);
      value.set(samples.value.subarray(from, to), at);
      at += to - from;
    }
  });
  const { name, type } = placed[0]!.samples;
  const machine = Int32Array.from(series, (one) => one.machine);
  const device = series.map((one) => one.device);
  return [{ samples: { name, type, machine, device, start, timeS, value }, machine }];
}

/** In the order of time, none that overlaps a longer one. */
function apart(pieces: readonly Piece[]): Piece[] {
  const first = ({ samples, from }: Piece): number => samples.timeS[from] ?? Infinity;
  const last = ({ samples, to }: Piece): number => samples.timeS[to - 1] ?? -Infinity;
  const kept: Piece[] = [];
  for (const piece of pieces.toSorted((a, b) => b.to - b.from - (a.to - a.from))) {
    const overlaps = kept.some(
      (other) => first(other) <= last(piece) && first(piece) <= last(other),
    );
    if (piece.to > piece.from && !overlaps) kept.push(piece);
  }
  return kept.sort((a, b) => first(a) - first(b));
}
