/** What is known of every rank, as columns: the JSON of the service made into typed arrays, filled anew with each answer. */
import type { GroupView, Ranks, RankValues } from "../live/api.ts";

/** By the number that `state` holds; anything the service says beyond these is shown as the last. */
export const STATES = ["running", "stopped", "gone", "silent", "unknown"] as const;

export interface RankTable {
  readonly layout: string;
  readonly count: number;
  readonly rank: Int32Array;
  /** "" where unknown; cut to 80 characters. */
  readonly machine: readonly string[];
  /** The following four: −1 where unknown. */
  readonly gpu: Int32Array;
  readonly pipeline: Int32Array;
  readonly data: Int32Array;
  readonly tensor: Int32Array;
  readonly groups: readonly GroupView[];
  /** NaN where unknown. */
  readonly iteration: Float64Array;
  readonly durationMs: Float32Array;
  readonly ownMs: Float32Array;
  readonly waitMs: Float32Array;
  readonly lateMs: Float32Array;
  /** Degrees Celsius. */
  readonly temperature: Float32Array;
  /** Index into STATES. */
  readonly state: Uint8Array;
  /** Row by rank. */
  readonly rowOf: ReadonlyMap<number, number>;
}

const MACHINE_CHARS = 80;

export function rankTable(ranks: Ranks): RankTable {
  const count = ranks.rank.length;
  const rank = Int32Array.from(ranks.rank);
  const rowOf = new Map<number, number>();
  for (let row = 0; row < count; row++) rowOf.set(rank[row]!, row);
  // Names repeat eight times and more: cutting interns them, so that a long one is held once.
  const names = new Map<string, string>();
  const machine = Array.from({ length: count }, (_, row) => {
    const name = ranks.machine[row] ?? "";
    let cut = names.get(name);
    if (cut === undefined) {
      cut = name.length > MACHINE_CHARS ? `${name.slice(0, MACHINE_CHARS)}…` : name;
      names.set(name, cut);
    }
    return cut;
  });
  const table: RankTable = {
    layout: ranks.layout,
    count,
    rank,
    machine,
    gpu: places(ranks.gpu, count),
    pipeline: places(
      ranks.pipeline.some((place) => place !== null) ? ranks.pipeline : ranks.stage,
      count,
    ),
    data: places(ranks.data, count),
    tensor: places(ranks.tensor, count),
    groups: ranks.groups,
    iteration: new Float64Array(count),
    durationMs: new Float32Array(count),
    ownMs: new Float32Array(count),
    waitMs: new Float32Array(count),
    lateMs: new Float32Array(count),
    temperature: new Float32Array(count),
    state: new Uint8Array(count),
    rowOf,
  };
  fill(table, ranks);
  return table;
}

/** False where the values are of another layout: then all of it has to be asked for again. */
export function fill(table: RankTable, values: RankValues): boolean {
  if (values.layout !== table.layout || values.durationMs.length !== table.count) return false;
  copy(table.iteration, values.iteration);
  copy(table.durationMs, values.durationMs);
  copy(table.ownMs, values.ownMs);
  copy(table.waitMs, values.waitMs);
  copy(table.lateMs, values.lateMs);
  copy(table.temperature, values.temperature);
  for (let row = 0; row < table.count; row++) {
    const state = STATES.indexOf(values.state[row] as (typeof STATES)[number]);
    table.state[row] = state === -1 ? STATES.length - 1 : state;
  }
  return true;
}

function copy(into: Float32Array | Float64Array, from: readonly (number | null)[]): void {
  for (let row = 0; row < into.length; row++) into[row] = from[row] ?? Number.NaN;
}

function places(from: readonly (number | null)[], count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, row) => from[row] ?? -1);
}
