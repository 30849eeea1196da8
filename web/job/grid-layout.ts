/**
 * Which cell of the grid a rank has, before anything is known of pixels: bands (pipeline stages) of blocks (data
 * replicas) of slots (tensor-parallel ranks). Where the job's groups do not tell coordinates, machines are the blocks.
 */
import type { RankTable } from "./rank-table.ts";

export interface GridLayout {
  readonly kind: "coordinates" | "machines" | "order";
  readonly bands: readonly GridBand[];
  /** Slots that every block has room for. */
  readonly slots: number;
  /** By row of the table. */
  readonly band: Int32Array;
  readonly block: Int32Array;
  readonly slot: Int32Array;
}

export interface GridBand {
  readonly label: string;
  /** Names of its blocks: "replica 12", a machine. */
  readonly blocks: readonly string[];
}

type Places = Pick<
  RankTable,
  "count" | "rank" | "machine" | "gpu" | "pipeline" | "data" | "tensor"
>;

/** Ranks a block of the last resort: the GPUs of a usual machine. */
const ORDER_SLOTS = 8;

export function gridLayout(ranks: Places): GridLayout {
  return byCoordinates(ranks) ?? byMachine(ranks) ?? byOrder(ranks);
}

function byCoordinates(ranks: Places): GridLayout | null {
  const { count } = ranks;
  const stages = dense(ranks.pipeline);
  const replicas = dense(ranks.data);
  const tensors = dense(ranks.tensor);
  const [height, width, depth] = [
    stages.values.length,
    replicas.values.length,
    tensors.values.length,
  ];
  const room = height * width * depth;
  // Coordinates come from what strangers named their groups: a grid that is mostly holes shows nothing.
  if (room === 0 || room > 4 * count + 64) return null;
  const taken = new Uint8Array(room);
  const band = new Int32Array(count);
  const block = new Int32Array(count);
  const slot = new Int32Array(count);
  const outside: number[] = [];
  for (let row = 0; row < count; row++) {
    const [p, d, t] = [stages.place[row]!, replicas.place[row]!, tensors.place[row]!];
    const cell = (p * width + d) * depth + t;
    if (p < 0 || d < 0 || t < 0 || taken[cell] === 1) {
      outside.push(row);
      continue;
    }
    taken[cell] = 1;
    band[row] = p;
    block[row] = d;
    slot[row] = t;
  }
  if (outside.length > count / 2) return null;
  const blocks = replicas.values.map((replica) => `replica ${replica}`);
  const bands: GridBand[] = stages.values.map((stage) => ({ label: `stage ${stage}`, blocks }));
  if (outside.length > 0) {
    for (const [at, row] of outside.entries()) {
      band[row] = height;
      block[row] = Math.floor(at / depth);
      slot[row] = at % depth;
    }
    bands.push({
      label: "no place",
      blocks: Array.from({ length: Math.ceil(outside.length / depth) }, () => "place unknown"),
    });
  }
  return { kind: "coordinates", bands, slots: depth, band, block, slot };
}

function byMachine(ranks: Places): GridLayout | null {
  const members = new Map<string, number[]>();
  for (let row = 0; row < ranks.count; row++) {
    const name = ranks.machine[row]!;
    if (name === "") return null;
    const there = members.get(name);
    if (there) there.push(row);
    else members.set(name, [row]);
  }
  const names = [...members.keys()].toSorted((a, b) => (a === b ? 0 : byNumber.compare(a, b)));
  const slots = Math.max(0, ...[...members.values()].map((rows) => rows.length));
  if (slots === 0 || slots > 64 || slots * names.length > 4 * ranks.count + 64) return null;
  const block = new Int32Array(ranks.count);
  const slot = new Int32Array(ranks.count);
  for (const [at, name] of names.entries()) {
    const rows = members
      .get(name)!
      .toSorted((a, b) => ranks.gpu[a]! - ranks.gpu[b]! || ranks.rank[a]! - ranks.rank[b]!);
    for (const [place, row] of rows.entries()) {
      block[row] = at;
      slot[row] = place;
    }
  }
  const bands = [{ label: "", blocks: names }];
  return { kind: "machines", bands, slots, band: new Int32Array(ranks.count), block, slot };
}

function byOrder(ranks: Places): GridLayout {
  const { count } = ranks;
  const rows = Array.from({ length: count }, (_, row) => row).toSorted(
    (a, b) => ranks.rank[a]! - ranks.rank[b]!,
  );
  const block = new Int32Array(count);
  const slot = new Int32Array(count);
  const blocks: string[] = [];
  for (const [at, row] of rows.entries()) {
    block[row] = Math.floor(at / ORDER_SLOTS);
    slot[row] = at % ORDER_SLOTS;
    if (slot[row] === 0) blocks.push(`rank ${ranks.rank[row]}`);
  }
  const bands = [{ label: "", blocks }];
  const slots = Math.min(ORDER_SLOTS, Math.max(1, count));
  return { kind: "order", bands, slots, band: new Int32Array(count), block, slot };
}

const byNumber = new Intl.Collator("en", { numeric: true });

/** Values in ascending order, and for each row the place of its own among them; −1 where unknown. */
function dense(column: Int32Array): {
  readonly values: readonly number[];
  readonly place: Int32Array;
} {
  const values = [...new Set(column)].filter((value) => value >= 0).toSorted((a, b) => a - b);
  const at = new Map(values.map((value, place) => [value, place]));
  return { values, place: column.map((value) => at.get(value) ?? -1) };
}
