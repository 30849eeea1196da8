/** UTF-16, as PowerShell and some Windows tools write logs: recognised by its byte order mark, read as UTF-8. */

type WideEncoding = "utf-16le" | "utf-16be";

/** Null for anything else, UTF-32 with it. */
export function wideEncoding(head: Uint8Array): WideEncoding | null {
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  if (head[0] !== 0xff || head[1] !== 0xfe) return null;
  return head[2] === 0 && head[3] === 0 ? null : "utf-16le";
}

/** Where every second byte is a NUL there is a mark missing; null where this is no such text. */
export function unmarkedWide(bytes: Uint8Array): "UTF-16LE" | "UTF-16BE" | null {
  const nuls: [number, number] = [0, 0];
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === 0) nuls[i % 2 === 0 ? 0 : 1]++;
  const [even, odd] = nuls;
  const many = bytes.length * 0.4;
  if (odd > many && even < bytes.length / 100) return "UTF-16LE";
  return even > many && odd < bytes.length / 100 ? "UTF-16BE" : null;
}

export function narrowed(bytes: Uint8Array, encoding: WideEncoding): Buffer {
  return Buffer.from(new TextDecoder(encoding).decode(bytes, { stream: true }));
}

/** Characters may be cut in two by chunks. */
export class WideReader {
  readonly #decoder: InstanceType<typeof TextDecoder>;

  constructor(encoding: WideEncoding) {
    this.#decoder = new TextDecoder(encoding);
  }

  push(chunk: Uint8Array): Buffer {
    return Buffer.from(this.#decoder.decode(chunk, { stream: true }));
  }

  end(): Buffer {
    return Buffer.from(this.#decoder.decode());
  }
}
