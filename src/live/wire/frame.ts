/**
 * Frames, the same on every carrier: u8 version, u8 type, u32 length of the head, a head of JSON, padding to a multiple
 * of 8, then columns, each padded to a multiple of 8 so that it can be read where it lies. Numbers are little-endian,
 * as on every machine with a GPU.
 */
import { fieldsOf, jsonOf, type Fields } from "../../base/json.ts";
import { PROTOCOL } from "./messages.ts";

/** A frame that is not what it should be, in one sentence. It says nothing that the sender wrote. */
export class FrameError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FrameError";
  }
}

export const FRAME = { hello: 1, report: 2, ack: 3, request: 4, reply: 5, part: 6 } as const;
export type FrameType = (typeof FRAME)[keyof typeof FRAME];

const PREAMBLE = 6;
const TYPES: readonly number[] = Object.values(FRAME);

export interface RawFrame {
  readonly type: FrameType;
  readonly head: Readonly<Record<string, unknown>>;
  readonly payload: Uint8Array;
}

export function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** The columns' bytes are copied: the frame may outlive them. */
export function writeFrame(
  type: FrameType,
  head: Readonly<Record<string, unknown>>,
  columns: readonly ArrayBufferView[] = [],
): Uint8Array<ArrayBuffer> {
  const text = Buffer.from(JSON.stringify(head));
  let at = padded(PREAMBLE + text.length);
  let length = at;
  for (const column of columns) length += padded(column.byteLength);
  const bytes = new Uint8Array(length);
  bytes[0] = PROTOCOL;
  bytes[1] = type;
  new DataView(bytes.buffer).setUint32(2, text.length, true);
  bytes.set(text, PREAMBLE);
  for (const column of columns) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at);
    at += padded(column.byteLength);
  }
  return bytes;
}

/** The type alone, without looking further; 0 where there is none. */
export function typeOf(bytes: Uint8Array): number {
  return bytes.length > 1 && bytes[0] === PROTOCOL ? bytes[1]! : 0;
}

/** Throws FrameError. Allocates no more than the bytes that are there. */
export function readFrame(bytes: Uint8Array, mostBytes: number): RawFrame {
  if (bytes.length > mostBytes) throw new FrameError(`a frame of more than ${mostBytes} bytes`);
  if (bytes.length < PREAMBLE) throw new FrameError("a frame without a whole preamble");
  if (bytes[0] !== PROTOCOL) throw new FrameError("a frame of another protocol's version");
  const type = bytes[1]!;
  if (!TYPES.includes(type)) throw new FrameError("a frame of an unknown type");
  const headLength = new DataView(bytes.buffer, bytes.byteOffset, PREAMBLE).getUint32(2, true);
  const payloadAt = padded(PREAMBLE + headLength);
  if (payloadAt > bytes.length) throw new FrameError("a frame cut within its head");
  return {
    type: type as FrameType,
    head: readHead(bytes.subarray(PREAMBLE, PREAMBLE + headLength)),
    payload: bytes.subarray(payloadAt),
  };
}

function readHead(bytes: Uint8Array): Fields {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  const json = jsonOf(text);
  if (json === undefined) throw new FrameError("a head that is no JSON");
  const head = fieldsOf(json);
  if (head === null) throw new FrameError("a head that is no object");
  return head;
}

const ARRAYS = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

interface Arrays {
  u8: Uint8Array;
  u16: Uint16Array;
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

/** Bytes that columns of such lengths take; throws FrameError where they are not those of one message. */
export function checkLengths(layout: Layout, lengths: unknown, most: number): number {
  const columns = Object.values(layout);
  if (!Array.isArray(lengths) || lengths.length !== columns.length) {
    throw new FrameError(`lengths is not a list of ${columns.length}`);
  }
  const tables: number[] = [];
  let bytes = 0;
  for (const [i, { kind, table }] of columns.entries()) {
    const length: unknown = lengths[i];
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0 || length > most) {
      throw new FrameError(`lengths holds one that is not from 0 to ${most}`);
    }
    if ((tables[table] ??= length) !== length) throw new FrameError("columns of unequal length");
    bytes += padded(length * ARRAYS[kind].BYTES_PER_ELEMENT);
  }
  return bytes;
}

/** Views into the payload where it is aligned, else into one copy of it. Throws FrameError. */
export function readColumns<L extends Layout>(
  layout: L,
  lengths: unknown,
  payload: Uint8Array,
  most: number,
): Columns<L> {
  // Compared before anything is made: what is allocated is never more than what has arrived.
  if (checkLengths(layout, lengths, most) !== payload.length)
    throw new FrameError("a payload that is not as long as its columns");
  const from = payload.byteOffset % 8 === 0 ? payload : new Uint8Array(payload);
  const columns: Record<string, ArrayBufferView> = {};
  let at = from.byteOffset;
  for (const [i, name] of Object.keys(layout).entries()) {
    const array = ARRAYS[layout[name]!.kind];
    const length = (lengths as number[])[i]!;
    columns[name] = new array(from.buffer as ArrayBuffer, at, length);
    at += padded(length * array.BYTES_PER_ELEMENT);
  }
  return columns as Columns<L>;
}
