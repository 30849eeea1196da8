/** As much of protobuf and snappy as a remote-read request needs. */
import type { Matcher } from "./matchers.ts";

const OPS = { "=": 0, "!=": 1, "=~": 2, "!~": 3 } as const;
const STREAMED_XOR_CHUNKS = 1;
const MOST_LITERAL = 65_536;

function varint(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  while (rest >= 128) {
    out.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  out.push(rest);
  return out;
}

function number(field: number, value: number): Buffer {
  return Buffer.from([field << 3, ...varint(value)]);
}

function bytes(field: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...varint(content.length)]), content]);
}

function matcher({ label, op, value }: Matcher): Buffer {
  return bytes(3, number(1, OPS[op]), bytes(2, Buffer.from(label)), bytes(3, Buffer.from(value)));
}

/** prometheus.ReadRequest with one query; both ends belong to it. */
export function readRequest(
  matchers: readonly Matcher[],
  startMs: number,
  endMs: number,
): Uint8Array {
  const query = bytes(1, number(1, startMs), number(2, endMs), ...matchers.map(matcher));
  return snappy(Buffer.concat([query, number(2, STREAMED_XOR_CHUNKS)]));
}

/** Snappy's block format without any compression: literals only. */
export function snappy(content: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from(varint(content.length))];
  for (let at = 0; at < content.length; at += MOST_LITERAL) {
    const literal = content.subarray(at, at + MOST_LITERAL);
    const size = literal.length - 1;
    // 61: the length less one follows in two bytes.
    parts.push(Buffer.from([61 << 2, size & 255, size >> 8]), literal);
  }
  return Buffer.concat(parts);
}
