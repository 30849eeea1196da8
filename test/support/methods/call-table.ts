/** Tables of operators out of short descriptions, for tests. */
import type { OperatorTable } from "../../../src/model/operators.ts";
import type { CallSource } from "../../../src/methods/iterations/operator-series.ts";

export interface Call {
  readonly group: number;
  readonly name: string;
  readonly elements: number;
  /** Since the call before. */
  readonly ms: number;
  readonly peer?: number;
  readonly isSend?: boolean;
}

/** What a ring holds of the calls: those from `first` on, with the numbers that they got. */
export function callTable(all: readonly Call[], first: number): CallSource {
  const counts = new Map<string, number>();
  let ns = 0;
  const rows = all.map((call, id) => {
    const counter = `${call.group}${call.peer === undefined ? "" : " p2p"}`;
    const seq = (counts.get(counter) ?? 0) + 1;
    counts.set(counter, seq);
    ns += call.ms * 1e6;
    return { ...call, id, seq, ns };
  });
  const kept = rows.slice(first);
  const names = [...new Set(all.map(({ name }) => name))];
  const none = (): Float64Array => new Float64Array(kept.length).fill(NaN);
  const whole = (of: (row: (typeof kept)[number]) => number): Int32Array =>
    Int32Array.from(kept, of);
  const ops: OperatorTable = {
    count: kept.length,
    group: whole(({ group }) => group),
    name: whole(({ name }) => names.indexOf(name)),
    seq: whole(({ seq, peer }) => (peer === undefined ? seq : 0)),
    p2pSeq: whole(({ seq, peer }) => (peer === undefined ? 0 : seq)),
    recordId: Float64Array.from(kept, ({ id }) => id),
    state: new Uint8Array(kept.length).fill(2),
    isP2p: Uint8Array.from(kept, ({ peer }) => (peer === undefined ? 0 : 1)),
    peer: whole(({ peer }) => peer ?? -1),
    isSend: Uint8Array.from(kept, ({ isSend }) => (isSend === true ? 1 : 0)),
    createdNs: Float64Array.from(kept, ({ ns: created }) => created),
    startedNs: none(),
    completedNs: none(),
    durationMs: new Float32Array(kept.length).fill(NaN),
    inputNumel: Float64Array.from(kept, ({ elements }) => elements),
    outputNumel: Float64Array.from(kept, ({ elements }) => elements),
    dtype: new Int32Array(kept.length),
    names,
    dtypes: ["BFloat16"],
  };
  return { file: "run/dump_3", rank: 3, ops, epochNs: 1_794_700_800_000_000_000n };
}
