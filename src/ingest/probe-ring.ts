/**
 * Rings of our own probes (probe/RING.md): what a library inside the training process recorded of its communication and
 * its kernels, and what Python did. A ring is a file in shared memory; a dump is a copy of it, and both are read here.
 */
import { thousands } from "../base/text.ts";
import { FORMAT, readRing } from "./probe-ring/read-ring.ts";
import { HEADER_BYTES } from "./probe-ring/layout.ts";
import {
  isRing,
  MAX_RING_BYTES,
  PAGE_BYTES,
  promisedBytes,
  refusal,
} from "./probe-ring/ring-bytes.ts";
import type { Head, Reader, Sink } from "./reader.ts";

export const probeRing: Reader = {
  format: FORMAT,
  sniff: ({ bytes }: Head) => isRing(bytes),
  open: (file) => new RingSink(file),
};

class RingSink implements Sink {
  readonly #file: string;
  #chunks: Buffer[] = [];
  #length = 0;
  /** As the header says, once it is there. */
  #promised = MAX_RING_BYTES;
  #refused: string | null = null;
  #hasHeader = false;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#length += chunk.length;
    if (this.#length <= this.#promised + PAGE_BYTES) this.#chunks.push(Buffer.from(chunk));
    else this.#refuse();
    if (this.#hasHeader || this.#length < HEADER_BYTES || this.#refused !== null) return;
    this.#hasHeader = true;
    const head = Buffer.concat(this.#chunks);
    this.#promised = promisedBytes(head);
    this.#refused = refusal(head);
    if (this.#refused !== null || this.#length > this.#promised + PAGE_BYTES) this.#refuse();
  }

  /** Nothing that came is kept any longer. */
  #refuse(): void {
    this.#chunks = [];
    this.#refused ??= `the file is longer than the ${thousands(this.#promised)} bytes that its header states: damaged, not read`;
  }

  end() {
    if (this.#refused === null) return readRing(this.#file, Buffer.concat(this.#chunks));
    const defects = [{ file: this.#file, what: this.#refused }];
    return { file: this.#file, format: FORMAT, rank: null, records: 0, defects };
  }
}
