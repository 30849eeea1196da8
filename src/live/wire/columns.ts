/** Columns of numbers behind a head. What columns a message has is known beforehand; a frame says only how long they are. */
import { FrameError, padded } from "./frame.ts";

const ARRAYS = {
  u8: Uint8Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

interface Arrays {
  u8: Uint8Array;
  u32: Uint32Array;
  i32: Int32Array;
  f32: Float32Array;
  f64: Float64Array;
}
export type ColumnKind = keyof Arrays;
/** Names in the order they lie in the frame; columns of one table are of one length. */
export type Layout = Readonly<
  Record<string, { readonly kind: ColumnKind; readonly table: number }>
>;
export type Columns<L extends Layout> = {
  readonly [K in keyof L]: Arrays[L[K]["kind"]];
};

/** The columns of a message in the layout's order; `L` makes sure that the message has them. */
export function columnsOf<L extends Layout>(layout: L, message: Columns<L>): ArrayBufferView[] {
  return Object.keys(layout).map((name) => message[name]!);
}

export function lengthsOf<L extends Layout>(layout: L, message: Columns<L>): number[] {
  return Object.keys(layout).map((name) => (message[name] as { length: number }).length);
}

/** Views into the payload where it is aligned, else into one copy of it. Throws FrameError. */
export function readColumns<L extends Layout>(
  layout: L,
  lengths: unknown,
  payload: Uint8Array,
  most: number,
): Columns<L> {
  const names = Object.keys(layout);
  if (!Array.isArray(lengths) || lengths.length !== names.length) {
    throw new FrameError(`lengths is not a list of ${names.length}`);
  }
  const tables: number[] = [];
  let bytes = 0;
  for (let i = 0; i < names.length; i++) {
    const { kind, table } = layout[names[i]!]!;
    const length: unknown = lengths[i];
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0 || length > most) {
      throw new FrameError(`lengths holds one that is not from 0 to ${most}`);
    }
    if ((tables[table] ??= length) !== length) throw new FrameError("columns of unequal length");
    bytes += padded(length * ARRAYS[kind].BYTES_PER_ELEMENT);
  }
  // Compared before anything is made: what is allocated is never more than what has arrived.
  if (bytes !== payload.length)
    throw new FrameError("a payload that is not as long as its columns");
  const from = payload.byteOffset % 8 === 0 ? payload : new Uint8Array(payload);
  const columns: Record<string, ArrayBufferView> = {};
  let at = from.byteOffset;
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    const array = ARRAYS[layout[name]!.kind];
    const length = lengths[i] as number;
    columns[name] = new array(from.buffer as ArrayBuffer, at, length);
    at += padded(length * array.BYTES_PER_ELEMENT);
  }
  return columns as Columns<L>;
}
