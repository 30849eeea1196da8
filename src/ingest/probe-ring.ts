/**
 * Rings of our own probes (probe/RING.md): what a library inside the training process recorded of its communication and
 * its kernels, and what Python did. A ring is a file in shared memory; a dump is a copy of it, and both are read here.
 */
import { FORMAT, readRing } from "./probe-ring/read-ring.ts";
import { isRing, MAX_RING_BYTES } from "./probe-ring/ring-bytes.ts";
import type { Head, Reader, Sink } from "./reader.ts";

export const probeRing: Reader = {
  format: FORMAT,
  sniff: ({ bytes }: Head) => isRing(bytes),
  open: (file) => new RingSink(file),
};

class RingSink implements Sink {
  readonly #file: string;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#length += chunk.length;
    if (this.#length <= MAX_RING_BYTES) this.#chunks.push(Buffer.from(chunk));
  }

  end() {
    if (this.#length > MAX_RING_BYTES) {
      const what = "a ring of more than 1 GiB: no probe makes one; not read";
      const defects = [{ file: this.#file, what }];
      return { file: this.#file, format: FORMAT, rank: null, records: 0, defects };
    }
    return readRing(this.#file, Buffer.concat(this.#chunks, this.#length));
  }
}
